export interface Retention {
  /** Most that are kept. */
  count: number
  /** Milliseconds after which one goes, however few there are. */
  ageMs: number
}

/**
 * Which backups have had their time. The newest stays, whatever its age: when backups fail, it is all there is.
 *
 * @param madeAt instants, in any order
 * @returns those that go
 */
export const outdated = <T extends { madeAt: number }>(backups: readonly T[], keep: Retention, now: number): T[] =>
  backups
    .toSorted((a, b) => b.madeAt - a.madeAt)
    .slice(1)
    .filter(({ madeAt }, place) => place + 1 >= keep.count || now - madeAt > keep.ageMs)
