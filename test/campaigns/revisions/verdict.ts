/** By which revision of the settings each purchase was planned and sent, and whether that revision was in force. Pure. */

export interface AppliedRevision {
  revision: number
  /** The ceiling: the cost and so many per cent. Each revision has another one. */
  percent: number
  /** Whether it lets nothing be bought. */
  isCapped: boolean
  /** Epoch ms: when it was first asked for, and when its answer had come. */
  askedAt: number
  inForceAt: number
}

export interface Bought {
  reference: string
  ceilingMinor: number
  costMinor: number
  /** Epoch ms: when the store began to send the order, and when the order was taken. */
  begunAt: number
  takenAt: number
  /** When its request to the supplier was first decided on; null: never. */
  firstSentAt: number | null
}

/** @param applied in their order @returns a sentence for each purchase that was bought by a revision that was not in force */
export function judgeRevisions(applied: readonly AppliedRevision[], bought: readonly Bought[]): string[] {
  return bought.flatMap(({ reference, ceilingMinor, costMinor, begunAt, takenAt, firstSentAt }) => {
    const faults: string[] = []
    const planned = applied.filter(({ percent }) => Math.abs(ceilingMinor - costMinor * (1 + percent / 100)) < 1)
    const isRight = planned.some(({ revision, askedAt }) => {
      const next = applied.find((one) => one.revision === revision + 1)
      return askedAt <= takenAt && begunAt <= (next?.inForceAt ?? Number.POSITIVE_INFINITY)
    })
    if (!isRight) {
      const by = planned.map(({ revision }) => revision).join(' or ') || 'no revision'
      const newest = applied.findLast(({ inForceAt }) => inForceAt < begunAt)?.revision
      faults.push(`${reference} has the ceiling of ${by}, and ${newest} was in force before it was sent`)
    }
    const capped = applied.find(({ revision, isCapped, inForceAt }) => {
      const next = applied.find((one) => one.revision === revision + 1)
      return (
        isCapped &&
        firstSentAt !== null &&
        inForceAt < firstSentAt &&
        firstSentAt < (next?.askedAt ?? Number.POSITIVE_INFINITY)
      )
    })
    if (capped) faults.push(`${reference} was bought while revision ${capped.revision} let nothing be bought`)
    return faults
  })
}
