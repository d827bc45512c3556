/**
 * Which generation of a part an order was bought for, told from the external reference that it carries.
 *
 * A reference names its purchase as a whole and is never taken to pieces: the references of the part are made, and
 * compared with it.
 */
import { externalOrderId, type PurchaseName } from './purchase-keys.ts'

/** What names a line part for ever. */
export type PartName = Omit<PurchaseName, 'generation'>

/**
 * Generations of a part that are tried for a reference that ends in a digest, which does not say its number. Within the
 * three days that a purchase is tried for, an hour apart at most, there are some hundred.
 */
const TRIED = 1_000

/** What a reference that was cut ends in: a tilde and the digits of a digest. */
const DIGEST = /~[0-9a-f]{32}$/

/** The references of all generations of a part are in this range of texts, and those of some other parts with them. */
export function rangeOf(part: PartName, lengthMax: number): { from: string; to: string } {
  const stem = stemOf(part)
  // A number of up to nine digits follows; where there is no room for it, references are cut and end in a digest.
  const beginning = stem.length + 9 > lengthMax ? stem.slice(0, lengthMax - '~'.length - 32) : stem
  return textsFrom(beginning)
}

/** The texts that begin with this one; references are ASCII, and have no character as high as the last. */
export const textsFrom = (beginning: string) => ({ from: beginning, to: `${beginning}\x7f` })

/**
 * Where the reference of generation 1 of the same part stands: it is one text; or, where the reference ends in a digest,
 * it begins with another.
 *
 * @returns undefined for a text that is no reference of ours
 */
export function firstOf(reference: string): { is: string } | { begins: string } | undefined {
  if (DIGEST.test(reference)) return { begins: reference.replace(DIGEST, '') }
  return /\.[1-9]\d{0,8}$/.test(reference) ? { is: reference.replace(/\d+$/, '1') } : undefined
}

/** The generation of a part whose reference this is; undefined when it is of another part. */
export function generationOf(reference: string, part: PartName, lengthMax: number): number | undefined {
  const stem = stemOf(part)
  const number = reference.startsWith(stem) ? reference.slice(stem.length) : ''
  if (/^[1-9]\d{0,8}$/.test(number)) return Number(number)
  if (!DIGEST.test(reference) || !stem.startsWith(reference.replace(DIGEST, ''))) return undefined
  for (let generation = 1; generation <= TRIED; generation += 1) {
    if (externalOrderId({ ...part, generation }, lengthMax) === reference) return generation
  }
  return undefined
}

/** What all references of a part begin with, where they are not cut: the number of the generation follows. */
const stemOf = (part: PartName): string =>
  externalOrderId({ ...part, generation: 1 }, Number.POSITIVE_INFINITY).slice(0, -1)
