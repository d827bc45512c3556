/** Values at the dotted paths of a dialect, and yes or no in its words. */

/** The value at a dotted path; undefined where the way there ends. Own properties only. */
export function valueAt(record: unknown, dotted: string): unknown {
  if (dotted === '') return record
  let value = record
  for (const key of dotted.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<string, unknown>)[key]
  }
  return value
}

/** The path of the object that a value stands in; that of a record's own field is the record. */
export const parentOf = (dotted: string): string => dotted.slice(0, Math.max(0, dotted.lastIndexOf('.')))

/** How the supplier writes yes or no: the first word that the dialect lists. */
export function flagValue(words: Record<string, boolean> | null, flag: boolean): boolean | string {
  if (words === null) return flag
  return Object.keys(words).find((word) => words[word] === flag) ?? String(flag)
}

/** Writes a value at a dotted path, making the objects on the way. The paths come from a dialect, never from input. */
export function putAt(record: Record<string, unknown>, dotted: string, value: unknown): void {
  const keys = dotted.split('.')
  const last = keys.pop() as string
  let place = record
  for (const key of keys) {
    const next = Object.hasOwn(place, key) ? place[key] : undefined
    const inner = typeof next === 'object' && next !== null ? (next as Record<string, unknown>) : {}
    place[key] = inner
    place = inner
  }
  place[last] = value
}
