/** Several rows at once: the boxes that select them, one form for all, and what became of each. */

import { beginning } from '../domain/free-text.ts'
import { type Html, html } from '../domain/html.ts'
import { outcomeLabels, type SeveralLabel } from '../domain/labels.ts'
import { Failure } from '../errors.ts'
import { outcomesOf } from '../http/answers.ts'
import { type ActionForm, act, reasonField, textsIn } from './forms.ts'
import { section } from './lists.ts'
import { stateMark } from './marks.ts'
import type { Shown, Visit } from './page.ts'
import { table, withQuery } from './tables.ts'
import { countedInWords, sentenceOf } from './words.ts'

/** How many rows one request deals with: each is an action of its own, and a person waits for all of them. */
export const AT_ONCE = 100

type Drawn = Pick<ActionForm, 'fields' | 'buttons' | 'isOpen'> & { money?: string }

/** What people call a row, and what the action has to know of it, as it was shown. */
export type Row = readonly [label: string, ...facts: string[]]

/** What of a long name is sent: a hundred rows fit into a form, in letters that take nine characters there, too. */
const LABEL_MAX = 60

export const textOf = ([label, ...facts]: Row): string =>
  [beginning(label.replaceAll('\t', ' '), LABEL_MAX), ...facts].join('\t')

/** Draws the box that selects a row for the form of this name. The address may say `select=all` or `select=none`. */
export function tick({ form, query }: Visit, name: string, row: Row, isByDefault = false): Html {
  const select = query.get('select') ?? (isByDefault ? 'all' : 'none')
  const isOn = form.size > 0 ? form.getAll('row').includes(textOf(row)) : select === 'all'
  return html`<input type="checkbox" name="row" value="${textOf(row)}" form="${name}" aria-label="Select ${row[0]}"${isOn && ' checked'}> `
}

/** Draws the form of the rows that are selected, with the query of the page. @param name that of the action @param at the page */
export function actOnSeveral(visit: Visit, label: SeveralLabel, at: string, name: string, drawn: Drawn = {}): Html {
  const { money = label.money, fields, isOpen = true, ...more } = drawn
  const fault = visit.faults.get('row')
  const kept = [...visit.query].filter(([one]) => one !== 'select')
  const select = (which: string) => withQuery(at, new URLSearchParams([...kept, ['select', which]]))
  return html`<div>${act({
    ...more,
    id: name,
    to: withQuery(`${at}/${name}`, new URLSearchParams(kept)),
    summary: `${label.word}: several at once…`,
    about: label.about,
    fields: html`<p class="small"><a href="${select('all')}">Select all</a> or <a href="${select('none')}">none</a></p>${fault && html`<p class="fault small">${fault}</p>`}${fields}${label.isReasoned && reasonField(visit, name)}`,
    effect: { Money: money, ...(label.stores && { Stores: label.stores }), Undo: label.undo },
    button: `${label.word} what is selected`,
    isOpen: isOpen || visit.faults.size > 0,
  })}</div>`
}

/** Returns the rows that were selected. @throws Failure `invalid`, beside the field */
export function selectedRows(form: URLSearchParams, isReasoned = false): Row[] {
  const rows = form.getAll('row').map((text) => text.split('\t') as [string])
  const invalid = (field: string, message: string) => new Failure('invalid', message, { fields: [{ field, message }] })
  if (rows.length === 0) throw invalid('row', 'no row is selected: select some in the list above')
  if (rows.length > AT_ONCE) throw invalid('row', `at most ${AT_ONCE} rows can be selected: nothing was done`)
  if (isReasoned && textsIn(form, 'reason').reason === '') throw invalid('reason', 'say why: the audit log keeps it')
  return rows
}

/** Acts on the rows that are selected, see `outcomesOf`. @param at the path of the list @returns what became of each, as a page */
export async function doToEach(
  { form, query }: Visit,
  { said, next, isReasoned }: SeveralLabel,
  at: string,
  act: (row: Row) => Promise<unknown>,
): Promise<Shown> {
  const rows = await outcomesOf(selectedRows(form, isReasoned), act)
  const of = Map.groupBy(rows, ({ is }) => is)
  const counts = (['done', 'changed', 'refused', 'unknown'] as const).map((is) => of.get(is)?.length)
  const [done = 0, changed = 0, refused = 0, unknown = 0] = counts
  const results = table<(typeof rows)[number]>({
    caption: 'What became of each',
    rows,
    columns: [
      ['What', ({ row }) => html`<bdi>${row[0]}</bdi>`],
      ['Outcome', ({ is }) => stateMark(outcomeLabels[is]), 'top'],
      ['Why', ({ why }) => (typeof why === 'string' ? sentenceOf(why) : why)],
    ],
  })
  const main = html`<header class="title"><h1>${done} of ${rows.length} ${said}</h1><p>${done > 0 && next}${changed > 0 && ` ${countedInWords(changed, 'had', 'had')} changed meanwhile: nothing was done.`}${refused > 0 && ` ${countedInWords(refused, 'was', 'were')} refused.`}${unknown > 0 && ` ${countedInWords(unknown, 'is', 'are')} unknown: look whether it was done before you do it again.`}</p></header>
${section('each-h', 'Each of them', html`${results}<p><a class="button" href="${withQuery(at, query)}">Back to the list</a></p>`)}`
  return { title: 'What became of them', main }
}
