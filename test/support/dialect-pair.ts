/** The two dialects under which everything must hold: the default, and the one that differs from it in every setting. */
import { type Dialect, readDialect } from '../../src/dialect/dialect.ts'

export const dialectNamed = (name: string): Dialect =>
  readDialect(new URL(`../../config/dialects/${name}.json`, import.meta.url))

export const contrary = dialectNamed('contrary')
export const standard = dialectNamed('reseller-v1.1')

/** For `describe.each`. */
export const bothDialects = [
  { name: standard.name, dialect: standard },
  { name: contrary.name, dialect: contrary },
]

/** Every value of a dialect that is no object, by its path: `signature.header`, `errors.gone.codes`. Lists are one value. */
export function leavesOf(value: unknown, path = ''): Map<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return new Map([[path, value]])
  const leaves = new Map<string, unknown>()
  for (const [name, inner] of Object.entries(value)) {
    for (const [at, leaf] of leavesOf(inner, path === '' ? name : `${path}/${name}`)) leaves.set(at, leaf)
  }
  return leaves
}
