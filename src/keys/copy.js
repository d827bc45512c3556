// @ts-nocheck: it runs in browsers, whose types the program does not have.
// Copies a key with one tap. Without this script a tap selects the whole key.
for (const button of document.querySelectorAll('[data-copy]')) {
  button.hidden = navigator.clipboard === undefined
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent)
    button.textContent = document.body.dataset.copied
  })
}
