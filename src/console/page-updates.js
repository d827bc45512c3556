// @ts-nocheck: it runs in browsers, whose types the program does not have.
// Our only script. It follows the stream of the page, has htmx read the live parts again, says when the page is out of date, and shows
// times as the reader's. A part that a person is using is left alone.

/** The stream beats every 5 s. One late beat is no news. */
const STALE_MS = 9_000
/** How often the parts are read where there is no stream, and where there is one: what is never stored changes too. */
const POLL_MS = 5_000
const SLOW_MS = 300_000
/** After this silence the connection is taken for lost. After a refusal the stream is tried again as late. */
const SILENT_MS = 15_000
const LATER_MS = 60_000

const live = document.getElementById('live-mark')
const stale = document.getElementById('stale')
let [heardAt, readAt, triedAt] = [Date.now(), Date.now(), 0]
/** How far the clock of Quayside is ahead of the reader's. */
const ahead = live ? Date.parse(live.querySelector('time').dateTime) - Date.now() : 0
const today = () => new Date(Date.now() + ahead)
let stream

function heard() {
  heardAt = Date.now()
  const time = live.querySelector('time')
  time.dateTime = today().toISOString()
  showTime(time)
}

function readParts() {
  readAt = Date.now()
  for (const part of document.querySelectorAll('[hx-trigger="read"]')) htmx.trigger(part, 'read')
}

const isFollowed = () => stream?.readyState === EventSource.OPEN

function follow() {
  triedAt = Date.now()
  stream?.close()
  stream = new EventSource(live.dataset.stream)
  stream.addEventListener('beat', heard)
  stream.addEventListener('changed', () => {
    heard()
    readParts()
  })
  stream.addEventListener('over', () => location.reload())
}

function tick() {
  const now = Date.now()
  if (document.hidden) return
  for (const time of document.querySelectorAll('time[data-age]')) showAge(time, now + ahead)
  const isSilent = now - heardAt > SILENT_MS && now - triedAt > SILENT_MS
  const isRefused = stream?.readyState === EventSource.CLOSED && now - triedAt > LATER_MS
  if ((isFollowed() && isSilent) || isRefused) follow()
  if (now - readAt >= (isFollowed() && !isSilent ? SLOW_MS : POLL_MS)) readParts()
  const isStale = now - heardAt > STALE_MS
  if (isStale) stale.querySelector('[aria-live]').textContent = String(Math.round((now - heardAt) / 1_000))
  stale.hidden = !isStale
  document.getElementById('health')?.toggleAttribute('hidden', isStale)
  const [fresh, old] = live.children
  fresh.hidden = isStale
  old.hidden = !isStale
}

if (live) {
  if (!document.hidden) follow()
  tick()
  setInterval(tick, 1_000)
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) return stream?.close()
    heardAt = Date.now()
    follow()
    readParts()
  })
  addEventListener('pagehide', () => stream?.close())
  document.addEventListener('htmx:afterRequest', ({ detail }) => detail.successful && heard())
}

document.addEventListener('htmx:beforeSwap', ({ detail }) => {
  const part = detail.target
  // What follows typing is never older than what was typed.
  if (part.id === 'preview') return
  if (part.contains(document.activeElement) || part.querySelector('details[open]')) detail.shouldSwap = false
})

// Times ------------------------------------------------------------------------------------------------------------

const two = (number) => String(number).padStart(2, '0')

function dayOf(date) {
  const isThisYear = date.getFullYear() === today().getFullYear()
  const parts = { weekday: 'short', day: 'numeric', month: 'long', ...(!isThisYear && { year: 'numeric' }) }
  return date.toLocaleDateString('en-GB', parts).replaceAll(',', '')
}

/** Shows an instant as the reader's: a `time`, or a text of a plot, which has no day. */
function showTime(time) {
  const date = new Date(time.dateTime ?? time.dataset.at)
  const digits = time.dataset.clock
  const minutes = `${two(date.getHours())}:${two(date.getMinutes())}`
  const seconds = digits === 'minutes' ? '' : `:${two(date.getSeconds())}`
  const clock = `${minutes}${seconds}${digits === 'milliseconds' ? `.${String(date.getMilliseconds()).padStart(3, '0')}` : ''}`
  // In a timeline, the day stands above. A plot says its period.
  const isToday = time.dataset.at || time.closest('.log, figure') || date.toDateString() === today().toDateString()
  time.textContent = isToday ? clock : `${dayOf(date)}, ${clock}`
  if (!time.dataset.at) time.title = `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** As `age` of the server writes it. */
function showAge(time, now) {
  const seconds = Math.max(0, Math.floor((now - Date.parse(time.dateTime)) / 1_000))
  const [minutes, hours] = [Math.floor(seconds / 60), Math.floor(seconds / 3_600)]
  const rest = minutes % 60 === 0 ? '' : ` ${minutes % 60} min`
  const age =
    seconds < 60
      ? `${seconds} s`
      : minutes < 60
        ? `${minutes} min`
        : hours < 48
          ? `${hours} h${rest}`
          : `${Math.floor(hours / 24)} days`
  time.textContent = `${age}${time.dataset.age}`
}

/** Names the days of a timeline once more: a day of the reader begins at another hour. */
function showDays(log) {
  for (const day of log.querySelectorAll('.day')) day.remove()
  let before = dayOf(today())
  for (const time of log.querySelectorAll(':scope > li > time')) {
    const day = dayOf(new Date(time.dateTime))
    if (day !== before) time.parentElement.insertAdjacentHTML('beforebegin', `<li class="day"><p>${day}</p></li>`)
    before = day
  }
}

function showTimes(within) {
  for (const time of within.querySelectorAll('[data-clock]')) showTime(time)
  for (const time of within.querySelectorAll('time[data-age]'))
    time.title = `${time.dateTime.slice(0, 19).replace('T', ' ')} UTC`
  for (const log of within.querySelectorAll('.log')) showDays(log)
}

showTimes(document)
document.addEventListener('htmx:afterSwap', ({ detail }) => showTimes(detail.target))
const zone = document.getElementById('zone')
const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
if (zone && timeZone !== 'UTC')
  zone.textContent = `Times are yours, ${timeZone}. Each shows its UTC when you point at it.`

// Search, and copies of ids ---------------------------------------------------------------------------------------------

const find = document.querySelector('.find input')
document.addEventListener('keydown', (event) => {
  const isTyping = event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input, textarea, select')
  if (event.key !== '/' || isTyping) return
  event.preventDefault()
  find?.select()
})
/** Puts a button after each id, which copies it whole. */
function addCopies(within) {
  for (const id of within.querySelectorAll(':is(.id, [data-copy]):not(:is(label, summary) *)')) {
    id.insertAdjacentHTML('afterend', '<button class="copy" type="button">copy</button>')
    id.nextElementSibling.ariaLabel = `Copy ${id.textContent}`
  }
}
document.addEventListener('click', async ({ target, detail }) => {
  if (!target.matches('.copy')) return
  const id = target.previousElementSibling
  const fault = navigator.clipboard ? await navigator.clipboard.writeText(id.textContent).catch(() => true) : true
  // Where the browser forbids it, the id is selected, and its reader copies it.
  if (fault) getSelection().selectAllChildren(id)
  if (detail > 0) target.blur() // A live part with the focus would stay as it is.
  target.textContent = fault ? 'selected' : 'copied'
  document.getElementById('said')?.replaceChildren(`${fault ? 'Selected' : 'Copied'} ${id.textContent}`)
  setTimeout(() => target.replaceChildren('copy'), 2_000)
})
addCopies(document)
document.addEventListener('htmx:afterSwap', ({ detail }) => addCopies(detail.target))
