/**
 * The customer's page of an order's keys: which keys it may show, and what it says of the others. A key is shown after a click.
 * Each click is judged by the order as it was last read from its store, so that a shop that is away keeps no key from its customer.
 */
import type { LineState, Standing } from './store-order.ts'

/** A licence key that the store has, or may have. */
export interface PageKey {
  purchaseId: string
  ordinal: number
  /** When the key began to leave for the store. */
  leftAt: number
  /** When the customer first saw the key; null: never. */
  revealedAt: number | null
  /** A person had the key delivered at the newest revision of the order, whatever the order's store said. */
  isDecided: boolean
  /** Set where a person gave another key in place of this one: the number of the claim, and when that was decided. */
  claimed: { number: number; at: number } | null
  /** The number of the claim whose key this one replaces; null: the key brings a unit. */
  replaces: number | null
}

export interface PageLine<K extends PageKey = PageKey> {
  /** The store's own id of the line. */
  id: string
  name: string
  state: LineState
  /** Units that the customer is entitled to by the last reading of the order. */
  entitled: number
  /** Units that the store is to have in all. */
  wanted: number
  keys: K[]
}

export interface PageFacts<K extends PageKey = PageKey> {
  standing: Standing
  /** When a person withdrew the page; null: never. */
  withdrawnAt: number | null
  /** The instant from which the page shows no key any more. */
  closesAt: number
  lines: PageLine<K>[]
}

export type ClosedBecause = 'cancelled' | 'refunded' | 'withdrawn' | 'expired'

/** Decides what a page shows. A closed page says of each key whether it was opened, and shows none. */
export const keyPage = <K extends PageKey>(facts: PageFacts<K>, now: number) => ({
  closed: closedBecause(facts, now),
  lines: facts.lines.map((line) => shownLine(line, facts.standing)),
})

/** @returns null: the page is open */
function closedBecause({ standing, withdrawnAt, closesAt, lines }: PageFacts, now: number): ClosedBecause | null {
  if (withdrawnAt !== null) return 'withdrawn'
  const isDecided = lines.some(({ keys }) => keys.some((key) => key.isDecided))
  if (!isDecided && standing === 'cancelled') return 'cancelled'
  if (!isDecided && lines.every(({ entitled }) => entitled === 0)) return 'refunded'
  return now >= closesAt ? 'expired' : null
}

/**
 * A key that was opened stays shown: it cannot be taken back. Of the others the line shows as many as the customer is still
 * entitled to, and keeps the newest. A unit that was given back is then one that no person has seen. A key that was replaced
 * takes no unit from the others, and gives them none. A held order shows its keys as a paid one does: they were delivered while it
 * was paid, and a plug-in's status "Shipped" reads as held. Against fraud an operator withdraws the page.
 */
function shownLine<K extends PageKey>({ id, name, state, entitled, wanted, keys }: PageLine<K>, standing: Standing) {
  const inOrder = keys.toSorted((a, b) => a.leftAt - b.leftAt || a.ordinal - b.ordinal)
  const opened = inOrder.filter(({ revealedAt, claimed }) => revealedAt !== null && claimed === null).length
  const units = standing === 'paid' || standing === 'held' ? entitled : 0
  let room = units - opened
  const shown = inPlace(
    inOrder.filter(({ revealedAt, isDecided, claimed }) => {
      if (revealedAt !== null || isDecided) return true
      if (claimed !== null) return units > 0
      room -= 1
      return room >= 0
    }),
  )
  const replacementOf = replacements(keys)
  const isMoving = state === 'open' || state === 'held' || state === 'partly_fulfilled'
  const lacking = keys.filter((key) => key.claimed !== null && !replacementOf(key)).length
  const missing = Math.max(0, wanted - keys.filter(({ replaces }) => replaces === null).length) + lacking
  return {
    id,
    name,
    /** Keys that a click may show, the oldest first. A key that came in place of another one stands before that one. */
    keys: shown,
    /** How many of these keys were not replaced. */
    here: shown.filter(({ claimed }) => claimed === null).length,
    /** Keys that are here and not shown, because the order is not paid or has fewer units now. */
    kept: keys.length - shown.length,
    /** Units that are still being bought, and keys that are still to come in place of others. */
    coming: isMoving ? missing : 0,
    /** How many of `coming` are keys in place of others. */
    replacing: isMoving ? lacking : 0,
    /** Whether units of the line will not come. */
    isShort: !isMoving && missing > 0,
  }
}

export type ShownLine<K extends PageKey> = ReturnType<typeof shownLine<K>>

/** Finds among these keys the one that came in place of a key; undefined while there is none. */
export function replacements<K extends PageKey>(keys: readonly K[]): (key: K) => K | undefined {
  const byClaim = Map.groupBy(keys, ({ replaces }) => replaces)
  return ({ claimed }) => (claimed === null ? undefined : byClaim.get(claimed.number)?.[0])
}

/** Moves each key that came in place of another one before that one. */
function inPlace<K extends PageKey>(keys: readonly K[]): K[] {
  const replacementOf = replacements(keys)
  const chain = (key: K): K[] => {
    const next = replacementOf(key)
    return next ? [...chain(next), key] : [key]
  }
  const moved = new Set(keys.map(replacementOf))
  return keys.filter((key) => !moved.has(key)).flatMap(chain)
}

/** How a page's first line counts: keys that are here, and units that are still being bought. */
export const countsOf = ({ lines }: Pick<ReturnType<typeof keyPage>, 'lines'>) => ({
  here: lines.reduce((sum, { here }) => sum + here, 0),
  coming: lines.reduce((sum, { coming }) => sum + coming, 0),
})

/** Returns one of the keys that each click opened for the first time. @param openings each key that was opened, with its first time */
export const clicksOf = <O extends { at: unknown; purchaseId: string }>(openings: readonly O[]): O[] => [
  ...new Map(openings.map((one) => [`${one.purchaseId} ${one.at}`, one])).values(),
]
