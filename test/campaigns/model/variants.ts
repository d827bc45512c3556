/**
 * Wrong variants of the system: each is one small mistake, and each has to be caught by the promise that it breaks.
 */

import type { PurchaseFacts, PurchaseInput, Transition } from '../../../src/domain/purchase.ts'
import { isStandingHold } from '../../../src/domain/purchase.ts'
import { explore, type Fault } from './explore.ts'
import { coarse, type Rules, rules } from './rules.ts'
import { type Ending, endings, hanging } from './settle.ts'
import type { World } from './state.ts'
import { type Bounds, type Promised, promises } from './step.ts'

export interface Variant {
  name: string
  /** What is done wrong. */
  does: string
  breaks: Promised | Ending
  /** The supplier against whom it fails. */
  world: World
  change: Partial<Rules>
  bounds?: Partial<Bounds>
}

/** Enough for nearly all of them: the first send, its repeat, and a generation after that. */
export const variantBounds: Bounds = {
  sends: 2,
  generations: 2,
  crashes: true,
  cancels: false,
  oddities: 0,
  quantity: 1,
  changes: 0,
  lateReadings: false,
}

/** The first send of an order that its shop changes once. */
const changing = { sends: 1, generations: 1, quantity: 2, changes: 1 } as const

/** @returns the shortest way to what the variant breaks; undefined when it is not caught */
export function faultOf({ breaks, world, change, bounds }: Variant): Fault | undefined {
  const watched = promises.filter((promise) => promise === breaks)
  const explored = explore({
    rules: { ...rules, durations: coarse, ...change },
    bounds: { ...variantBounds, ...bounds },
    worlds: [world],
    watched,
    stops: true,
  })
  const faults = watched.length > 0 ? explored.faults : hanging(explored)
  return faults.find(({ promise }) => promise === breaks)
}

type Facts = Partial<PurchaseFacts>
/** Gives the transition function other facts for one kind of input. */
const given =
  (type: PurchaseInput['type'], set: (facts: PurchaseFacts) => Facts): Rules['facts'] =>
  (facts, input) =>
    input.type === type ? { ...facts, ...set(facts) } : facts

/** Does something else with what the transition function says. */
const instead =
  (change: (decision: Transition, facts: PurchaseFacts, input: PurchaseInput) => Partial<Transition> | undefined) =>
  (facts: PurchaseFacts, input: PurchaseInput, now: number): Transition | undefined => {
    const decision = rules.transition(facts, input, now)
    return decision && { ...decision, ...change(decision, facts, input) }
  }

const buyAgain: Transition['effects'] = [{ plan: null, notBefore: null }]

export const variants: readonly Variant[] = [
  {
    name: 'random-key',
    does: 'each send draws a key of its own',
    breaks: 'one charge per part',
    world: 'remembers',
    change: { keySent: (_, sends) => sends },
  },
  {
    name: 'server-error-is-failure',
    does: 'a 5xx or a timeout is taken for a refusal',
    breaks: 'one charge per part',
    world: 'remembers',
    change: {
      answer: (kind, purchase, order) => rules.answer(kind === 'lost' ? 'out_of_stock' : kind, purchase, order),
    },
  },
  {
    name: 'trusted-rejection',
    does: 'the refusal of a repeat is taken for a proof about the first send',
    breaks: 'one charge per part',
    world: 'remembers',
    change: {
      answer: (kind, purchase, order) => rules.answer(kind, { ...purchase, maybeCharged: false }, order),
      facts: given('answer', () => ({ maybeChargedAt: null })),
    },
    bounds: { sends: 3 },
  },
  {
    name: 'charge-forgotten',
    does: 'a repeat forgets that the send before it may have been charged',
    breaks: 'one charge per part',
    world: 'remembers',
    change: {
      transition: instead(({ row, set }) =>
        row === 'sent_again' ? { set: { ...set, maybeChargedAt: null } } : undefined,
      ),
    },
    bounds: { sends: 3 },
  },
  {
    name: 'no-settle',
    does: 'a scan counts while the request may still be on its way',
    breaks: 'one charge per part',
    world: 'lists',
    change: { countsFrom: ({ deadline, listLag }) => deadline + listLag },
  },
  {
    name: 'no-list-lag',
    does: 'a scan counts while the order may not show in the list yet',
    breaks: 'one charge per part',
    world: 'lists',
    // A lag of one tick would be covered by the time between the two scans.
    change: { countsFrom: ({ deadline, settle }) => deadline + settle, durations: { ...coarse, listLag: 2 } },
  },
  {
    name: 'single-look-up',
    does: 'one look-up without the order proves that there is none, however early',
    breaks: 'one charge per part',
    world: 'lists',
    change: { scans: 1, countsFrom: () => 0 },
  },
  {
    name: 'counted-from-first-send',
    does: 'scans count from the first send, not from its repeat',
    breaks: 'one charge per part',
    world: 'lists',
    change: { repeatsCount: false },
    bounds: { sends: 3, generations: 1 },
  },
  {
    name: 'late-write',
    does: 'a request is written as long as its lease allows, but scans count from its intent',
    breaks: 'one charge per part',
    world: 'lists',
    change: {
      mayWrite: (left, { deadline }) => left > deadline,
      countsFrom: ({ settle, listLag }) => settle + listLag,
    },
  },
  {
    name: 'old-scan-counted',
    does: 'a scan that began before the last send counts as the first of two',
    breaks: 'what is unknown is given up only after a proof of absence',
    world: 'lists',
    change: { dropsOldScans: false },
    bounds: { sends: 3, generations: 1 },
  },
  {
    name: 'intent-not-persisted',
    does: 'a request leaves before the intent to send it is stored',
    breaks: 'one charge per part',
    world: 'lists',
    change: { intentFirst: false },
  },
  {
    name: 'resent-after-crash',
    does: 'what was being sent when the process died is sent again at once',
    breaks: 'one charge per part',
    world: 'lists',
    change: { transition: instead(({ row }) => (row === 'lost' ? { next: 'planned' } : undefined)) },
  },
  {
    name: 'short-lease',
    does: 'the lease is shorter than a request may take, so that nothing checks it before the write',
    breaks: 'one charge per part',
    world: 'remembers',
    change: { durations: { ...coarse, deadline: 2, lease: 1 }, mayWrite: () => true },
  },
  {
    name: 'key-reused-after-rejection',
    does: 'a key that was answered with a rejection is sent again',
    breaks: 'a rejected key is not sent again',
    world: 'remembers',
    change: { nextKey: (key) => key },
  },
  {
    name: 'old-key-repeated',
    does: 'a request is repeated after the supplier may have forgotten its key',
    breaks: 'one charge per part',
    world: 'remembers',
    change: { facts: given('absent', () => ({ keySafeUntil: Number.POSITIVE_INFINITY })) },
  },
  {
    name: 'new-key-after-absence',
    does: 'what no list shows is bought again under another key, not repeated under its own',
    breaks: 'one charge per part',
    world: 'remembers',
    change: {
      transition: instead(({ row }) => (row === 'sent_again' ? { next: 'rejected', effects: buyAgain } : undefined)),
    },
  },
  {
    name: 'bought-beside-unknown',
    does: 'the next generation is planned while the one before is unknown',
    breaks: 'one charge per part',
    world: 'remembers',
    change: {
      oneOpen: false,
      mayBuy: () => true,
      transition: instead(({ next }, facts) =>
        next === 'unknown' && facts.newest ? { effects: buyAgain } : undefined,
      ),
    },
  },
  {
    name: 'refund-assumed',
    does: 'a failed order is taken for refunded although nothing says so',
    breaks: 'one charge per part',
    world: 'remembers',
    change: {
      transition: instead(({ row }, facts) =>
        row === 'retried' && facts.state === 'failed' ? { set: { refundedAt: 0 } } : undefined,
      ),
    },
  },
  {
    name: 'bytes-rebuilt',
    does: 'a repeat carries bytes that are made again, not those that were stored',
    breaks: 'a request carries the bytes stored with its key',
    world: 'remembers',
    change: { bytesStored: (purchase) => !purchase.maybeCharged },
  },
  {
    name: 'cancelled-replayed',
    does: 'a request is repeated although the store has cancelled',
    breaks: 'nothing is sent once a cancellation was asked for',
    world: 'remembers',
    change: { facts: given('absent', () => ({ cancelRequestedAt: null })) },
    bounds: { cancels: true, generations: 1 },
  },
  {
    name: 'freeze-overlooked',
    does: 'a repeat leaves although buying is frozen',
    breaks: 'nothing is sent while buying is frozen',
    world: 'neither',
    change: {
      freezeStops: false,
      transition: (facts, input, now) =>
        rules.transition(facts, input.type === 'absent' ? { ...input, frozen: false } : input, now),
    },
    bounds: { sends: 3, generations: 2 },
  },
  {
    name: 'second-order-ignored',
    does: 'of several orders that are found only the first is looked at',
    breaks: 'a second order freezes buying',
    world: 'neither',
    change: {
      transition: (facts, input, now) =>
        rules.transition(facts, input.type === 'found' ? { ...input, orders: input.orders.slice(0, 1) } : input, now),
    },
    bounds: { generations: 1 },
  },
  {
    name: 'decision-overridden',
    does: 'a scan that began before a person decided brings the purchase back',
    breaks: 'what a person decided stays decided',
    world: 'remembers',
    change: { asksLate: false },
  },
  {
    name: 'foreign-read',
    does: 'a read that began before a person adopted another order is applied to that one',
    breaks: 'only its own order is read into a purchase',
    world: 'neither',
    change: { dropsOldReads: false },
    bounds: { generations: 1 },
  },
  {
    name: 'keys-handed-over-twice',
    does: 'each reading hands over all keys that are stored',
    breaks: 'keys are handed over once',
    world: 'remembers',
    change: { handsOverOnce: false },
    bounds: { oddities: 1, generations: 1 },
  },
  {
    name: 'intent-unguarded',
    does: 'the intent of a purchase is stored without a look at its order, which a reading has changed since its turn came',
    breaks: 'nothing is bought beyond what the order entitles to',
    world: 'remembers',
    change: { entitled: () => true },
    bounds: { ...changing, quantity: 1 },
  },
  {
    name: 'larger-repeat',
    does: 'a request is repeated as it was, although fewer units are ordered by now',
    breaks: 'nothing is bought beyond what the order entitles to',
    world: 'remembers',
    change: {
      facts: given('absent', () => ({ surplus: 0 })),
      entitled: (purchase, place, others) =>
        rules.entitled(purchase.state === 'unknown' ? { ...purchase, quantity: 0 } : purchase, place, others),
    },
    bounds: { ...changing, sends: 2 },
  },
  {
    name: 'hold-released-by-hand',
    does: 'a person who releases a purchase releases it from what its order is waiting for, too',
    breaks: 'nothing is bought beyond what the order entitles to',
    world: 'remembers',
    change: {
      decides: (type) => type === 'released' || rules.decides(type),
      facts: given('released', ({ holdReason }) => ({
        holdReason: isStandingHold(holdReason) ? 'ceiling' : holdReason,
      })),
    },
    bounds: { ...changing, quantity: 1 },
  },
  {
    name: 'surplus-delivered',
    does: 'all keys that came are delivered, also those of units that are not ordered any more',
    breaks: 'no key leaves that the order does not entitle to',
    world: 'remembers',
    change: { due: ({ quantity }) => quantity },
    bounds: changing,
  },
  {
    name: 'order-unread',
    does: 'keys are written into an order that was not read before',
    breaks: 'no key leaves that the order does not entitle to',
    world: 'remembers',
    change: { readsBeforeHandOver: false },
    bounds: { ...changing, quantity: 1 },
  },
  {
    name: 'wish-repeated',
    does: 'a next generation does not know since which wish it is there',
    breaks: 'one wish has a part bought again once',
    world: 'remembers',
    change: {
      settle: (parts, entitlement, options) =>
        rules.settle(
          parts.map((part) => ({ ...part, plannedRevision: 0 })),
          entitlement,
          options,
        ),
    },
    bounds: { ...changing, quantity: 1, sends: 2, generations: 2, crashes: false },
  },
  {
    name: 'replacement-ended',
    does: 'a key in place of another one counts as a further unit of its line, and is taken back as surplus',
    breaks: 'a replacement that the order entitles to is not taken back',
    world: 'remembers',
    change: {
      settle: (parts, entitlement, options) =>
        rules.settle(
          parts.map((part) => ({ ...part, isReplacement: false })),
          entitlement,
          options,
        ),
    },
    bounds: { ...changing, quantity: 1, replaces: true },
  },
  {
    name: 'old-reading-believed',
    does: 'a reading counts in full although a later one was stored since it was asked for',
    breaks: 'an older reading gives nothing back',
    world: 'remembers',
    change: { dropsOvertaken: false },
    bounds: { ...changing, quantity: 1, lateReadings: true },
  },
  {
    name: 'hand-over-unconfirmed',
    does: "the store's yes counts only when exactly as many keys came as were ordered",
    breaks: endings[0],
    world: 'remembers',
    change: { confirms: (keysStored) => keysStored === 1 },
    bounds: { sends: 1, oddities: 1, generations: 1 },
  },
  {
    name: 'lost-send-forgotten',
    does: 'no worker asks what became of a request whose sender died',
    breaks: endings[1],
    world: 'remembers',
    change: {
      transition: (facts, input, now) => (input.type === 'lost' ? undefined : rules.transition(facts, input, now)),
    },
    bounds: { sends: 1, generations: 1 },
  },
]
