/** What a store makes of its callbacks that keeps the first body of each id and drops repeats, as the documentation asks. */
import type { Heard } from './store.ts'
import type { Witnesses } from './verdict.ts'

/** @param givenUp keys of purchases that the operator gave up, or that a restore took away for good: see `keysGivenUp` */
export function brokenCallbacks(
  { world, customers }: Pick<Witnesses, 'world' | 'customers'>,
  givenUp: ReadonlySet<string>,
): string[] {
  const { store, restoredAt } = world
  // A copy of the database does not know what was said after it was made.
  const changed = store.changed.filter(({ firstAt }) => restoredAt === undefined || firstAt > restoredAt)
  const broken = changed.map(({ id }) => `callback ${id} came again with another body`)
  for (const { reference, lines } of customers.placed) {
    const isClosed = store.heard.some(({ type, data }) => type === 'order.closed' && data.reference === reference)
    for (const { id, quantity } of lines) {
      if (isClosed && unitsReportedOf(store.heard, reference, id) < quantity)
        broken.push(`${reference}/${id}: its order was closed with units that neither came nor failed`)
      const own = store.heard.filter(
        ({ type, data }) =>
          type === 'line.fulfilled' && data.reference === reference && data.line === id && data.replaces !== true,
      )
      // After a restore people may give up a part whose keys the store has from before: it hears that the line failed.
      const isGivenUp = store.heard.some(
        ({ type, data, at }) =>
          type === 'line.failed' &&
          data.reference === reference &&
          data.line === id &&
          restoredAt !== undefined &&
          at > restoredAt,
      )
      if (isGivenUp) continue
      // A copy of the database knows no key of a purchase that was made after it, and that people gave up.
      const known = ({ at }: Heard, key: string) => restoredAt === undefined || at > restoredAt || !givenUp.has(key)
      // A restore may forget that a key came in place of another one: it then comes once more as any key of the line.
      const replacing = new Set(
        store.heard.flatMap(({ data, at }) =>
          data.replaces === true && restoredAt !== undefined && at < restoredAt ? (data.keys as string[]) : [],
        ),
      )
      const counts = (heard: Heard, key: string) => known(heard, key) && !replacing.has(key)
      const keys = new Set(own.flatMap((heard) => (heard.data.keys as string[]).filter((key) => counts(heard, key))))
      // After a restore a line may become complete by a callback that the store has from before: it drops that as a repeat.
      const dropped = store.changed.filter(
        ({ firstAt, data }) =>
          restoredAt !== undefined && firstAt <= restoredAt && data.reference === reference && data.line === id,
      )
      const isComplete = [...own, ...dropped].some(({ data }) => data.complete === true)
      if (keys.size === quantity && !isComplete) broken.push(`${reference}/${id}: the store never saw complete`)
    }
  }
  return broken
}

/** Units of a line whose keys came, or that were said to have failed, however often. */
function unitsReportedOf(heard: readonly Heard[], reference: string, line: string): number {
  const own = heard.filter(({ data }) => data.reference === reference && data.line === line)
  const keys = own.flatMap(({ type, data }) =>
    type === 'line.fulfilled' && data.replaces !== true ? (data.keys as string[]) : [],
  )
  const failed = own.flatMap(({ type, data }) => (type === 'line.failed' ? [Number(data.quantity)] : []))
  return failed.reduce((sum, units) => sum + units, new Set(keys).size)
}
