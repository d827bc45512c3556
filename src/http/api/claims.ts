import { z } from 'zod'
import { claimOutcomes } from '../../domain/claim.ts'
import { Failure } from '../../errors.ts'
import {
  adoptKey,
  buyAgain,
  type ClaimView,
  claimNumbered,
  claimViews,
  messageOfClaim,
  raiseClaim,
  refuseClaim,
} from '../../ordering/claims.ts'
import { listClaims } from '../../storage/claims.ts'
import { adoptKeyBody, choice, claimBody, claimStates, maybeReasonBody, reasonBody } from '../input.ts'
import { type ApiContext, created, ok, operation, operator, viewer } from '../operation.ts'
import { listOperation } from './list-operation.ts'
import { at, component, maybeAt, view, words } from './views.ts'

const entry = component('ClaimEntry', {
  number: z.int().describe('Its number, as people say it'),
  state: z.enum(['open', ...claimOutcomes]).describe('Open, or how a person ended it'),
  order: z.object({ store: z.string(), reference: z.string(), line: z.string() }),
  sku: z.string().describe('As the store wrote it'),
  name: words.describe('Of the product'),
  purchaseId: z.string().describe('The purchase whose key does not work'),
  ordinal: z.int().describe('Which key of the purchase, from 1'),
  note: z.string().describe('What the operator wrote about it'),
  raisedAt: at,
  raisedBy: z.string(),
  deadlineAt: at.describe('People are alerted if it is open then'),
  endedAt: maybeAt,
  endedBy: words,
  reason: words.describe('Why it ended so'),
  replacedBy: words.describe('The purchase whose key takes the place of this one'),
})
type Row = ClaimView & { id: string }
const shown = ({ outcome, ...claim }: Row) => ({ ...claim, state: outcome ?? ('open' as const) })
export const ClaimEntry = view(entry, shown)

const Claim = view(
  component('Claim', {
    ...entry.shape,
    message: z.string().describe('All that the supplier needs to know, without the key'),
  }),
  ({ message, ...claim }: Row & { message: string }) => ({ ...shown(claim), message }),
)

/** The operations of claims: an operator says that a key does not work, and decides what the customer gets in its place. */
export function claimOperations({ ordering, config }: ApiContext) {
  const { db } = ordering
  const numberIn = (path: { number: string }): number => {
    if (!/^\d{1,9}$/.test(path.number)) throw new Failure('not_found', `there is no claim ${path.number}`)
    return Number(path.number)
  }
  const detailOf = async (number: number) => {
    const claim = await claimNumbered(ordering, number)
    const [shownNow] = await claimViews(db, [claim])
    return { ...(shownNow as ClaimView), message: await messageOfClaim(ordering, claim) }
  }
  const decision = {
    allowed: operator,
    answer: Claim,
    failures: {
      404: 'unknown number',
      409: '`not_open`: it has ended; `order_held`: the order is not paid; `order_changed`; `order_too_old`; `withdrawn`; `bought_already`; `frozen`; `restore_unfinished`',
    },
  } as const
  return {
    listClaims: listOperation({
      route: 'GET /claims',
      allowed: viewer,
      summary: 'Claims that keys do not work, the newest first.',
      filters: { state: choice(claimStates, 'Only claims that are open, or that ended') },
      item: ClaimEntry,
      success: { 200: 'A page of claims' },
      db,
      read: ({ state, ...asked }) =>
        listClaims({ ...asked, isOpen: state === undefined ? undefined : Number(state === 'open') }),
      show: (rows) => claimViews(db, rows),
    }),
    viewClaim: operation({
      route: 'GET /claims/:number',
      allowed: viewer,
      summary: 'One claim, with all that the supplier needs to know in one text.',
      answer: Claim,
      success: { 200: 'The claim' },
      failures: { 404: 'unknown number' },
      handle: async ({ path }) => ok(await detailOf(numberIn(path))),
    }),
    raiseClaim: operation({
      route: 'POST /purchases/:id/claims',
      allowed: operator,
      summary: 'Say that a key that the customer has does not work. The answer has the text for the supplier.',
      body: claimBody,
      answer: Claim,
      success: { 201: 'Raised' },
      failures: {
        404: 'unknown id, or the purchase has no such key',
        409: '`no_keys`: the key was not delivered; `claimed`: there is a claim about the key',
      },
      async handle({ caller, path, body }) {
        const { number } = await raiseClaim(ordering, path.id, { ...body, days: config.keys.claimDays }, caller.actor)
        return created(await detailOf(number))
      },
    }),
    buyClaimAgain: operation({
      route: 'POST /claims/:number/buy-again',
      ...decision,
      summary: 'Buy one unit again in place of the key, under the ceiling of the order and the spend caps.',
      body: maybeReasonBody,
      success: { 200: 'Ended; the replacement is planned' },
      async handle({ caller, path, body: { reason } }) {
        await buyAgain(ordering, numberIn(path), caller.actor, reason)
        return ok(await detailOf(numberIn(path)))
      },
    }),
    adoptClaimKey: operation({
      route: 'POST /claims/:number/adopt',
      ...decision,
      summary: "Take the supplier's new key in place of the key. It is sealed at once, and delivered at no cost.",
      body: adoptKeyBody,
      success: { 200: 'Ended; the new key is delivered' },
      failures: {
        ...decision.failures,
        409: `${decision.failures[409]}; \`key_known\`: a purchase has the key already`,
      },
      async handle({ caller, path, body: { key, reason } }) {
        await adoptKey(ordering, numberIn(path), key, caller.actor, reason)
        return ok(await detailOf(numberIn(path)))
      },
    }),
    refuseClaim: operation({
      route: 'POST /claims/:number/refuse',
      ...decision,
      summary: 'End a claim without another key.',
      body: reasonBody,
      success: { 200: 'Ended' },
      failures: { 404: 'unknown number', 409: '`not_open`: it has ended' },
      async handle({ caller, path, body: { reason } }) {
        await refuseClaim(ordering, numberIn(path), caller.actor, reason)
        return ok(await detailOf(numberIn(path)))
      },
    }),
  }
}
