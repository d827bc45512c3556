import { firstOf, generationOf, type PartName, rangeOf, textsFrom } from '../domain/purchase-keys.ts'
import { AHEAD, partsAfter } from '../domain/restore.ts'
import { announcedWithin } from '../storage/deliveries.ts'
import { partsNamed, partsWithin, type UnattachedOrder, unattachedWithin } from '../storage/restores.ts'
import type { Ordering } from './context.ts'

/** A part of an order line: the row id of the line, and the values from which the idempotency keys of the part are derived. */
export interface Part extends PartName {
  lineId: string
}

/** How many parts are compared with one reference in one go. At a thousand digests a part, this takes some ten milliseconds. */
const BATCH = 20

/**
 * Finds the part and the generation that each of these external references stands for. The part need not have a purchase
 * here, because a restore may have lost all of its purchases.
 *
 * @returns the parts by reference, without the references whose line is not here
 */
export async function partsOf(
  ordering: Pick<Ordering, 'db' | 'dialect'>,
  references: readonly string[],
): Promise<Map<string, { part: Part; generation: number }>> {
  const found = new Map<string, { part: Part; generation: number }>()
  const firsts = new Map<string, { is: string; part: number }>()
  for (const reference of new Set(references)) {
    const first = firstOf(reference)
    if (first && 'is' in first) firsts.set(reference, first)
    else if (first) {
      const hit = await partOfDigest(ordering, reference, first.begins)
      if (hit) found.set(reference, hit)
    }
  }
  if (firsts.size === 0) return found
  const rows = await ordering.db.query(partsNamed([...new Set([...firsts.values()].map(({ is }) => is))]))
  const byFirst = new Map(rows.map(({ externalOrderId, ...part }) => [externalOrderId, part]))
  for (const [reference, { is, part: number }] of firsts) {
    const line = byFirst.get(is)
    const part = line && { ...line, part: number }
    const generation = part && generationOf(reference, part, ordering.dialect.externalOrderIdMax)
    if (part && generation !== undefined) found.set(reference, { part, generation })
  }
  return found
}

/** Computes the references of every candidate part and of the parts after it, because a digest cannot be reversed. */
async function partOfDigest({ db, dialect }: Pick<Ordering, 'db' | 'dialect'>, reference: string, begins: string) {
  for (let after = ''; ; ) {
    const rows = await db.query(partsWithin({ ...textsFrom(begins), after, limit: BATCH }))
    for (const { externalOrderId, ...part } of rows) {
      after = externalOrderId
      const generation = generationOf(reference, part, dialect.externalOrderIdMax)
      if (generation !== undefined) return { part, generation }
      for (const number of partsAfter(part.part)) {
        const next = { ...part, part: number }
        const early = generationOf(reference, next, dialect.externalOrderIdMax, AHEAD)
        if (early !== undefined) return { part: next, generation: early }
      }
    }
    if (rows.length < BATCH) return undefined
  }
}

/** Returns the orders of a part that a restore noted and that no purchase has, the first generation first. */
export async function unattachedOf(
  { db, dialect }: Pick<Ordering, 'db' | 'dialect'>,
  part: PartName,
): Promise<(UnattachedOrder & { generation: number })[]> {
  const noted = await db.query(unattachedWithin(rangeOf(part, dialect.externalOrderIdMax)))
  return noted
    .flatMap((one) => {
      const generation = generationOf(one.reference, part, dialect.externalOrderIdMax)
      return generation === undefined ? [] : [{ ...one, generation }]
    })
    .sort((a, b) => a.generation - b.generation)
}

/**
 * Returns the orders of a part that the supplier has announced by a delivery and that no purchase has, each with its generation. Its
 * list may still lack them.
 */
export async function announcedOf(
  { db, dialect }: Pick<Ordering, 'db' | 'dialect'>,
  part: PartName,
): Promise<[id: string, generation: number][]> {
  const { from, to } = rangeOf(part, dialect.externalOrderIdMax)
  const rows = await db.query(announcedWithin(from, to))
  return rows.flatMap(({ supplierOrderId: id, externalOrderId: reference }) => {
    const generation = generationOf(reference ?? '', part, dialect.externalOrderIdMax)
    return id === null || generation === undefined ? [] : [[id, generation] as [string, number]]
  })
}
