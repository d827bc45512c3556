import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { Failure } from '../errors.ts'
import type { Figure, FiguresHead } from './figures.ts'

export interface Compared {
  /** The migrations that the new version made in the copy. */
  migrations: FiguresHead['migrations']
  /** How many figures the new version has. */
  figures: number
  /** What differs, by kind and field: how often, and the first ones. */
  differences: { what: string; count: number; first: { of: string; from: string; to: string }[] }[]
}

const FIRST_MAX = 10

/**
 * Compares the figures of two programs as they come, in bounded memory.
 *
 * @param before undefined: only checks of the new version that fail are a difference
 * @param onProgress called now and then with the number of figures so far
 * @throws Failure `unavailable` where figures break off
 */
export async function compareFigures(
  before: Readable | undefined,
  after: Readable,
  onProgress: (figures: number) => void,
): Promise<Compared> {
  const found = new Map<string, Compared['differences'][number]>()
  const note = (what: string, of: string, ...values: unknown[]): void => {
    const { count, first } = found.get(what) ?? { count: 0, first: [] as { of: string; from: string; to: string }[] }
    const [from = '', to = ''] = values.map((value) => String(value ?? 'none'))
    if (first.length < FIRST_MAX) first.push({ of, from, to })
    found.set(what, { what, count: count + 1, first })
  }
  const [old, next] = [before && linesOf(before), linesOf(after)]
  await old?.()
  const { migrations } = (await next()) as FiguresHead
  const read = async (from = old) => {
    const line = (await from?.()) as Figure | { end: number } | undefined
    return line && 'key' in line ? line : undefined
  }
  let [a, b] = [await read(), await read(next)]
  let figures = 0
  while (a || b) {
    const order = a && b ? keyOrder(a.key, b.key) : a ? -1 : 1
    if (a && order < 0) note(a.kind, a.of, said(a), null)
    else if (b && order > 0 && (old || b.is.level === 'fail')) note(b.kind, b.of, null, said(b))
    else if (a && b) {
      for (const [field, is] of Object.entries(b.is)) {
        const was = a.is[field]
        if (was !== undefined && was !== is) note(`${b.kind} ${field}`, b.of, was, is)
      }
    }
    if (order >= 0) figures += 1
    if (figures % 1_000 === 0) onProgress(figures)
    if (order <= 0) a = await read()
    if (order >= 0) b = await read(next)
  }
  return { migrations, figures, differences: [...found.values()] }
}

const said = ({ is }: Figure): string =>
  Object.values(is)
    .filter((value) => value !== null)
    .join(' ')

function keyOrder(a: string[], b: string[]): number {
  const at = a.findIndex((piece, index) => piece !== b[index])
  return at < 0 ? a.length - b.length : Buffer.compare(Buffer.from(a[at] ?? ''), Buffer.from(b[at] ?? ''))
}

function linesOf(input: Readable): () => Promise<unknown> {
  const lines = createInterface({ input })[Symbol.asyncIterator]()
  return async () => {
    const { value, done } = await lines.next()
    if (done) throw new Failure('unavailable', 'the figures break off')
    return JSON.parse(value)
  }
}
