/** Controls, and actions that say what they will do. */
import type { PersonRole } from '../access/sessions.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import type { Visit } from './page.ts'

/** What an action will do, in the order in which people ask: Money, Store, Undo. */
export type Effect = Readonly<Record<string, Piece>>

const effectList = (effect: Effect): Html =>
  html`<dl class="effect">${Object.entries(effect).map(([label, text]) => html`<dt>${label}</dt><dd>${text}</dd>`)}</dl>`

/** The texts of a form as a person typed them, and the faults of its fields. */
export type Typed = Pick<Visit, 'form' | 'faults'>

/** Returns what was typed into an action of the page; nothing where another one was posted. */
export const typedFor = (visit: Visit | undefined, action: string | undefined): Typed =>
  visit && visit.action === action ? visit : { form: new URLSearchParams(), faults: new Map() }

export interface ActionForm {
  /** The text that opens the action (default: the text of the button). It ends in "…". */
  summary?: string
  /** The path to which the form is posted: `/overview/freeze`. */
  to: string
  /** One sentence that says what the action does. */
  about: Piece
  effect: Effect
  fields?: Piece
  /** The text of the button. It repeats the object: "Release 23.99 EUR". */
  button: string
  /** Other buttons of the form. */
  buttons?: Html
  /** The action ends or stops something. */
  stops?: boolean
  isOpen?: boolean
  /** The id of the form, for controls and links elsewhere (default: the last piece of `/page/action`; no page has two of these). */
  id?: string
}

/** Draws an action. A first click shows what the action will do, and a second click does it. */
export const act = ({
  button,
  buttons,
  summary = `${button}…`,
  to,
  about,
  effect,
  fields,
  stops,
  isOpen,
  id = /^\/[a-z-]+\/([a-z-]+)$/.exec(to)?.[1],
}: ActionForm): Html =>
  html`<details class="act${stops && ' stop'}"${isOpen && ' open'}><summary>${summary}</summary><form method="post" action="${to}"${id && html` id="${id}"`}><p>${about}</p>${fields}${effectList(effect)}<button class="${stops ? 'stop' : 'go'}">${button}</button>${buttons}</form></details>`

/** Draws an action that is open again after it failed. */
export const actOf = (visit: Visit, form: ActionForm): Html =>
  act({ ...form, isOpen: typedFor(visit, form.to.split('/').at(-1)).faults.size > 0 || form.isOpen === true })

export function notNow(...given: (string | false)[]): Html | undefined {
  const reasons = given.filter((reason) => reason !== false)
  return reasons.length === 0
    ? undefined
    : html`<ul class="not-now">${reasons.map((reason) => html`<li>${reason}</li>`)}</ul>`
}

/** Shows what operators may do, or tells a viewer why not. @param what the actions: `Release, ignore` */
export const forOperators = (what: string, visit: Pick<Visit, 'caller'>, content: Piece): Piece =>
  visit.caller.role === 'viewer' ? notNow(needsRole(what, 'operator', visit)) : content

/** Says why a reader may not take some actions. @param what the actions: `Release, ignore` */
export const needsRole = (what: string, role: PersonRole, { caller }: Pick<Visit, 'caller'>): string =>
  `${what}: ${/,| and /.test(what) ? 'they need' : 'it needs'} the role ${role}; you are ${caller.role}.`

export interface TextField {
  label: string
  name: string
  /** The text in the field before the person types. Text that was typed before a failure comes first. */
  value?: string
  isRequired?: boolean
  maxLength?: number
  isShort?: boolean
  isDecimal?: boolean
  /** A secret is not shown while it is typed, and never shown again. */
  isSecret?: boolean
  /** What the field is for, below it. */
  about?: Piece
  /** Makes the id unique where a page has several fields of one name. */
  at?: string
}

/** Draws a field of one line, with the typed text and what is wrong with that text. */
export function textField({ form, faults }: Typed, field: TextField): Html {
  const {
    label,
    name,
    value = '',
    isRequired = false,
    maxLength = 200,
    isShort,
    isDecimal,
    isSecret,
    about,
    at = '',
  } = field
  const id = `f-${name}${at && `-${at}`}`
  const fault = faults.get(name)
  const described = fault && html` aria-invalid="true" aria-describedby="${id}-fault"`
  const input = html`<input type="${isSecret ? 'password' : 'text'}" id="${id}" name="${name}" value="${isSecret ? '' : (form.get(name) ?? value)}" maxlength="${maxLength}" autocomplete="off"${isShort && html` class="short"`}${isDecimal && html` inputmode="decimal"`}${isRequired && ' required'}${described}>`
  return html`<label for="${id}">${label}${input}</label>${about && html`<p class="small quiet">${about}</p>`}${fault && html`<p class="fault small" id="${id}-fault">${fault}</p>`}`
}

export const reasonField = (visit: Typed, at = ''): Html =>
  textField(visit, { label: 'Reason, for the audit log', name: 'reason', isRequired: true, at })

export const maybeReasonField = (visit: Typed, at: string): Html =>
  textField(visit, { label: 'Reason, for the audit log (optional)', name: 'reason', maxLength: 500, at })

export function maybeReason(form: URLSearchParams): { reason?: string } {
  const { reason } = textsIn(form, 'reason')
  return reason ? { reason } : {}
}

/** Returns what was typed into some fields, without the spaces at the ends that people copy. */
export const textsIn = <const N extends string>(form: URLSearchParams, ...names: N[]) =>
  Object.fromEntries(names.map((name) => [name, (form.get(name) ?? '').trim()])) as Record<N, string>

/**
 * Reads numbers as people type them: `12,5` is 12.5, and `20 %` is 20 where a percentage is asked for. `1,250` may mean either, so
 * it stays and is refused.
 */
export const numbersIn = <const N extends string>(form: URLSearchParams, ...names: N[]) =>
  Object.fromEntries(
    names.map((name) => {
      const text = (form.get(name) ?? '').trim()
      const bare = /(percent|markup|margin)$/i.test(name) ? text.replace(/\s*%$/, '') : text
      return [name, bare.replace(/^(\d+),(\d{1,2})$/, '$1.$2')]
    }),
  ) as Record<N, string>

export const hidden = (name: string, value: string): Html => html`<input type="hidden" name="${name}" value="${value}">`

/** Prepares one of several forms with the same fields. The one that sent this name and value gets what was typed into it. */
export function formOf(visit: Typed, name: string, value: string) {
  const typed = visit.form.get(name) === value ? visit : { form: new URLSearchParams(), faults: new Map() }
  return { typed, own: hidden(name, value), isOpen: typed.faults.size > 0 }
}

export interface Choice {
  value: string
  label: Piece
  about?: Piece
  effect?: Effect
}

/** Draws a decision: all choices with their effects side by side. No choice is made in advance. */
export const pick = (name: string, choices: readonly Choice[]): Html =>
  html`<ul class="pick">${choices.map(
    ({ value, label, about, effect }) =>
      html`<li><input type="radio" id="${name}-${value}" name="${name}" value="${value}" required><label for="${name}-${value}">${label}</label>${about && html`<p class="quiet">${about}</p>`}${effect && effectList(effect)}</li>`,
  )}</ul>`

export interface SelectField {
  label: string
  name: string
  /** In filters, the first option stands for no choice. */
  options: readonly (string | readonly [value: string, text: string])[]
  chosen: string
  isRequired?: boolean
  /** Makes the id unique where a page has several fields of one name. */
  at?: string
}

export function selectField({ label, name, options, chosen, isRequired, at = '' }: SelectField): Html {
  const required = isRequired && ' required'
  const id = `f-${name}${at && `-${at}`}`
  return html`<label for="${id}">${label}<select id="${id}"${required} name="${name}">${options.map((option) => {
    const [value, text] = typeof option === 'string' ? [option, option] : option
    return html`<option value="${value}"${value === chosen && ' selected'}>${text}</option>`
  })}</select></label>`
}

/** Draws a field of one line among filters. @param known texts that are offered while a person types */
export const filterField = (label: string, name: string, value: string, known: readonly string[] = []): Html =>
  html`<label for="f-${name}">${label}<input type="text" id="f-${name}" name="${name}" value="${value}" maxlength="200" autocomplete="off"${known.length > 0 && html` list="f-${name}-known"`}></label>${known.length > 0 && html`<datalist id="f-${name}-known">${known.map((one) => html`<option value="${one}"></option>`)}</datalist>`}`

/** Draws the field of a day in a filter, or of an instant to the minute. A day stands for its first minute, all in UTC. */
export function timeField(label: string, name: string, value: string, by: 'days' | 'minutes'): Html {
  const isDay = by === 'days' && !value.includes('T')
  const shown = isDay || value.includes('T') || value === '' ? value : `${value}T00:00`
  return html`<label for="f-${name}">${label}<input type="${isDay ? 'date' : 'datetime-local'}" id="f-${name}" name="${name}" value="${shown}"></label>`
}

/** Converts the values of two fields of a time to the format of the API; undefined where none was chosen. */
export function timesOf(query: URLSearchParams): { from: string | undefined; to: string | undefined } {
  const instantOf = (given: string | null) =>
    given?.replace(/^(\d{4}-\d\d-\d\d)$/, '$1T00:00').replace(/^([\d-]+T\d\d:\d\d)$/, '$1:00Z')
  return { from: instantOf(query.get('from')), to: instantOf(query.get('to')) }
}

/** Draws the filters of a list. They stand in the address, so that a person can send the list to another person. */
export const filters = (to: string, fields: Piece): Html =>
  html`<form class="filters" method="get" action="${to}" role="search">${fields}<button>Show</button></form>`
