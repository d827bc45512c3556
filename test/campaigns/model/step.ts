/** What the parts of the model share: how they say what happens next, and what must never happen. */
import type { Decisions } from './purchase-facts.ts'
import type { Rules } from './rules.ts'
import type { State } from './state.ts'

/** The promises. Each is checked in every state, or at the step that could break it. */
export const promises = [
  'one charge per part',
  'one request at a time',
  'the intent is stored before the request leaves',
  'a request carries the bytes stored with its key',
  'a rejected key is not sent again',
  'nothing is sent once a cancellation was asked for',
  'nothing is sent while buying is frozen',
  'what is unknown is given up only after a proof of absence',
  'keys are handed over once',
  'a second order freezes buying',
  'what a person decided stays decided',
  'only its own order is read into a purchase',
  'nothing is bought beyond what the order entitles to',
  'no key leaves that the order does not entitle to',
  'one wish has a part bought again once',
  'an older reading gives nothing back',
  'a replacement that the order entitles to is not taken back',
] as const
export type Promised = (typeof promises)[number]

export interface Step {
  next: State
  /** What happened, in a line for people. */
  says: () => string
  broken?: Promised | undefined
  /** A person did it. */
  byPerson?: boolean
}

export type Emit = (step: Step) => void

export interface Bounds {
  sends: number
  generations: 1 | 2
  /** Workers and processes die, any number of times. */
  crashes: boolean
  /** The store cancels, any number of times. */
  cancels: boolean
  /**
   * How often something odd happens: the supplier makes an order of other contents or changes one, shows too few, too
   * many, early or used keys, fails an order whose keys came; or an internal error comes eight times in a row.
   */
  oddities: number
  /** Units of the line, which are bought at once. */
  quantity: 1 | 2
  /** How often the shop changes the order: how it stands, its units, or a wish to try again. */
  changes: number
  /** A reading may be stored after a later one. */
  lateReadings: boolean
  /** The part replaces a key that does not work, which another part has delivered. */
  replaces?: boolean
}

/** What the parts of the model work with. */
export interface Model {
  rules: Rules
  bounds: Bounds
  emit: Emit
  decisions: Decisions
  /** Rows of the transition table that were taken, each with the state it was taken in. */
  reached: Set<string>
}
