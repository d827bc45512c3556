import { firstOf, generationOf, type PartName, rangeOf, textsFrom } from '../domain/purchase-keys.ts'
import { partsNamed, partsWithin, type UnattachedOrder, unattachedWithin } from '../storage/restores.ts'
import type { Ordering } from './context.ts'

/** A part of a line, by its row and by what its keys are derived from. */
export interface Part extends PartName {
  lineId: string
}

/** Parts that are compared with one reference in one go: at a thousand digests each, some ten milliseconds. */
const BATCH = 20

/**
 * The parts that these external references are of, each with its generation, whether that has a purchase here or not.
 *
 * @returns by reference; one that is of no part here is left out
 */
export async function partsOf(
  ordering: Pick<Ordering, 'db' | 'dialect'>,
  references: readonly string[],
): Promise<Map<string, { part: Part; generation: number }>> {
  const found = new Map<string, { part: Part; generation: number }>()
  const firsts = new Map<string, string>()
  for (const reference of new Set(references)) {
    const first = firstOf(reference)
    if (first && 'is' in first) firsts.set(reference, first.is)
    else if (first) {
      const hit = await partOfDigest(ordering, reference, first.begins)
      if (hit) found.set(reference, hit)
    }
  }
  if (firsts.size === 0) return found
  const rows = await ordering.db.query(partsNamed([...new Set(firsts.values())]))
  const byFirst = new Map(rows.map(({ externalOrderId, ...part }) => [externalOrderId, part]))
  for (const [reference, first] of firsts) {
    const part = byFirst.get(first)
    const generation = part && generationOf(reference, part, ordering.dialect.externalOrderIdMax)
    if (part && generation !== undefined) found.set(reference, { part, generation })
  }
  return found
}

/** A digest cannot be reversed: compute the references of every candidate part and compare. */
async function partOfDigest({ db, dialect }: Pick<Ordering, 'db' | 'dialect'>, reference: string, begins: string) {
  for (let after = ''; ; ) {
    const rows = await db.query(partsWithin({ ...textsFrom(begins), after, limit: BATCH }))
    for (const { externalOrderId, ...part } of rows) {
      after = externalOrderId
      const generation = generationOf(reference, part, dialect.externalOrderIdMax)
      if (generation !== undefined) return { part, generation }
    }
    if (rows.length < BATCH) return undefined
  }
}

/** The orders of a part that a restore noted and no purchase has, the first generation first. */
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
