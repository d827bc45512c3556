import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { shopKinds, storeKinds } from '../src/stores/kinds.ts'

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

/** Every folder but the domain may import these files. */
const leaves = ['context.ts', 'errors.ts', 'secret.ts', 'log.ts', 'ids.ts']
const ports = ['storage', 'supplier', 'dialect', 'stores', 'vault', 'domain']
const flows = ['inbox', 'ordering', 'reconciliation', 'catalogue', 'listings']
/** What each folder may import. The files at the root that are not named put the parts together and may import all. */
const allowed: Record<string, string[]> = {
  domain: [],
  dialect: ['domain'],
  supplier: ['dialect', 'domain'],
  fitting: ['supplier', 'dialect', 'domain'],
  storage: ['domain'],
  config: ['stores', 'dialect', 'domain'],
  vault: ['storage'],
  access: ['storage'],
  stores: ['storage', 'vault', 'domain'],
  observe: ['storage', 'supplier', 'domain'],
  alerts: ['observe', 'stores', 'storage', 'supplier', 'config', 'domain'],
  backup: ['storage', 'vault', 'config', 'reconciliation', 'settings'],
  inbox: [...ports, 'fitting'],
  ordering: ports,
  listings: ports,
  catalogue: [...ports, 'listings'],
  reconciliation: [...ports, 'catalogue', 'ordering'],
  rehearsal: ['listings', 'ordering', 'storage', 'domain'],
  http: [...flows, ...ports, 'access', 'config', 'observe', 'backup', 'alerts', 'settings'],
  keys: ['http', 'ordering', 'storage', 'domain'],
  console: ['http', 'access', 'domain'],
  processes: ['backup', 'config', 'domain', 'http', 'inbox', 'ordering', 'storage', 'stores', 'supplier', 'vault'],
  demo: [
    'app.ts',
    'installation.ts',
    'settings',
    'config',
    'dialect',
    'domain',
    'http',
    'listings',
    'sandbox',
    'storage',
    'stores',
  ],
  cli: [
    ...['app.ts', 'installation.ts', 'demo', 'sandbox', 'backup', 'rehearsal', 'settings'],
    ...['config', 'dialect', 'domain', 'fitting', 'http', 'observe', 'storage', 'supplier', 'stores'],
  ],
  'main.ts': ['cli'],
  'installation.ts': [
    'access',
    'config',
    'domain',
    'inbox',
    'ordering',
    'settings',
    'storage',
    'stores',
    'supplier',
    'vault',
  ],
  ...Object.fromEntries(leaves.map((file) => [file, []])),
  'context.ts': ['storage', 'vault'],
  'log.ts': ['domain'],
}
/** Nothing more of what a client does, so that the sandbox cannot agree with a bug of ours. */
const sandboxShares = ['dialect/dialect.ts', 'domain/html.ts', 'domain/money.ts', 'domain/text-layout.ts', 'errors.ts']
/** Where several implementations stand behind one port, and the resources of the API: a second level of folders. */
const nested = /^(stores|storage)\/[a-z]+\/[^/]+$|^http\/api\/[^/]+$/

/** Names that a type-only import brings, which is gone when the program runs. */
const isTypeOnly = (clause: string) =>
  clause.startsWith('type ') ||
  (/^\{[^}]*\}$/.test(clause) &&
    clause
      .slice(1, -1)
      .split(',')
      .filter((name) => name.trim() !== '')
      .every((name) => name.trim().startsWith('type ')))

/** The files that are loaded with a file. */
const loadedWith = (file: string) =>
  [...textOf(file).matchAll(/^(?:import|export) ([^;']*?) from '(\.[^']+)'/gm)]
    .filter(([, clause = '']) => !isTypeOnly(clause))
    .map(([, , to = '']) => relative(root, resolve(root, file, '..', to)))

/**
 * The most lines of each room, about what it has: a change that needs more takes it from somewhere first, and raises its row only by
 * what a feature needs that was not there.
 */
const budgets: Record<string, number> = {
  root: 2_535,
  access: 395,
  alerts: 1_115,
  backup: 1_035,
  catalogue: 1_620,
  cli: 7_565,
  config: 960,
  console: 9_495,
  demo: 580,
  dialect: 865,
  domain: 6_694,
  fitting: 1_780,
  http: 8_050,
  inbox: 1_935,
  keys: 715,
  listings: 2_010,
  observe: 320,
  ordering: 8_714,
  processes: 580,
  reconciliation: 1_242,
  rehearsal: 180,
  sandbox: 3_680,
  settings: 1_030,
  storage: 8_761,
  stores: 7_140,
  supplier: 2_895,
  vault: 380,
}

describe('the source', () => {
  test('imports downwards only', () => {
    const against = crossing.filter(({ file, target }) => {
      const from = unit(file)
      if (from === 'sandbox') return !sandboxShares.includes(target)
      const mayShare = from !== 'domain' && leaves.includes(target)
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

  test('has no cycle between its folders, and none of values between its files', () => {
    const folders = new Map<string, Set<string>>()
    for (const { file, target } of crossing) {
      folders.set(unit(file), (folders.get(unit(file)) ?? new Set()).add(unit(target)))
    }
    const values = new Map(files.map((file) => [file, new Set(loadedWith(file))]))
    expect(inCycles(folders)).toEqual([])
    expect(inCycles(values)).toEqual([])
  })

  test('leaves nothing of the API in the command line but types: its start loads no server', () => {
    const loaded = files
      .filter((file) => file.startsWith('cli/'))
      .flatMap((file) => loadedWith(file).map((target) => ({ target, line: `${file} -> ${target}` })))
    expect(loaded.filter(({ target }) => target.startsWith('http/')).map(({ line }) => line)).toEqual([])
  })

  test('leaves the packages of an engine of the database to its folder', () => {
    const packages: Record<string, string> = {
      'better-sqlite3': 'storage/sqlite/',
      'drizzle-orm/better-sqlite3': 'nowhere',
      pg: 'storage/postgres/',
      'drizzle-orm/pg-core': 'storage/postgres/',
    }
    const elsewhere = imports.filter(({ file, target }) => {
      const folder = packages[target]
      return folder !== undefined && !file.startsWith(folder) && !/^(sandbox|backup)\//.test(file)
    })
    expect(elsewhere.map(({ line }) => line)).toEqual([])
  })

  test('loads the engine of the database that is chosen, and not the other one', () => {
    const needed = new Set(['app.ts', 'installation.ts', 'cli/serve.ts'])
    for (const file of needed) for (const target of loadedWith(file)) needed.add(target)
    expect([...needed].filter((file) => /^storage\/(sqlite|postgres)\//.test(file))).toEqual([])
  })

  test('loads the adapter of a kind of store when it opens one, and its questions when one is added', () => {
    const inKind = /^stores\/[a-z]+\//
    const facts = [
      ...storeKinds.map(({ kind }) => `stores/${kind}/kind.ts`),
      'stores/backend/signature.ts',
      'stores/backend/receiver.ts',
    ]
    const loading = files.filter((file) => !inKind.test(file) || file.endsWith('/kind.ts'))
    const loaded = loading.flatMap((file) =>
      loadedWith(file).map((target) => ({ target, line: `${file} -> ${target}` })),
    )
    const early = loaded.filter(({ target }) => inKind.test(target) && !facts.includes(target))
    expect(early.map(({ line }) => line)).toEqual([])
    expect(files).toEqual(expect.arrayContaining(facts))
  })

  test('names a kind of store in its folder only', () => {
    const outside = files.filter((file) => !/^stores\/[a-z]+\//.test(file))
    const quoted = outside.filter((file) => storeKinds.some(({ kind }) => textOf(file).includes(`'${kind}'`)))
    expect(quoted).toEqual([])
    // `backend` is also a common word.
    const shops = new RegExp(shopKinds.map(({ kind }) => kind).join('|'), 'i')
    expect(outside.filter((file) => shops.test(textOf(file)))).toEqual(['stores/kinds.ts'])
  })

  test('has no file that the program cannot reach', () => {
    // The package has two entries: the program, and what backends import.
    const reached = new Set(['quayside.js', 'stores/backend/callbacks.ts'])
    for (const file of reached) {
      // Imports, addresses of worker threads, and the script that the console serves.
      for (const [, name = ''] of textOf(file).matchAll(/'([^'\n]+\.[jt]s)'/g)) {
        const target = relative(root, resolve(root, file, '..', name))
        if (files.includes(target)) reached.add(target)
      }
    }
    expect(files.filter((file) => !reached.has(file))).toEqual([])
  })

  test('has in no room more lines than its budget', () => {
    const lines = Object.keys(budgets).map((room) => {
      const own = files.filter((file) => (file.includes('/') ? unit(file) : 'root') === room)
      return [room, own.reduce((sum, file) => sum + (textOf(file).match(/\n/g)?.length ?? 0), 0)] as const
    })
    expect(lines.filter(([room, count]) => count > (budgets[room] ?? 0))).toEqual([])
    const rooms = new Set(files.map((file) => (file.includes('/') ? unit(file) : 'root')))
    expect([...rooms].filter((room) => !(room in budgets))).toEqual([])
  })

  test('has one style sheet of at most 450 lines', () => {
    const sheet = textOf('console/console.css')
    expect(sheet).toContain('at most 450 lines')
    expect(sheet.match(/\n/g)?.length).toBeLessThanOrEqual(450)
  })

  test('has at most twelve files at its root', () => {
    expect(files.filter((file) => !file.includes('/')).length).toBeLessThanOrEqual(12)
  })

  test('makes folders one at a time: a recursive mkdir hangs below /proc', () => {
    expect(files.filter((file) => /\bmkdir(Sync)?\([^)]*recursive/.test(textOf(file)))).toEqual([])
  })

  test('makes words of a name in one place', () => {
    const makers = files.filter((file) => textOf(file).includes("replaceAll('_', ' ')"))
    expect(makers).toEqual(['domain/labels.ts'])
  })

  test('groups the digits of a count in one place', () => {
    expect(files.filter((file) => /toLocaleString\(|NumberFormat/.test(textOf(file)))).toEqual([])
  })

  test('names every file for an agent or a thing, in folders one level deep', () => {
    const drawers = /(^|\/)(index|utils?|helpers?|commons?|types?|interfaces?|models?|misc)\.[jt]s$/
    expect(files.filter((file) => drawers.test(file) || (file.split('/').length > 2 && !nested.test(file)))).toEqual([])
  })
})

/** What imports nothing that is left is taken away; what stays is in a cycle or above one. */
function inCycles(edges: Map<string, Set<string>>): string[] {
  for (let taken = true; taken; ) {
    taken = false
    for (const [from, to] of edges) {
      for (const one of to) if (!edges.has(one)) to.delete(one)
      if (to.size === 0) taken = edges.delete(from) || taken
    }
  }
  return [...edges].map(([from, to]) => `${from} -> ${[...to].join(', ')}`)
}

describe('a shop of the tests', () => {
  test('shares no code with the adapter that is tried against it', () => {
    const shops = join(import.meta.dirname, 'shops')
    const doubles = readdirSync(shops).filter((file) => !/story|\.test\.ts$/.test(file))
    const shared = doubles.flatMap((file) =>
      [...readFileSync(join(shops, file), 'utf8').matchAll(/from '\.\.\/\.\.\/src\/([^']+)'/g)].map(
        ([, to]) => to ?? '',
      ),
    )
    expect(doubles.length).toBeGreaterThan(15)
    expect(shared.filter((file) => unit(file) !== 'domain' && file !== 'sandbox/server.ts')).toEqual([])
  })
})

describe('a file of tests', () => {
  test('leaves nothing behind for the files that its worker runs after it', () => {
    const left =
      /process\.env\.\w+ \??=[^=]|process\.env\[[^\]]+\] =[^=]|delete process\.env|process\.chdir\(|registerAt\(|globalThis\.\w+ =[^=]/
    const tests = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.test.ts') && file !== 'architecture.test.ts')
      .map((file) => ({ file, text: readFileSync(join(import.meta.dirname, file), 'utf8') }))
    expect(tests.length).toBeGreaterThan(200)
    expect(tests.filter(({ text }) => left.test(text)).map(({ file }) => file)).toEqual([])
  })
})
