import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { Failure } from '../errors.ts'
import type { Figure, FiguresHead } from './figures.ts'

/** What differs, by kind and field: how often, and the first ones. */
export interface Difference {
  what: string
  count: number
  first: { of: string; from: string; to: string }[]
}

const FIRST_MAX = 10

/**
 * Compares the figures of two programs as they come, in bounded memory.
 *
 * @param before undefined: only checks of the new version that fail are a difference
 * @param count called now and then with the number of figures so far
 * @throws Failure `unavailable` where figures break off
 */
export async function compareFigures(
  before: Readable | undefined,
  after: Readable,
  count: (figures: number) => void,
): Promise<{ migrations: FiguresHead['migrations']; figures: number; differences: Difference[] }> {
  const found = new Map<string, Difference>()
  const note = (what: string, of: string, ...values: unknown[]): void => {
    const difference = found.get(what) ?? { what, count: 0, first: [] }
    const [from = '', to = ''] = values.map((value) => String(value ?? 'none'))
    if (difference.first.length < FIRST_MAX) difference.first.push({ of, from, to })
    found.set(what, { ...difference, count: difference.count + 1 })
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
    if (figures % 1_000 === 0) count(figures)
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
