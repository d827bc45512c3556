/** Which rows of the transition table decided something, in which state. */
import { rows } from '../../../src/domain/purchase.ts'

const reached = new Set<string>()

/** Cells that no seed can reach, with the reason. */
export const outOfReach: Readonly<Record<string, string>> = {
  'named in sending':
    'the supplier of the simulation speaks the shipped dialect, in which no answer to an order is its id alone; ' +
    'test/ordering/named.test.ts has suppliers whose answers are',
  'orphan_on_record in waiting':
    "a sweep takes an order under the reference of a stored purchase as that purchase's own; only a sweep that looked in " +
    'the instant before it was stored records an orphan behind its first send, and statements take no time here',
}

/** `completed in accepted`: a row of the table, and one of the states that it names. */
export const cells: readonly string[] = rows
  .flatMap(({ name, states }) => states.map((state) => `${name} in ${state}`))
  .filter((cell) => !(cell in outOfReach))

// The rows are what the program itself decides by; looking over their shoulder changes nothing.
for (const row of rows) {
  const { decide } = row
  row.decide = (facts, input, now) => {
    const outcome = decide(facts, input, now)
    if (outcome) reached.add(`${row.name} in ${facts.state}`)
    return outcome
  }
}

/** The cells that were reached since the last call. */
export function takeReached(): string[] {
  const taken = [...reached]
  reached.clear()
  return taken
}
