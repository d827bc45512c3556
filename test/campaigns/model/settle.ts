/** That nothing hangs: from every state some path leads to an end. */
import type { Explored, Fault } from './explore.ts'

export const endings = [
  'with the help of people all can be settled',
  'without the help of people all can be settled, or a person be asked',
] as const
export type Ending = (typeof endings)[number]

/** The endings that some state has no path to, each with the way to the nearest such state. */
export function hanging(explored: Explored): Fault[] {
  return endings.flatMap((promise, place) => {
    const people = place === 0
    const ends = (state: number) => explored.settled(state) || (!people && explored.asks(state))
    const stuck = firstStuck(explored, ends, people)
    return stuck < 0 ? [] : [{ promise, trace: [...explored.traceTo(stuck), 'no end can be reached from here'] }]
  })
}

/** @returns the nearest state from which no path leads to an end; -1 when there is none */
function firstStuck({ states, leads }: Explored, ends: (state: number) => boolean, people: boolean): number {
  const good = new Uint8Array(states)
  for (let state = 0; state < states; state += 1) good[state] = ends(state) ? 1 : 0
  // Steps lead to later states more often than not, so that going backwards finds most of them at once.
  for (let found = true; found; ) {
    found = false
    for (let state = states - 1; state >= 0; state -= 1) {
      if (good[state] === 1) continue
      if (!leads(state, (to, byPerson) => good[to] === 1 && (people || !byPerson))) continue
      good[state] = 1
      found = true
    }
  }
  return good.indexOf(0)
}
