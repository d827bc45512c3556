/** The claims of an order: which of its keys do not work, the message for the supplier, and the decisions of an operator. */

import { type Html, html } from '../domain/html.ts'
import { hasLeft } from '../domain/store-order.ts'
import type { AnswerOf } from '../http/api/table.ts'
import { splitActor } from './audit.ts'
import {
  act,
  actOf,
  formOf,
  forOperators,
  maybeReason,
  maybeReasonField,
  reasonField,
  selectField,
  textField,
  textsIn,
  typedFor,
} from './forms.ts'
import { facts, section } from './lists.ts'
import { mark } from './marks.ts'
import { orderPath } from './orders.ts'
import { byOperator, done, type Page, type Visit } from './page.ts'
import { clockTag, sentenceStart } from './words.ts'

type Claim = NonNullable<AnswerOf<'viewOrder'>['claims']>[number]

const decisions = {
  adopt: {
    operation: 'adoptClaimKey',
    button: 'Give the new key of the supplier',
    about: 'Takes the key that the supplier sent you in place of this one. It is sealed at once, and not shown again.',
    effect: { Money: 'Nothing is spent.', Store: 'Gets the new key now.', Undo: 'None: keys cannot be called back.' },
  },
  'buy-again': {
    operation: 'buyClaimAgain',
    button: 'Buy one unit again',
    about: 'Buys one unit under the ceiling of the order and the spend caps. Its key takes the place of this one.',
    effect: { Money: 'One unit more.', Store: 'Gets the new key when it comes.', Undo: 'Not once it is sent.' },
  },
  refuse: {
    operation: 'refuseClaim',
    button: 'Refuse the claim',
    about: 'Ends the claim. The customer gets no other key.',
    effect: { Money: 'Nothing is spent.', Store: 'Hears nothing of it.', Undo: 'Raise another claim about the key.' },
  },
} as const

export const claimActions: NonNullable<Page['actions']> = {
  claim: byOperator(async ({ call, form }) => {
    const [id, ordinal] = (form.get('which') ?? '').split(' ')
    const body = { ordinal: Number(ordinal), ...textsIn(form, 'note') }
    const { number } = await call('raiseClaim', { path: { id }, body })
    return done('Raised', `Claim ${number} waits for a decision. Its message for the supplier is on this page.`)
  }),
}
for (const [name, { operation, effect }] of Object.entries(decisions)) {
  claimActions[name] = byOperator(async ({ call, form }) => {
    const body = { ...(form.has('key') && { key: form.get('key') }), ...maybeReason(form) }
    const { number, state } = await call(operation, { path: { number: form.get(name) }, body })
    return done(sentenceStart(state), `Claim ${number} has ended. The store ${effect.Store.toLowerCase()}`)
  })
}

/** Draws the claims of an order, the newest first; nothing where no key was delivered and there is no claim. */
export async function claimsOf(order: AnswerOf<'viewOrderHistory'>, visit: Visit): Promise<Html | false> {
  const asked = { path: { reference: order.reference }, query: { store: order.store } }
  const { claims = [] } = await visit.call('viewOrder', asked)
  const claimed = new Set(claims.flatMap((one) => (one.state === 'refused' ? [] : `${one.purchaseId} ${one.ordinal}`)))
  const options = order.lines.flatMap(({ id, name, sku, keys }) =>
    keys.flatMap((key) => {
      const { purchaseId, ordinal } = key
      const value = `${purchaseId} ${ordinal}`
      if (!hasLeft(key) || claimed.has(value)) return []
      return [[value, `Line ${id}, key ${ordinal} of purchase ${purchaseId}: ${name ?? sku}`] as const]
    }),
  )
  if (options.length === 0 && claims.length === 0) return false
  const here = orderPath(order)
  const which = { label: 'Key', name: 'which', options: options.length === 1 ? options : ['', ...options] }
  const note = { label: 'What is wrong with it, for the supplier', name: 'note', isRequired: true, maxLength: 500 }
  const raise = actOf(visit, {
    summary: 'Say that a key does not work…',
    to: `${here}/claim`,
    about: 'Raises a claim about a key that was delivered, and writes the message for the supplier, without the key.',
    effect: { Money: 'Nothing is bought.', Store: 'Hears nothing of it.', Undo: 'Refuse the claim.' },
    fields: html`${selectField({ ...which, chosen: typedFor(visit, 'claim').form.get('which') ?? '', isRequired: true })}${textField(typedFor(visit, 'claim'), note)}`,
    button: 'Raise the claim',
  })
  const shown = await Promise.all(claims.toReversed().map((claim) => claimOf(claim, here, visit)))
  const actions = forOperators('Claim, decide', visit, options.length > 0 && html`<div>${raise}</div>`)
  return section('claims', 'Keys that do not work', html`${shown}${actions}`)
}

/** Draws the field of a new key, which may have several lines. What was typed is never sent back. */
const keyField = (fault?: string): Html =>
  html`<label>The new key<textarea name="key" rows="2" autocomplete="off" spellcheck="false" required></textarea></label>${fault && html`<p class="fault small">${fault}</p>`}`

async function claimOf(claim: Claim, here: string, visit: Visit): Promise<Html> {
  const { number, state, purchaseId, ordinal, name, sku, note, endedAt, reason, replacedBy } = claim
  const message = state === 'open' && (await visit.call('viewClaim', { path: { number: `${number}` } })).message
  const at = (instant: string, by: string | null) =>
    html`${clockTag(instant, visit.now)} by <bdi>${by && splitActor({ actor: by }).name}</bdi>`
  const id = (purchase: string) => html`purchase <a class="id" href="/reviews/${purchase}">${purchase}</a>`
  const forms = Object.entries(decisions).map(([deed, { operation: _, ...form }]) => {
    const { typed, own, isOpen } = formOf(visit, deed, `${number}`)
    const why = (deed === 'refuse' ? reasonField : maybeReasonField)(typed, `${deed}-${number}`)
    const key = deed === 'adopt' && keyField(typed.faults.get('key'))
    return act({
      ...form,
      to: `${here}/${deed}`,
      fields: html`${own}${key}${why}`,
      isOpen,
      stops: deed === 'refuse',
    })
  })
  const all = facts([
    ['Key', html`key ${ordinal} of ${id(purchaseId)}, <bdi>${name ?? sku}</bdi>`],
    ['Note', html`<bdi>${note}</bdi>`],
    ['Raised', at(claim.raisedAt, claim.raisedBy)],
    endedAt === null ? ['Decide by', clockTag(claim.deadlineAt, visit.now)] : ['Ended', at(endedAt, claim.endedBy)],
    reason !== null && ['Reason', html`<bdi>${reason}</bdi>`],
    replacedBy !== null && ['In its place', id(replacedBy)],
  ])
  return html`<div class="stack"><div class="head"><h3>Claim ${number}</h3>${mark(state === 'open' ? 'review' : state === 'refused' ? 'off' : 'done', state)}</div>${all}${message && html`<p class="small quiet">For the supplier, without the key:</p><pre tabindex="0"><bdi>${message}</bdi></pre>`}${message && visit.caller.role !== 'viewer' && html`<div>${forms}</div>`}</div>`
}
