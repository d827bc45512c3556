/** The settings of the installation as one document: its shape, and what differs between two of them. */
import type { z } from 'zod'
import { configShape, processKeys } from '../config/config.ts'
import { leavesOf } from '../config/settings-in-force.ts'
import type { SettingChange } from '../storage/schema.ts'
import { section } from '../stores/store-settings.ts'

const { proxies: _, ...keysShape } = configShape.shape.keys.unwrap().shape

/** The shapes are those of the configuration file. */
export const documentShape = configShape.omit(processKeys).extend({ keys: section(keysShape) })

/** The settings with all defaults, and without secrets. */
export type SettingsDocument = z.infer<typeof documentShape>

export type Difference = SettingChange

/**
 * Compares two documents. The settings of a store are named by its id: `stores.demo-1234.pricing.markup.percent`. A store that came
 * or went is one difference, and so is a list.
 */
export function differences(before: SettingsDocument | null, after: SettingsDocument): Difference[] {
  const [old, next] = [changed(before, after), changed(after, before)]
  const stores = (document: SettingsDocument | null) => new Map(document?.stores.map(({ id, name }) => [id, name]))
  const [had, has] = [stores(before), stores(after)]
  const moved = [...new Set([...had.keys(), ...has.keys()])].filter((id) => had.has(id) !== has.has(id))
  const isOfMoved = (field: string) => moved.some((id) => field.startsWith(`stores.${id}.`))
  return [
    ...[...new Set([...old.keys(), ...next.keys()])]
      .filter((field) => !isOfMoved(field))
      .map((field) => ({ field, before: old.get(field) ?? null, after: next.get(field) ?? null })),
    ...moved.map((id) => ({ field: `stores.${id}`, before: had.get(id) ?? null, after: has.get(id) ?? null })),
  ]
}

/** Lists the values of a document that another document does not have, or has with another value. */
function changed(document: SettingsDocument | null, other: SettingsDocument | null): Map<string, string> {
  const [own, others] = [byId(document), byId(other)]
  const leaves = Object.entries(own).flatMap(([name, value]) => leavesOf(name, value, others[name]))
  return new Map(leaves.filter(({ isDefault }) => !isDefault).map(({ name, value }) => [name, value]))
}

const byId = (document: SettingsDocument | null): Record<string, unknown> =>
  document ? { ...document, stores: Object.fromEntries(document.stores.map((store) => [store.id, store])) } : {}

/** The settings that stay in the configuration file, and why. */
export const FILE_ONLY: Record<keyof typeof processKeys | 'keys.proxies', string> = {
  listen: 'an address of this process: another process on the same database has its own',
  console: 'an address of this process: a mistake in it would lock people out of this page',
  dataDir: 'it says where the database is',
  database: 'it says where the database is',
  backups: 'the disk of this machine, and a restore needs them without the database',
  logLevel: 'of this process',
  identity: 'Quayside writes it, so that a lost database is recognised',
  'keys.proxies': 'the proxies before this process: whom it believes must not change from afar',
}

/** Returns why a setting cannot be changed here; undefined for one that can. An id is permanent: orders at the supplier carry it. */
export const fixedWhy = (name: string): string | undefined =>
  /^stores\.[a-z0-9-]+\.(id|kind)$/.test(name)
    ? 'it is permanent: remove the store, and add another one'
    : Object.entries(FILE_ONLY).find(([key]) => name === key || name.startsWith(`${key}.`))?.[1]

/**
 * Changes one setting of a document. The shapes check the result when it is applied.
 *
 * @param name as `differences` names it; @param text a text as it is, all else as JSON; null: the default
 */
export function withSetting(
  document: SettingsDocument,
  name: string,
  text: string | null,
): { document: object } | { fault: string } {
  const why = fixedWhy(name)
  if (why !== undefined) return { fault: `not here: ${why}` }
  const store = document.stores.find(({ id }) => name.startsWith(`stores.${id}.`))
  if (name.startsWith('stores.') && !store) return { fault: 'no store has this id' }
  const candidates = valuesOf(text).map((value) =>
    store
      ? {
          ...document,
          stores: document.stores.map((one) =>
            one === store ? put(one, name.slice(`stores.${store.id}.`.length), value) : one,
          ),
        }
      : put(document, name, value),
  )
  // Where none fits, the shapes say what is right when it is applied.
  const [first = document] = candidates
  return { document: candidates.find((one) => documentShape.safeParse(one).success) ?? first }
}

/** The values that a text may stand for. Many amounts are texts, so a text comes first. */
function valuesOf(text: string | null): unknown[] {
  if (text === null) return [undefined]
  try {
    const parsed: unknown = JSON.parse(text)
    return parsed === null ? [null, text] : [text, parsed]
  } catch {
    return [text]
  }
}

/** Returns a copy with another value at a path; undefined takes it out. A key may have dots, such as the name of a category. */
function put(owner: object, path: string, value: unknown): object {
  const [key, inner] = Object.entries(owner).find(([name]) => path.startsWith(`${name}.`)) ?? []
  if (key !== undefined && typeof inner === 'object' && inner !== null) {
    return { ...owner, [key]: put(inner, path.slice(key.length + 1), value) }
  }
  return Object.fromEntries(Object.entries({ ...owner, [path]: value }).filter(([, one]) => one !== undefined))
}
