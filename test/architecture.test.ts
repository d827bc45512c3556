import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../src')
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => /\.[jt]s$/.test(file))
const textOf = (file: string) => readFileSync(join(root, file), 'utf8')

/** A folder of src, or a file at its top. */
const unit = (path: string) => path.split('/')[0] ?? path
const imports = files.flatMap((file) =>
  [...textOf(file).matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'([^']+)'/g)].map(([, to = '']) => {
    const target = to.startsWith('.') ? relative(root, resolve(root, file, '..', to)) : to
    return { file, target, inside: to.startsWith('.'), line: `${file} -> ${target}` }
  }),
)
const crossing = imports.filter(({ file, target, inside }) => inside && unit(file) !== unit(target))

const below = ['storage', 'supplier', 'stores', 'domain']
const flows = ['inbox', 'ordering', 'catalogue']
/** What everybody but the domain may import. */
const leaves = ['errors.ts', 'secret.ts', 'log.ts', 'ids.ts', 'random.ts', 'config-faults.ts']
const shared = [...leaves, 'config.ts', 'store-settings.ts']
/** Who may import whom. A file at the top that is neither shared nor named here puts the parts together: it may all. */
const allowed: Record<string, string[]> = {
  domain: [],
  storage: ['domain'],
  supplier: ['domain'],
  stores: ['domain'],
  inbox: below,
  ordering: below,
  catalogue: below,
  http: [...flows, ...below, 'tokens.ts', 'callback-secrets.ts', 'metrics.ts'],
  cli: [...flows, ...below, 'app.ts', 'sandbox'],
  'tokens.ts': ['storage'],
  'callback-secrets.ts': ['storage', 'stores'],
  'metrics.ts': [],
  'schedule.ts': [],
  'config.ts': ['supplier', 'domain'],
  'store-settings.ts': ['domain'],
  ...Object.fromEntries(leaves.map((file) => [file, []])),
}
/** Nothing more, so that the sandbox cannot agree with a bug of our client. */
const sandboxShares = ['supplier/dialect.ts', 'domain/money.ts', 'errors.ts']

describe('the source', () => {
  test('imports downwards only', () => {
    const against = crossing.filter(({ file, target }) => {
      const from = unit(file)
      if (from === 'sandbox') return !sandboxShares.includes(target)
      const mayShare = from !== 'domain' && shared.includes(target)
      return allowed[from] !== undefined && !mayShare && !allowed[from].includes(unit(target))
    })
    expect(against.map(({ line }) => line)).toEqual([])
  })

  test('keeps the domain free of everything but itself and hashes', () => {
    const strange = imports.filter(({ file, target, inside }) => {
      return unit(file) === 'domain' && !(inside && unit(target) === 'domain') && target !== 'node:crypto'
    })
    expect(strange.map(({ line }) => line)).toEqual([])
  })

  test('has no cycle between its folders', () => {
    const edges = new Map<string, Set<string>>()
    for (const { file, target } of crossing) {
      edges.set(unit(file), (edges.get(unit(file)) ?? new Set()).add(unit(target)))
    }
    // What imports nothing that is left is taken away; what cannot be taken away is in a cycle or above one.
    for (let taken = true; taken; ) {
      taken = false
      for (const [from, to] of edges) {
        for (const one of to) if (!edges.has(one)) to.delete(one)
        if (to.size === 0) taken = edges.delete(from) || taken
      }
    }
    expect([...edges].map(([from, to]) => `${from} -> ${[...to].join(', ')}`)).toEqual([])
  })

  test('has no file above 300 lines', () => {
    // Every table once, in one file: the exception is where a reader looks for them.
    const long = files.filter((file) => file !== 'storage/schema.ts' && textOf(file).split('\n').length > 301)
    expect(long).toEqual([])
  })

  test('names every file for what it holds, in folders one level deep', () => {
    const drawers = /(^|\/)(index|utils?|helpers?|commons?|types?|interfaces?|models?|misc)\.[jt]s$/
    expect(files.filter((file) => drawers.test(file) || file.split('/').length > 2)).toEqual([])
  })
})
