/**
 * The words for people: each state, hold and reason has its word, its sign and its meaning. The API's document, the console,
 * the command line, notes in shops and messages read these words here, so that all of them say the same.
 */

import type { Condition } from './conditions.ts'
import { countText } from './figures.ts'
import type { ListingState } from './listing.ts'
import type { HeldReason } from './pricing.ts'
import type { Unclear } from './publication.ts'
import type { HoldReason, PurchaseState, WayIntoReview } from './purchase.ts'
import type { LineState, NoMargin, OrderState } from './store-order.ts'
import type { WaitReason } from './store-update.ts'
import type { WaitCause, WaitHelp } from './waiting.ts'

/** In this order: done; under way; planned; held by a rule; a person must look; failed or stopped; cancelled or ignored. */
export type Sign = 'done' | 'moving' | 'planned' | 'held' | 'review' | 'stop' | 'off'

export interface Label {
  word: string
  sign: Sign
  /** Half a sentence: "it is being bought". */
  means: string
}

/** Returns what each name means, for the document of the API. */
export const meansOf = <K extends string>(labels: Record<K, Pick<Label, 'means'>>): Record<K, string> =>
  Object.fromEntries(Object.entries<Pick<Label, 'means'>>(labels).map(([name, { means }]) => [name, means])) as Record<
    K,
    string
  >

/** Writes a name that has no label of its own as words, such as the name of a row of the transition table or a supplier's code. */
export const plainName = (name: string): string => name.replaceAll('_', ' ')

/** Returns the word of a label, or the name itself when this version has no label for it. */
export const wordOf = (labels: Record<string, Pick<Label, 'word'>>, name: string): string =>
  labels[name]?.word ?? plainName(name)

/** Writes `3 open, 10,000+ fulfilled`, without the counts of zero. @param upTo where counting stopped */
export const countsByWord = (
  counts: Record<string, number>,
  labels: Record<string, Pick<Label, 'word'>>,
  upTo?: number,
): string =>
  Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${countText(count, upTo)} ${wordOf(labels, name)}`)
    .join(', ')

export const orderLabels: Record<OrderState, Label> = {
  open: { word: 'open', sign: 'moving', means: 'some line has not ended' },
  fulfilled: { word: 'fulfilled', sign: 'done', means: 'every line got all its keys' },
  partly_fulfilled: {
    word: 'partly fulfilled',
    sign: 'moving',
    means: 'all lines have ended, and only some keys came',
  },
  failed: { word: 'failed', sign: 'stop', means: 'all lines have ended without a key, one of them because it failed' },
  cancelled: { word: 'cancelled', sign: 'off', means: 'all lines were cancelled before a key came' },
}

export const lineLabels: Record<LineState, Label> = {
  not_ours: {
    word: 'not ours',
    sign: 'planned',
    means: 'the SKU is none of the listings: nothing is bought, and the state of the order leaves it out',
  },
  open: { word: 'open', sign: 'moving', means: 'it is being bought' },
  held: { word: 'held', sign: 'held', means: 'it waits: `holdReason` of its purchases says for what' },
  partly_fulfilled: { word: 'partly fulfilled', sign: 'moving', means: 'some keys are handed over, and more may come' },
  fulfilled: { word: 'fulfilled', sign: 'done', means: 'all keys are handed over' },
  failed: { word: 'failed', sign: 'stop', means: 'it has ended: no keys but the `delivered` ones come' },
  cancelled: {
    word: 'cancelled',
    sign: 'off',
    means: 'it was cancelled, or an operator closed it: no keys but the `delivered` ones come',
  },
}

export const noMarginLabels: Record<NoMargin, Pick<Label, 'means'>> = {
  no_sale_price: { means: 'the store does not state the price' },
  other_currency: { means: 'the price is in another currency than the cost' },
  keys_missing: { means: 'not all of its keys are with the store' },
}

/** `became`: the change into the state, as an entry of an order's timeline. */
export const purchaseLabels: Record<PurchaseState, Label & { became: string }> = {
  planned: { word: 'planned', sign: 'planned', means: 'it is to be sent', became: 'Planned again' },
  waiting: {
    word: 'waiting',
    sign: 'planned',
    means: 'nothing was charged: it is sent again later',
    became: 'Waits for its next try',
  },
  sending: {
    word: 'sending',
    sign: 'moving',
    means: 'it is being sent, or its answer is awaited',
    became: 'Sent to the supplier',
  },
  unknown: {
    word: 'unknown',
    sign: 'review',
    means: 'it may be charged: it is looked up at the supplier',
    became: 'What became of it is not known',
  },
  accepted: {
    word: 'accepted',
    sign: 'moving',
    means: 'the supplier has taken it: its keys are to come',
    became: 'The supplier has it',
  },
  completed: {
    word: 'completed',
    sign: 'done',
    means: 'its keys have come and are being handed over',
    became: 'All its keys came',
  },
  fulfilled: { word: 'fulfilled', sign: 'done', means: 'the store has its keys', became: 'The store has its keys' },
  rejected: {
    word: 'rejected',
    sign: 'stop',
    means: 'the supplier refused it: nothing was charged',
    became: 'The supplier refused it',
  },
  failed: {
    word: 'failed',
    sign: 'stop',
    means: 'the supplier took it and did not deliver',
    became: 'The supplier did not deliver',
  },
  cancelled: {
    word: 'cancelled',
    sign: 'off',
    means: 'it was given up: nothing was charged, or an operator closed it',
    became: 'Ended without keys',
  },
  review: {
    word: 'in review',
    sign: 'review',
    means: 'it waits for the decision of an operator',
    became: 'To review: a person decides',
  },
}

interface HoldLabel {
  /** In few words: "out of stock". */
  word: string
  /** Half a sentence: "the supplier has none left". */
  means: string
  /** What the purchase waits for, in sentences for the people who run Quayside. */
  next: string
}

export const holdLabels: Record<HoldReason, HoldLabel> = {
  out_of_stock: {
    word: 'out of stock',
    means: 'the supplier has none left',
    next: 'The supplier has too little of it. It is bought once there is stock, or a price event says so.',
  },
  balance: {
    word: 'balance too low',
    means: 'the balance at the supplier is too low',
    next: 'The balance at the supplier is too low. Top it up, and buying goes on by itself.',
  },
  ceiling: {
    word: 'cost above the ceiling',
    means: 'a unit costs more than its ceiling',
    next: 'A unit costs more than the order allows. Buying goes on by itself if the cost falls, or when you release it with a new ceiling.',
  },
  spend_cap: {
    word: 'spend cap reached',
    means: 'a spend cap of the order, the hour or the day is reached',
    next: 'A spend cap of the order, the hour or the day is reached. Buying goes on by itself when there is room again, or when you release it.',
  },
  frozen: {
    word: 'buying is frozen',
    means: 'all buying is stopped',
    next: 'All buying is frozen. Lift the freeze on the overview.',
  },
  unpaid: {
    word: 'not paid',
    means: 'its order is not paid in the shop',
    next: 'The order is not paid in the shop now. It goes on by itself once it is.',
  },
  held_by_store: {
    word: 'held by the shop',
    means: 'the shop holds its order, or its fulfilment',
    next: 'The shop holds the order, or a person must look at it there. It goes on by itself once the shop lets it go.',
  },
  store_away: {
    word: 'shop does not answer',
    means: 'its shop does not say how the order stands now',
    next: 'Nothing is bought before the shop says that the order is still paid. It goes on once the shop answers.',
  },
  offer_unreadable: {
    word: 'offer cannot be read',
    means: 'the supplier does not say what its offer costs now',
    next: 'The supplier gives no readable answer about the product. It goes on once it does.',
  },
  not_entitled: {
    word: 'not in the order any more',
    means: 'its order has fewer units now than were planned',
    next: 'The order in the shop has fewer units than were planned. It goes on once both agree.',
  },
}

/** Why a customer waits for a key. `word` has five words at most, and `short` names the cause where there is little room. */
export const waitLabels: Record<WaitCause, Label & { short: string }> = {
  review: {
    word: 'A person must decide',
    short: 'Review',
    sign: 'review',
    means: 'a purchase is in review, and only a decision moves it',
  },
  failed: {
    word: 'Failed, no key comes',
    short: 'Failed',
    sign: 'stop',
    means: 'the purchase ended without a key, and the customer is still entitled to it',
  },
  outage: {
    word: 'Failed by an outage',
    short: 'Outage',
    sign: 'stop',
    means: 'the supplier did not answer before the deadline of the purchase, which ended without a key',
  },
  undeliverable: {
    word: 'Store did not take keys',
    short: 'Dead letter',
    sign: 'stop',
    means: 'the key is here, and its update has used up its attempts',
  },
  frozen: { word: 'Buying is frozen', short: 'Frozen', sign: 'held', means: 'all buying is stopped' },
  ceiling: {
    word: 'Price above your ceiling',
    short: 'Ceiling',
    sign: 'held',
    means: 'a unit costs more than its ceiling',
  },
  balance: { word: 'Balance too low', short: 'Balance', sign: 'held', means: 'the balance at the supplier is too low' },
  spend_cap: { word: 'Spend cap reached', short: 'Spend cap', sign: 'held', means: 'a spend cap is reached' },
  held_by_store: {
    word: 'Held in the shop',
    short: 'Held in shop',
    sign: 'held',
    means: 'the order is paid, and a person must look at it in its shop first',
  },
  added: {
    word: 'Added later, not bought',
    short: 'Added',
    sign: 'held',
    means: 'the order has more units now than were bought, and a person must agree to buy them',
  },
  unreadable: {
    word: 'Supplier answer cannot be read',
    short: 'Unreadable',
    sign: 'held',
    means: 'buying is paused, because an answer of the supplier cannot be read',
  },
  offer_unreadable: {
    word: 'Offer cannot be read',
    short: 'Offer unread',
    sign: 'held',
    means: 'the supplier does not say what the product costs now',
  },
  out_of_stock: {
    word: 'Out of stock at supplier',
    short: 'Out of stock',
    sign: 'held',
    means: 'the supplier has none left: it is bought once there is stock',
  },
  store_away: {
    word: 'The store does not answer',
    short: 'Store away',
    sign: 'moving',
    means: 'the store does not take the key, or does not say that the order is still paid: it is asked again',
  },
  not_entitled: {
    word: 'Compared with the shop again',
    short: 'Compared',
    sign: 'moving',
    means: 'the order has fewer units now than were planned, and both are compared again',
  },
  unknown: {
    word: 'Answer lost, being looked up',
    short: 'Looked up',
    sign: 'moving',
    means: 'the purchase may be charged: it is looked up at the supplier',
  },
  supplier_away: {
    word: 'The supplier does not answer',
    short: 'Supplier away',
    sign: 'moving',
    means: 'it goes on when the supplier is back',
  },
  coming: {
    word: 'The supplier prepares the key',
    short: 'Coming',
    sign: 'moving',
    means: 'the supplier has the order, and its key is to come',
  },
  buying: { word: 'Being bought', short: 'Buying', sign: 'moving', means: 'it is being bought' },
  delivering: {
    word: 'On its way to store',
    short: 'Delivering',
    sign: 'moving',
    means: 'the key is here, and the store is being given it',
  },
}

/** What helps a customer who waits: the text of the button. A text that ends in "…" leads to a form or a page. */
export const helpLabels: Record<WaitHelp, { word: string; means: string }> = {
  decide: { word: 'Decide…', means: 'decide on the purchase in review' },
  retry: { word: 'Retry…', means: 'buy the units again, as a new purchase' },
  send_again: { word: 'Send again', means: 'send the update to the store now' },
  unfreeze: { word: 'Unfreeze…', means: 'lift the freeze' },
  release: { word: 'Release…', means: 'release the purchase, with a new ceiling or beyond the spend caps' },
  top_up: { word: 'Top up…', means: 'top up the balance at the supplier' },
  proceed: { word: 'Continue…', means: 'look at the order in its shop, then continue it' },
  take: { word: 'Buy them…', means: 'agree to buy the units that came later' },
  try_now: { word: 'Try now', means: 'try the purchase again now, under the rules and the ceiling that it has' },
  look_now: { word: 'Look now', means: 'look up or read the order at the supplier now' },
  look: { word: 'See the order', means: 'nothing needs to be done: the order shows how it goes on' },
}

/** What a store and its merchant read about units that wait. */
export const heldSentences: Record<WaitReason, string> = {
  late: 'it takes longer than usual, and Quayside goes on with it',
  out_of_stock: 'the supplier has none left: it is bought once there is stock again',
  balance: 'the balance at the supplier is too low: it is bought after a top-up',
  ceiling: 'the cost is above what this order allows: the people who run Quayside decide',
  unpaid: 'the order is not paid now, and goes on once it is',
  held_by_store: 'the order, or its fulfilment, is held in the shop, and goes on once that ends',
  store_away: 'the shop did not say how the order stands, and is asked again',
  offer_unreadable: 'the supplier did not say what it costs, and is asked again',
  not_entitled: 'the order has fewer units now than were to be bought, and both are compared again',
}

export const listingLabels: Record<ListingState, Label> = {
  synced: { word: 'synced', sign: 'done', means: 'the store has confirmed what it should have' },
  pending: { word: 'pending', sign: 'moving', means: 'it is on its way to the store' },
  held: { word: 'held', sign: 'held', means: 'a person must decide' },
  failed: { word: 'failed', sign: 'stop', means: 'the store did not take it; it is tried again' },
  ignored: { word: 'ignored', sign: 'off', means: 'a person has excluded it' },
}

/** Remarks of a store about a listing that it has taken: a person should look at them. */
export const listingNotices = ['stock_elsewhere', 'requires_shipping', 'sale_price'] as const
export type ListingNotice = (typeof listingNotices)[number]

/** Why a listing is held, failed, without stock or worth a look, in few words. The listing's `detail` is the full sentence. */
export const listingReasons = {
  ambiguous_sku: 'ambiguous SKU',
  missing: 'no offer',
  duplicate_sku: 'duplicate SKU',
  cost_missing: 'no cost',
  cost_zero: 'cost zero',
  cost_negative: 'cost below zero',
  cost_currency: 'cost in another currency',
  no_rate: 'no rate',
  too_large: 'too large',
  price_jump: 'price jump',
  gone: 'gone',
  filtered: 'filtered out',
  unlinked: 'not linked',
  paused: 'store paused',
  ignored: 'ignored',
  refused: 'refused',
  unavailable: 'no answer',
  not_acknowledged: 'not acknowledged',
  echo_differs: 'the store has something else',
  not_created: 'not created',
  stock_elsewhere: 'stock at another location',
  requires_shipping: 'requires shipping',
  sale_price: 'sale price in the shop',
} as const satisfies Record<Unclear | HeldReason | 'price_jump' | ListingNotice, string> & Record<string, string>
export type ListingReason = keyof typeof listingReasons

/** Returns the words of a reason, or its name when this version has no words for it. */
export const reasonText = (reason: string): string =>
  (listingReasons as Record<string, string>)[reason] ?? plainName(reason)

export const deliveryStates = ['stored', 'applied', 'ignored', 'orphan', 'quarantined', 'retry', 'dead'] as const
export type DeliveryState = (typeof deliveryStates)[number]
/** The labels stand in the order of the list from which a person chooses a state. */
export const deliveryLabels: Record<DeliveryState, Label> = {
  stored: { word: 'stored', sign: 'moving', means: 'waits for its turn' },
  retry: { word: 'retry', sign: 'moving', means: 'failed, and is tried again on its own' },
  orphan: { word: 'orphan', sign: 'review', means: 'names an order that is not known here yet' },
  applied: { word: 'applied', sign: 'done', means: 'did what it had to do' },
  ignored: { word: 'ignored', sign: 'off', means: 'says nothing that concerns this installation' },
  quarantined: { word: 'quarantined', sign: 'stop', means: 'is authentic and cannot be read: the dialect is wrong' },
  dead: { word: 'dead', sign: 'stop', means: 'used up its attempts: a person must look' },
}

export const effectStates = ['due', 'done', 'dead'] as const
export type EffectState = (typeof effectStates)[number]
export const effectLabels: Record<EffectState, Label> = {
  due: { word: 'due', sign: 'moving', means: 'it waits for its next attempt' },
  done: { word: 'done', sign: 'done', means: 'it was taken' },
  dead: { word: 'dead', sign: 'stop', means: 'it used up its attempts' },
}

/** The states of a sync run, a dry run or a sweep. */
export const runStates = ['running', 'complete', 'failed', 'interrupted', 'stopped'] as const
export type RunState = (typeof runStates)[number]
export const runLabels: Record<RunState, Label> = {
  running: { word: 'running', sign: 'moving', means: 'it goes on' },
  complete: { word: 'complete', sign: 'done', means: 'it read everything' },
  failed: { word: 'failed', sign: 'stop', means: 'it ended by an error' },
  interrupted: { word: 'interrupted', sign: 'off', means: 'the service was stopped meanwhile' },
  stopped: { word: 'stopped', sign: 'off', means: 'a person stopped it' },
}

/** Differences between our purchases and the supplier's orders: each has a title, and says what to do. */
export const discrepancyLabels = {
  orphan: {
    word: 'Order without a purchase',
    means:
      'The supplier has an order under a reference of our stores that no purchase here has. Find out who placed it.',
  },
  missing: {
    word: 'Purchase without its order',
    means: 'The supplier no longer knows an order that it took. Ask the supplier.',
  },
  double_charge: {
    word: 'Charged twice',
    means: 'Two orders of the supplier are for one part of an order. Ask the supplier to give one back.',
  },
  reversed: {
    word: 'Taken back',
    means: 'The supplier took an order back after it was complete. Its keys may be worthless: tell the customer.',
  },
  over_ceiling: { word: 'Dearer than allowed', means: 'The supplier charged more for a unit than its ceiling.' },
  late: { word: 'Late', means: 'The supplier has had an order open for a day. Ask the supplier.' },
  balance_unexplained: {
    word: 'Money that our orders do not explain',
    means: 'The balance fell by more than our orders explain. Find out who else uses the API key.',
  },
} as const satisfies Record<string, { word: string; means: string }>
export type DiscrepancyKind = keyof typeof discrepancyLabels

/** Decisions about a purchase in review: the words of a button, and the same words for the report "Decided: ...". */
export const decisionLabels = {
  adopt: { word: 'Adopt an order', said: 'adopt the order' },
  hand_over: { word: 'Hand over the keys that came', said: 'hand over what came' },
  close: { word: 'Close it', said: 'close it' },
  buy_again: { word: 'Write it off and buy again', said: 'write it off and buy again' },
} as const

/** What became of one row of several. */
export const outcomeLabels = {
  done: { word: 'done', sign: 'done' },
  changed: { word: 'changed meanwhile', sign: 'held' },
  refused: { word: 'refused', sign: 'stop' },
  unknown: { word: 'unknown', sign: 'review' },
} as const satisfies Record<string, Omit<Label, 'means'>>

/** What a person can do to several things at once. */
export interface SeveralLabel {
  word: string
  about: string
  /** What it costs, what stores get of it, and whether it can be undone. */
  money: string
  stores?: string
  undo: string
  /** What was done, after a count, and what follows. */
  said: string
  next: string
  /** It needs a reason, for the audit. */
  isReasoned?: boolean
}

const inTheQueue = 'What comes of them is in the queue within seconds.'

export const severalLabels = {
  retry: {
    word: 'Retry',
    about: 'Buys again what no key came of, each as a new purchase under the ceiling that it had.',
    money: 'Nothing that failed was charged.',
    stores: 'Get the keys when they come. They may have refunded customers by now: look there first.',
    undo: 'Cancel an order before it is sent; it is sent within seconds.',
    said: 'retried',
    next: inTheQueue,
    isReasoned: true,
  },
  try_now: {
    word: 'Try now',
    about: 'Tries each purchase again now. All rules and ceilings stay as they are.',
    money: 'No more than was allowed before.',
    stores: 'Get the keys when they come.',
    undo: 'Not once it is sent.',
    said: 'tried now',
    next: inTheQueue,
  },
  look_now: {
    word: 'Look now',
    about: 'Reads or looks up each order at the supplier now.',
    money: 'Nothing is bought.',
    undo: 'Not needed.',
    said: 'looked at now',
    next: inTheQueue,
  },
  send_again: {
    word: 'Send again',
    about: 'Puts messages back into the outbox, due now, each with all its attempts.',
    money: 'Nothing is bought.',
    stores:
      'Get each message within seconds, under the id that it had: a store that has it already takes it for a repeat.',
    undo: 'Not once a message has left.',
    said: 'sent again',
    next: 'Those that fail again come back to the list.',
  },
  release: {
    word: 'Release',
    about: 'Lets new prices pass, as they are shown. A price that has changed since then is left alone and named.',
    money: 'Nothing is spent. Orders of a listing that you ignore are not bought any more.',
    stores: 'Get released prices within seconds. Of a listing that you ignore they keep what they have, its stock too.',
    undo: 'Release: not by a click. Ignore: take the listing back at any time.',
    said: 'released',
    next: 'Their stores get the prices within seconds.',
    isReasoned: true,
  },
  ignore: {
    word: 'Ignore',
    about: 'Leaves listings alone from now on.',
    money: 'Orders of them are not bought any more.',
    stores: 'Keep what they have, their stock too.',
    undo: 'Take a listing back at any time.',
    said: 'ignored',
    next: 'Their stores keep what they have.',
    isReasoned: true,
  },
  decide: {
    word: 'Decide on',
    about: 'One decision for all. A purchase that does not allow it, or has changed, is left alone and named.',
    money: 'It is said with each decision.',
    undo: 'None. A purchase that is closed can be retried later.',
    said: 'decided',
    next: 'The audit log has your reason.',
    isReasoned: true,
  },
  attend: {
    word: 'Acknowledge or mute',
    about:
      'Of an alert that you look after, people hear once more, when it is over. Of a muted one they hear nothing until then. The alerts themselves stay until what they report is over.',
    money: 'Nothing is bought or held by this.',
    undo: 'A muting can be ended. Who looks after an alert stays on record.',
    said: 'attended',
    next: '',
  },
  replay: {
    word: 'Replay',
    about: 'Puts deliveries back into the inbox, each with a fresh count of attempts.',
    money: 'Nothing is bought. A delivery is only a hint to read an order.',
    stores: 'A key that was handed over does not go out again.',
    undo: 'Not needed: replaying one that was applied is harmless.',
    said: 'replayed',
    next: '',
  },
} as const satisfies Record<string, SeveralLabel>

/** What to do for the customer when units will not come, by reason. These reasons are our own, and no codes of the supplier. */
export const failureAdvice: Record<string, string> = {
  out_of_stock: 'Refund this part of the order, or wait: nothing was bought.',
  cancelled: 'Nothing was bought; refund the customer if that is not done yet.',
  deadline: 'It could not be bought in time and nothing was charged; refund the customer.',
  closed: 'Nothing more of it will come: refund the customer if that is not done yet.',
  short: 'The units that are missing will not come: refund them.',
}
/** The advice for every other reason, such as a code of the supplier. */
export const FAILED_ADVICE = 'The supplier could not deliver; refund the customer or retry the purchase in Quayside.'

/** The kinds of alerts, each in few words. `alerts/kinds` says what each kind is about, and when an alert of it is over. */
export const alertWords = {
  found_one_that_disagrees: 'order found that differs',
  found_several: 'several orders found',
  orphan_on_record: 'order of another database',
  named_order_differs: 'order differs from what was sent',
  named_order_unknown: 'order that the supplier does not know',
  absent_and_not_safe: 'cannot be repeated safely',
  scan_overdue: 'order list unread for a day',
  own_order_disagrees: 'order changed at the supplier',
  keys_not_text: 'key that is no text',
  key_seen_elsewhere: 'key seen on another line',
  too_many_keys: 'too many keys',
  completed_and_cancelled: 'cancelled after it was bought',
  completed_while_held: 'keys wait for a person',
  keys_short: 'too few keys',
  failed_with_keys: 'failed, and keys came',
  cancelled_before_hand_over: 'cancelled before its keys left',
  taken_back_before_hand_over: 'taken back before its keys left',
  found_after_the_end: 'order found after the end',
  absent_and_fewer: 'not bought, and fewer units left to buy',
  poisoned: 'the same error again and again',
  supplier_unreachable: 'supplier unreachable',
  unauthorized: 'API key refused',
  unreadable_answer: 'unreadable answer',
  freeze: 'buying is frozen',
  restored: 'database was put back',
  double_charge: 'charged twice',
  missing: 'order gone at the supplier',
  late: 'order open for a day',
  look_ups_fail: 'purchase that no look-up settles',
  reversed: 'order taken back',
  over_ceiling: 'cost above the ceiling',
  orphan: 'order without a purchase',
  balance_unexplained: 'balance fell unexplained',
  balance_low: 'balance low, says the supplier',
  backup_failed: 'backup failed',
  dead_letter: 'dead letter',
  webhook_unheld: 'webhook without its secret',
  orphan_delivery: 'delivery of a foreign order',
  order_mismatch: 'delivery of a mismatched order',
  delivery_quarantined: 'unreadable delivery',
  delivery_dead: 'dead delivery',
  id_conflict: 'delivery ID used twice',
  all_stale: 'all deliveries are stale',
  listing_failed: 'listing failed',
  order_refused: 'paid order refused',
  order_unread: 'order cannot be read',
  order_before_connection: 'order paid before the connection',
  store_not_configured: 'store not configured',
  order_changed: 'order changed in the shop',
  order_fulfilled_early: 'fulfilled before its keys came',
  order_held: 'paid order waits',
  store_unreachable: 'shop unreachable',
  store_webhook: 'webhook of a shop',
  balance_below: 'balance below its limit',
  balance_runs_out: 'balance runs out',
  sync_stale: 'catalogue is stale',
  listings_not_taken: 'listings not taken',
  updates_not_taken: 'updates not taken',
  deliveries_refused: 'deliveries refused',
  disk_low: 'disk almost full',
  backup_missing: 'backup missing',
  claim_overdue: 'claim open after its deadline',
} as const satisfies Record<WayIntoReview | Condition['type'] | DiscrepancyKind, string> & Record<string, string>

/** The kinds of things that a search finds, in their order. An open order that waits is held or in review. */
export const foundLabels: Record<
  'order' | 'product' | 'purchase' | 'delivery' | 'way',
  { title: string; labels: Record<string, Label> }
> = {
  order: { title: 'Orders', labels: { ...orderLabels, held: lineLabels.held, review: purchaseLabels.review } },
  product: {
    title: 'Products',
    labels: { ...listingLabels, none: { word: 'in no store', sign: 'off', means: 'no store sells it' } },
  },
  purchase: { title: 'Supplier orders', labels: purchaseLabels },
  delivery: { title: 'Deliveries', labels: deliveryLabels },
  way: { title: 'Pages and actions', labels: {} },
}
