/** A value that is kept once: two equal ones are the same object, under the same number. */
export type Kept<T> = Readonly<T> & { readonly number: number }

/**
 * Keeps each value of a kind once, so that a state of the model is a few small numbers.
 *
 * Numbers count from 1; 0 stands for nothing. Values are flat records, all with the same fields in the same order.
 */
export function createPool<T extends object>() {
  const byText = new Map<string, Kept<T>>()
  const all: Kept<T>[] = []
  /** For each value, what became of it by a change: most changes are made over and over. */
  const changes: Map<string, Kept<T>>[] = []
  const keep = (value: T): Kept<T> => {
    const text = textOf(value)
    let kept = byText.get(text)
    if (!kept) {
      kept = { ...value, number: all.length + 1 }
      byText.set(text, kept)
      all.push(kept)
      changes.push(new Map())
    }
    return kept
  }
  return {
    keep,
    /** The value with some fields changed. */
    change(value: Kept<T>, set: Partial<T>): Kept<T> {
      const known = changes[value.number - 1]
      const text = textOf(set)
      let kept = known?.get(text)
      if (!kept) {
        kept = keep({ ...value, ...set })
        known?.set(text, kept)
      }
      return kept
    },
    /** @returns undefined for 0 */
    numbered: (number: number): Kept<T> | undefined => all[number - 1],
  }
}

function textOf(fields: object): string {
  let text = ''
  for (const name in fields) if (name !== 'number') text += `${name}${fields[name as never]} `
  return text
}
