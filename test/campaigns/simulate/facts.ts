/** How each order of a shop stood, and when: by the shop itself, whatever Quayside has read of it. */

/** `waits`: nothing is to be bought or handed over for now. */
export type ShopStanding = 'paid' | 'waits' | 'cancelled'

export interface ShopFact {
  standing: ShopStanding
  /** Line -> units that are neither refunded nor removed, as far as they are paid. */
  units: ReadonlyMap<string, number>
  /** Line of which the shop holds units back -> units that it lets be delivered all the same. */
  mayShip?: ReadonlyMap<string, number>
  /** Such a line -> units that are fulfilled, also by hand: their keys may come later. */
  shipped?: ReadonlyMap<string, number>
}

export interface DatedFact extends ShopFact {
  /** From then on, in virtual time. */
  at: number
}

export type Facts = ReturnType<typeof createFacts>

export function createFacts(now: () => number) {
  const histories = new Map<string, DatedFact[]>()
  return {
    /** To be called after whatever may have changed an order. */
    note: (reference: string, fact: ShopFact): void => {
      const history = histories.get(reference) ?? []
      histories.set(reference, history)
      const last = history.at(-1)
      if (last && textOf(last) === textOf(fact)) return
      history.push({ ...fact, at: now() })
    },
    /** The oldest first. */
    of: (reference: string): readonly DatedFact[] => histories.get(reference) ?? [],
    now: (reference: string): DatedFact | undefined => histories.get(reference)?.at(-1),
    /** Lines of orders that were paid at some instant. */
    everPaid: (): number =>
      [...histories.values()].reduce((sum, history) => {
        const paid = history.filter(({ standing }) => standing === 'paid')
        return sum + new Set(paid.flatMap(({ units }) => [...units.keys()])).size
      }, 0),
    /** The facts of which each was true at an instant between two, both included. */
    between: (reference: string, from: number, to: number): DatedFact[] =>
      (histories.get(reference) ?? []).filter(
        ({ at }, place, all) => at <= to && (all[place + 1]?.at ?? Number.POSITIVE_INFINITY) >= from,
      ),
  }
}

const textOf = ({ standing, units, mayShip = new Map(), shipped = new Map() }: ShopFact): string =>
  JSON.stringify([standing, [...units].sort(), [...mayShip].sort(), [...shipped].sort()])

/** Units of a line that a fact entitles to. */
export const unitsOf = ({ standing, units }: ShopFact, line: string): number =>
  standing === 'paid' ? (units.get(line) ?? 0) : 0
