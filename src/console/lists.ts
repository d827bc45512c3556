/** Facts, figures, what waits for a person, and the timeline. */
import { duration } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import type { Sign } from '../domain/labels.ts'
import { mark, sign } from './marks.ts'
import type { Notice } from './page.ts'
import { ageTag, clockTag, dayIn } from './words.ts'

/** A name and its value; false or empty where there is no such fact: `error && ['It said', error]`. */
export type Fact = readonly [name: string, value: Piece] | false | '' | null | undefined

export const facts = (all: readonly Fact[]): Html =>
  html`<dl class="facts">${all.map((fact) => fact && html`<dt>${fact[0]}</dt><dd>${fact[1]}</dd>`)}</dl>`

/** `one`, `one and other`, `one, other and third` */
export const inARow = (all: readonly Piece[], last = ' and '): Piece[] =>
  all.flatMap((one, index) => [index === 0 ? '' : index === all.length - 1 ? last : ', ', one])

/** A section that stands on the quay line, with its state beside the heading. */
export const section = (id: string, title: Piece, content: Piece, beside?: Piece): Html =>
  html`<section class="stack" aria-labelledby="${id}">${sectionHead(id, title, beside)}${content}</section>`

export const sectionHead = (id: string, title: Piece, beside?: Piece): Html =>
  html`<div class="head quay"><h2 id="${id}">${title}</h2>${beside}</div>`

export interface Figure {
  name: string
  value: Piece
  unit?: string
  /** What to compare the value with. */
  beside: Piece
}

/** Draws figures beside each other, six at most. */
export const figures = (all: readonly Figure[]): Html =>
  html`<dl class="figures">${all.map(
    ({ name, value, unit, beside }) =>
      html`<div class="figure"><dt>${name}</dt><dd><b>${value}${unit && html` <small>${unit}</small>`}</b>${beside}</dd></div>\n`,
  )}</dl>`

export interface Duty {
  sign: Sign
  what: string
  to: string
  /** Why the duty waits, in two sentences, with the money at stake. */
  why: Piece
  /** Since when the duty waits; absent where that is not known. */
  since?: string | undefined
}

export const duties = (all: readonly Duty[], now: number): Html =>
  html`<ul class="duties">${all.map(
    (duty) =>
      html`<li>${sign(duty.sign)}<a href="${duty.to}">${duty.what}</a>${duty.since && html`<span class="when">${ageTag(duty.since, now)}</span>`}<p>${duty.why}</p></li>\n`,
  )}</ul>`

export interface LogEvent {
  at: string
  /** The last instant of several events that are one entry. */
  until?: string | undefined
  sign: Sign
  what: Piece
  /** The line that the entry is about. */
  tag?: string | undefined
  detail?: Piece
  /** True for a detail that matters little. */
  isQuiet?: boolean
  /** True for a step towards the next event of its line: it stands behind that event. */
  isStep?: boolean
  /** True for what came from elsewhere, such as a decision of a person: no step led to it. */
  isOwn?: boolean
  /** Equal runs are one entry while no other event of their track is between them: `words` have the count between them. */
  run?: { words: readonly [string, string]; detail: string } | undefined
  /** Which events belong together; default: those of one `tag`. */
  track?: string
  /** Behind a click: the events that are one entry, and request and answer. */
  more?: { summary: string; text: string; rows?: readonly LogEvent[] } | undefined
}

/** A person should see a pause that is longer than this. */
const GAP_MS = 10_000

/** Draws what happened, the oldest event first. Pauses that matter are drawn, and days other than today are named once. */
export function timeline(events: readonly LogEvent[], now: number): Html {
  return html`<ol class="log">${events.map((event, index) => {
    const before = events[index - 1]
    const pause = before ? Date.parse(event.at) - Date.parse(before.until ?? before.at) : 0
    const gap = pause > GAP_MS && html`<li class="gap"><p>${duration(pause)} later</p></li>\n`
    const day = dayIn(event.at, now)
    const isOther = day !== dayIn(before?.at ?? now, now) && html`<li class="day"><p>${day}</p></li>\n`
    return html`${gap}${isOther}<li>${clockTag(event.at, Date.parse(event.at), 'milliseconds')}${sign(event.sign)}<div><h3>${event.what}${event.tag && html` <span class="tag">${event.tag}</span>`}</h3>${event.detail && html`<p${event.isQuiet && html` class="quiet"`}>${event.detail}</p>`}${moreOf(event)}</div></li>\n`
  })}</ol>`
}

const moreOf = ({ more, at: first }: LogEvent): Piece =>
  more &&
  html`<details class="more"><summary>${more.summary}</summary>${
    more.rows &&
    html`<div class="scroll" role="region" aria-label="${more.summary}" tabindex="0"><table class="tight"><thead><tr><th scope="col">At</th><th scope="col">What</th><th scope="col">Details</th></tr></thead><tbody>
${more.rows.map(({ at, what, detail }) => html`<tr><th scope="row">${clockTag(at, Date.parse(first))}</th><td>${what}</td><td>${detail}</td></tr>\n`)}</tbody></table></div>`
  }${more.text && html`<pre tabindex="0">${more.text}</pre>`}</details>`

/** Folds equal events in a row into one entry, and steps behind the event that they led to. The first event gives the instant. */
export function folded<E extends LogEvent>(events: readonly E[]): E[] {
  const runs: E[][] = []
  const newest = new Map<string, E[]>()
  for (const event of events) {
    const run = newest.get(trackOf(event))
    if (run?.[0] && sameOf(run[0]) !== undefined && sameOf(run[0]) === sameOf(event)) run.push(event)
    else {
      newest.set(trackOf(event), [event])
      runs.push(newest.get(trackOf(event)) ?? [])
    }
  }
  const entries: E[] = []
  const steps = new Map<string, E[]>()
  for (const event of runs.map(joined)) {
    const own = steps.get(trackOf(event)) ?? []
    if (event.isStep) steps.set(trackOf(event), [...own, event])
    else entries.push(...(event.isOwn ? [...behindFirst(own), event] : [withSteps(event, own)]))
    if (!event.isStep && own.length > 0) steps.delete(trackOf(event))
  }
  return [...entries, ...[...steps.values()].flatMap(behindFirst)].sort((a, b) => Date.parse(a.at) - Date.parse(b.at))
}

/** Steps that have led to nothing stand behind the first of them. */
const behindFirst = <E extends LogEvent>([first, ...rest]: readonly E[]): E[] => (first ? [withSteps(first, rest)] : [])

const trackOf = ({ track, tag = '' }: LogEvent): string => track ?? tag

const sameOf = ({ run, isQuiet, more, what, detail }: LogEvent): string | undefined =>
  run ? `${run.words} ${run.detail}` : isQuiet && !more ? `${what} ${detail}` : undefined

function joined<E extends LogEvent>(run: readonly E[]): E {
  const [first, last] = [run[0] as E, run.at(-1) as E]
  if (run.length === 1) return first
  const times = `${run.length} times`
  const [before, after] = first.run?.words ?? [html`${first.what},`, '']
  return {
    ...first,
    // Of the same tries, the last one says how it stands.
    sign: last.sign,
    until: last.until ?? last.at,
    what: html`${before} ${times}${after}`,
    detail: html`${first.run?.detail ?? first.detail} Last ${clockTag(last.at, Date.parse(first.at))}.`,
    more: { summary: times, text: last.more?.text ?? '', rows: run },
  }
}

function withSteps<E extends LogEvent>(event: E, steps: readonly E[]): E {
  if (steps.length === 0) return event
  const text = [...steps, event].flatMap(({ more }) => more?.text || []).join('\n\n')
  const rows = [...steps, ...(event.more?.rows ?? [event])].sort((a, b) => Date.parse(a.at) - Date.parse(b.at))
  return { ...event, more: { summary: `${rows.length} steps${text && ', with request and answer'}`, text, rows } }
}

/** Draws a notice: the answer to a click, or what a page has to say before all else. */
export const notice = ({ kind, word, text }: { kind: Notice['kind']; word: string; text: Piece }): Html =>
  html`<p class="notice is-${kind}">${mark(kind, word)}<span>${text}</span></p>`

export type Step = readonly [text: Piece, amount: Piece]

/** Explains a computation, with one numbered line for each step. */
export const steps = (all: readonly Step[]): Html =>
  html`<ol class="steps">${all.map(([text, amount]) => html`<li><span>${text}</span><b>${amount}</b></li>\n`)}</ol>`

/** Shows the progress of a run that reads page after page. @param total null while the number of pages is not known */
export const pagesRead = (pages: number, total: number | null): Html =>
  html`<label>Page ${pages}${total !== null && ` of ${total}`}<progress${total !== null && html` max="${Math.max(1, total)}" value="${Math.min(pages, total)}"`}></progress></label>`

export type Tab = readonly [name: string, text: string]

/** Draws choices, of which one is made. @param to returns the path of the page with a choice */
export const tabs = (label: string, all: readonly Tab[], chosen: string, to: (name: string) => string): Html =>
  html`<nav class="tabs" aria-label="${label}">${all.map(
    ([name, text]) => html`<a href="${to(name)}"${name === chosen && html` aria-current="true"`}>${text}</a>`,
  )}</nav>`
