// @ts-nocheck: it runs in browsers, whose types the program does not have.
// Copies a key with one tap. Without this script a tap selects the whole key.
for (const button of document.querySelectorAll('[data-copy]')) {
  const key = button.previousElementSibling
  button.hidden = navigator.clipboard === undefined
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(key.textContent)
      button.textContent = document.body.dataset.copied
    } catch {
      // The browser forbids it: the key is selected, and its reader copies it.
      getSelection().selectAllChildren(key)
    }
  })
}
