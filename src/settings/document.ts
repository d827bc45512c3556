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
