/**
 * The shape of the cases of the transition table. A case applies to a purchase in each of the eleven states; `gives` has the
 * outcome of some, and nothing happens in all others. The expectations are written by hand.
 */
import { expect } from 'vitest'
import {
  type Effect,
  type PurchaseFacts,
  type PurchaseInput,
  type PurchaseState,
  purchaseStates,
  type Transition,
  transition,
} from '../../src/domain/purchase.ts'
import { NOW, purchaseIn } from '../support/facts.ts'

export interface Outcome {
  row: string
  /** Absent: the state stays. */
  next?: PurchaseState
  /** Every column that is set; of a note, a phrase. */
  set: Record<string, unknown>
  effects: Effect[]
}

export interface Case {
  when: string
  /** Further facts of the purchase, besides those of its state. */
  facts?: Partial<PurchaseFacts>
  input: PurchaseInput
  /** By states, separated by blanks. */
  gives: Record<string, Outcome>
}

export const to = (next: PurchaseState, row: string, set: Outcome['set'] = {}, effects: Effect[] = []): Outcome => ({
  row,
  next,
  set,
  effects,
})

export const stays = (row: string, set: Outcome['set'] = {}, effects: Effect[] = []): Outcome => ({ row, set, effects })

export const says = (phrase: string): unknown => expect.stringContaining(phrase)

export const decide = (one: Case, state: PurchaseState): Transition | undefined =>
  transition(purchaseIn(state, one.facts), one.input, NOW)

/** What the case expects for each state; in a state that it does not name, nothing. */
export function expected({ gives }: Case): Record<string, unknown> {
  const outcomes: Record<string, unknown> = Object.fromEntries(purchaseStates.map((state) => [state, 'nothing']))
  for (const [states, outcome] of Object.entries(gives)) {
    for (const state of states.split(' ')) {
      if (outcomes[state] !== 'nothing') throw new Error(`${state} is no state, or is named twice`)
      const alert = outcome.effects.includes('alert') ? outcome.row : null
      outcomes[state] = { ...outcome, next: outcome.next ?? state, alert }
    }
  }
  return outcomes
}
