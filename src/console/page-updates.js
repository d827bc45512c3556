// @ts-nocheck: it runs in browsers, whose types the program does not have.
// Our only script. It marks a page that is out of date, and keeps htmx from replacing a part that a person is using.

const STALE_MS = 15_000
let answeredAt = Date.now()

document.addEventListener('htmx:afterRequest', ({ detail }) => {
  if (!detail.successful) return
  answeredAt = Date.now()
  const checked = document.getElementById('checked')
  const date = new Date(detail.xhr.getResponseHeader('date') ?? answeredAt)
  if (!checked) return
  checked.textContent = date.toISOString().slice(11, 19)
  checked.parentElement.dateTime = date.toISOString()
})

document.addEventListener('htmx:beforeSwap', ({ detail }) => {
  const part = detail.target
  if (part.contains(document.activeElement) || part.querySelector('details[open]')) detail.shouldSwap = false
})

const stale = document.getElementById('stale')
if (stale) {
  const seconds = stale.querySelector('output')
  setInterval(() => {
    const age = Date.now() - answeredAt
    const isStale = age > STALE_MS
    if (isStale) seconds.textContent = String(Math.round(age / 1_000))
    if (stale.hidden !== isStale) return
    stale.hidden = !isStale
    document.getElementById('health').hidden = isStale
  }, 1_000)
}
