/* What the check of a dialect says of a setting. */

export type SettingVerdict =
  /** An answer has a readable value where the setting says. */
  | 'read'
  /** An answer must have a value where the setting says, and no such value can be read: the dialect is wrong. */
  | 'unreadable'
  /** An answer, or the document, contradicts the dialect: the dialect is wrong. */
  | 'differs'
  /** No record has the value, and the value is optional. */
  | 'missing'
  /** The dialect says that the supplier has no such thing. */
  | 'none'
  /** There was no record to check: no order yet, no webhook yet. */
  | 'no_sample'
  /** No answer shows the value, and the document agrees with the dialect. */
  | 'documented'
  /** Neither an answer nor the document shows the value: a person must ask the supplier. */
  | 'not_shown'
  /** Only an order, or a delivery about one, can show the value. */
  | 'needs_order'

export interface DialectFinding {
  /** The setting: `product.cost`. */
  fact: string
  dialect: unknown
  verdict: SettingVerdict
  /** The value that was read, or the wrong value that is there, for people. */
  value?: string
  /** The value that an answer shows to be right. */
  right?: unknown
  hint?: string
  /** Paths in the real answers that could be meant. */
  candidates?: { path: string; value: string }[]
}

/** A finding before the value of the dialect is filled in. */
export type Judged = Omit<DialectFinding, 'dialect'>

/** Whether a finding means that the dialect is wrong. */
export const isFault = ({ verdict }: Pick<DialectFinding, 'verdict'>): boolean =>
  verdict === 'unreadable' || verdict === 'differs'

type More = Pick<Judged, 'right' | 'hint' | 'candidates'>

export const read = (fact: string, value: string): Judged => ({ fact, verdict: 'read', value })
export const noSample = (fact: string, value: string): Judged => ({ fact, verdict: 'no_sample', value })
export function differs(fact: string, value: string, more: More = {}): Judged {
  return { fact, verdict: 'differs', value, ...more }
}
export function unreadable(fact: string, value: string, more: More = {}): Judged {
  return { fact, verdict: 'unreadable', value, ...more }
}

export const compared = (fact: string, setting: unknown, right: unknown, value: string): Judged =>
  setting === right ? { ...read(fact, value), right } : differs(fact, value, { right })

/** A path that the supplier does not answer at. */
export const notThere = (fact: string, { status }: { status: number }): Judged =>
  differs(fact, `it answered ${status}`, { hint: 'ask where it is' })
