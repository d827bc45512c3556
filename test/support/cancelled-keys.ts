/** A cancellation that was acknowledged. Instants are numbers of one clock, or of one count of events. */
export interface Cancellation {
  reference: string
  /** When the store asked for it. */
  askedAt: number
  /** When it was acknowledged. */
  at: number
}

/** A licence key when the store got it first. */
export interface FirstHandOver {
  key: string
  reference: string
  line: string
  at: number
  /** When a byte of its callback may have left for the first time. */
  begunAt: number
}

/** An operator decided that a store line gets keys: handed over, retried or bought again. */
export interface KeysDecision {
  reference: string
  line: string
  /** When the operator asked for it. */
  at: number
  /** When it was carried out at the latest, since a decision may wait for a worker; default: at once. */
  until?: number
}

/**
 * The rule: no key is first handed over after an acknowledged cancellation, unless its hand-over had begun by then or an
 * operator has decided it since. The newest cancellation counts.
 *
 * @returns a sentence for each key that breaks it
 */
export function keysHandedOverAfterCancellation(
  keys: readonly FirstHandOver[],
  { cancellations, decisions }: { cancellations: readonly Cancellation[]; decisions: readonly KeysDecision[] },
): string[] {
  return keys.flatMap(({ key, reference, line, at, begunAt }) => {
    const before = cancellations.filter((one) => one.reference === reference && one.at < begunAt)
    const newest = before.toSorted((one, other) => other.at - one.at)[0]
    if (!newest) return []
    const ofLine = decisions.filter((one) => one.reference === reference && one.line === line)
    const decided = ofLine.some((one) => (one.until ?? one.at) >= newest.askedAt && one.at <= at)
    return decided ? [] : [`${reference}/${line}: key ${key} was handed over after an acknowledged cancellation`]
  })
}
