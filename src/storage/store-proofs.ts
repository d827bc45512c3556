import type { Change, Database } from './database.ts'
import { settings } from './schema.ts'
import { insertOnce, rowsBy } from './table.ts'

/** How it was first proven that customers of a store get at their keys: one opened a page, or a person confirmed a mail. */
export interface StoreProof {
  at: number
  by: 'page' | 'mail'
  /** The store's own number of the order. */
  order: string
  /** The person who confirmed the mail. */
  actor?: string
}

const PREFIX = 'proof:'

const insertProof = insertOnce(settings)

const proofsWithin = rowsBy(settings, ['name >', 'name <'])

/** Stores the proof of a store. The first proof counts: a later one changes nothing. */
export const proveStore = (store: string, proof: StoreProof): Change =>
  insertProof({ name: `${PREFIX}${store}`, value: JSON.stringify(proof), changedAt: proof.at })

/** Reads the proofs of all stores, by the ids of the stores. */
export async function readProofs(db: Pick<Database, 'query'>): Promise<Map<string, StoreProof>> {
  // A semicolon sorts right after a colon.
  const rows = await db.query(proofsWithin(PREFIX, 'proof;'))
  return new Map(rows.map(({ name, value }) => [name.slice(PREFIX.length), JSON.parse(value) as StoreProof]))
}
