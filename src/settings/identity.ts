/** What purchase keys are derived from, noted in the configuration file: without it a lost database could not be recognised. */
import { statSync } from 'node:fs'
import { type Config, readJson, storeIdsOf } from '../config/config.ts'
import { Failure, messageOf } from '../errors.ts'
import { replaceText } from '../storage/files.ts'

/** Returns the permanent ids of all stores that there ever were, in the order in which they came. */
export function identityOf({ identity, stores, supplier }: Pick<Config, 'identity' | 'stores' | 'supplier'>) {
  return { supplier: supplier.baseUrl, stores: storeIdsOf({ identity, stores }) }
}

/**
 * Notes the supplier's address and the ids of new stores in the file, before any of them buys.
 *
 * @throws Failure `unavailable` where the file cannot be written
 */
export async function noteIdentity(next: Config): Promise<void> {
  const { file } = next
  const json = readJson(file) as { identity?: { supplier?: string | null; stores?: string[] } }
  const known = { supplier: json.identity?.supplier ?? null, stores: json.identity?.stores ?? [] }
  const identity = identityOf({ ...next, identity: known })
  if (JSON.stringify(identity) === JSON.stringify(known)) return
  try {
    await replaceJson(file, { ...json, identity })
  } catch (cause) {
    const why = `${file} must name the supplier and every store, so that a lost database is recognised, and it cannot be written`
    throw new Failure('unavailable', `${why}: ${messageOf(cause)}`, { cause })
  }
}

/** Replaces a configuration file in one step, with the same mode. */
export const replaceJson = (file: string, json: object): Promise<void> =>
  replaceText(file, `${JSON.stringify(json, undefined, 2)}\n`, statSync(file).mode & 0o777)
