/** A rehearsed upgrade: the program against copies of itself that were changed, with real processes. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import Connection from 'better-sqlite3'
import { expect, type TestContext, test } from 'vitest'
import { run } from '../support/cli-run.ts'
import { isNeeded } from '../support/needs.ts'
import { type Changes, otherVersion } from '../support/other-version.ts'
import { openInstallation, until } from '../support/service-process.ts'

const PATIENCE_MS = 180_000
const needed = isNeeded('campaigns')
const needs = needed ? '' : ' (skipped: .ci/run runs it)'

/** An installation with listings, and an open order that its spend cap holds; its service is stopped. */
async function rehearsing(onTestFinished: TestContext['onTestFinished']) {
  const installation = await openInstallation(onTestFinished, {}, { spendCaps: { order: '0.01' } })
  const { folder, configFile } = installation
  await installation.start()
  expect(await installation.order('1001', (await installation.sku()) ?? '', false)).toBe(202)
  const database = new Connection(path.join(folder, 'quayside.db'), { readonly: true })
  const listings = database.prepare('select count(*) from listings').pluck()
  await until('the listings', () => Number(listings.get()) > 50)
  database.close()
  installation.signal()
  await installation.ended()
  // Loaded into both programs: notes whatever a process asks of the network.
  const asked = path.join(folder, '..', `${path.basename(folder)}.asked`)
  const guard = path.join(folder, '..', `${path.basename(folder)}.mjs`)
  writeFileSync(
    guard,
    `import { appendFileSync } from 'node:fs'
import net from 'node:net'
import dns from 'node:dns'
const note = (what) => appendFileSync(${JSON.stringify(asked)}, what + '\\n')
const { connect } = net.Socket.prototype
net.Socket.prototype.connect = function (...given) { note('connect'); return connect.apply(this, given) }
const { lookup } = dns
note('loaded')
dns.lookup = (...given) => { note('lookup'); return lookup(...given) }
`,
  )
  // A rehearsal needs little memory, however many rows there are.
  const env = { NODE_OPTIONS: `--max-old-space-size=64 --import ${guard}` }
  return {
    ...installation,
    version: (changes: Omit<Changes, 'version'> = {}) => otherVersion(onTestFinished, { version: '0.2.0', ...changes }),
    rehearse: (next: string, ...more: string[]) =>
      run(['upgrade', '--rehearse', next, '--config', configFile, ...more], { env, stopped: new Promise(() => {}) }),
    /** What the processes of rehearsals asked of the network. */
    asked: () => readFileSync(asked, 'utf8').replaceAll('loaded\n', ''),
    /** The digest of every file of the installation but the empty log that a reader of the database leaves. */
    files: () =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter((name) => statSync(path.join(folder, name)).isFile() && !/-(wal|shm)$/.test(name))
        .sort()
        .map(
          (name) =>
            `${name} ${createHash('sha256')
              .update(readFileSync(path.join(folder, name)))
              .digest('hex')}`,
        ),
  }
}

const SLOW = "alter table offers add column note text; update offers set note = 'x';"

interface Rehearsed {
  figures: number
  migrations: { name: string; ms: number }[]
  differences: { what: string; count: number; first: { of: string; from: string; to: string }[] }[]
}

/** Every price a cent higher; what a spend cap holds is held by a freeze. */
const CHANGED: Changes['edits'] = [
  ['domain/pricing.ts', 'const priceMinor = asWritten ? ruledMinor : ', 'const priceMinor = 1 + '],
  ['ordering/guards.ts', "guard: 'spend_cap'", "guard: 'frozen'"],
]

test.runIf(needed)(
  `a rehearsal changes nothing, sends no request, and shows what another version would do${needs}`,
  async ({ onTestFinished }) => {
    const world = await rehearsing(onTestFinished)
    const before = world.files()
    const same = await world.rehearse(
      world.version({ migration: 'create table added (id integer primary key) strict;' }),
    )
    expect(same.stderr).toBe('')
    expect(same.stdout).toContain('Nothing differs.')
    expect(same.stdout).toMatch(/Migrations: of-the-new-version \(\d+ m?s\)/)
    expect(same.stdout).toContain('To upgrade:')
    expect(same.exitCode).toBe(0)
    const changed = await world.rehearse(world.version({ edits: CHANGED }), '--json')
    expect(changed.exitCode).toBe(1)
    const { differences, figures } = JSON.parse(changed.stdout) as Rehearsed
    expect(figures).toBeGreaterThan(60)
    const of = (what: string) => differences.find((one) => one.what === what)
    expect(of('listing price')?.count).toBeGreaterThan(50)
    expect(of('listing price')?.first).toHaveLength(10)
    expect(of('purchase guard')).toMatchObject({ count: 1, first: [{ from: 'spend_cap', to: 'frozen' }] })
    const broken = await world.rehearse(world.version({ migration: 'insert into nowhere values (1);' }))
    expect(broken.stdout).toContain('no such table: nowhere')
    expect(broken.stdout).toContain('Stay on 0.1.0.')
    expect(broken.exitCode).toBe(1)
    expect(world.files()).toEqual(before)
    expect(world.asked()).toBe('')
  },
  PATIENCE_MS,
)

/** Copies rows until the tables have a million: offers, a listing of each, and orders under way with what belongs to each. */
function fill(file: string): void {
  const db = new Connection(file)
  const copies: [table: string, count: number, columns: Record<string, string>][] = [
    ['offers', 400_000, { product_id: "'many' || n", sku: "'MANY-' || n" }],
    ['listings', 400_000, { product_id: "'many' || n", sku: "'MANY-' || n", variant: "'MANY-' || n" }],
    ['store_orders', 33_000, { id: "'zo' || n", reference: "'many-' || n" }],
    [
      'entitlements',
      33_000,
      { reference: "'many-' || n", order_id: "'zo' || n", revision: 'n + 1', settled_revision: 'n + 1' },
    ],
    ['entitlement_lines', 33_000, { reference: "'many-' || n" }],
    ['store_order_lines', 33_000, { id: "'zl' || n", order_id: "'zo' || n" }],
    [
      'purchases',
      33_000,
      {
        id: "'zp' || n",
        order_id: "'zo' || n",
        line_id: "'zl' || n",
        idempotency_key: "'zk' || n",
        external_order_id: "'ze' || n",
      },
    ],
  ]
  for (const [table, count, columns] of copies) {
    const names = db.prepare(`select name from pragma_table_info('${table}')`).pluck().all() as string[]
    db.exec(`with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${count})
      insert into ${table} (${names}) select ${names.map((name) => columns[name] ?? `one.${name}`)}
      from (select * from ${table} limit 1) one, numbers`)
  }
  db.close()
}

test.runIf(needed)(
  `a million rows with orders under way: rehearsed in little memory, put back after a start that fails${needs}`,
  async ({ onTestFinished }) => {
    const world = await rehearsing(onTestFinished)
    fill(path.join(world.folder, 'quayside.db'))
    const changed = await world.rehearse(world.version({ edits: CHANGED, migration: SLOW }), '--json')
    expect(changed.stderr).toBe('')
    const { differences, figures, migrations } = JSON.parse(changed.stdout) as Rehearsed
    expect(figures).toBeGreaterThan(460_000)
    expect(migrations).toMatchObject([{ name: 'of-the-new-version' }])
    const of = (what: string) => differences.find((one) => one.what === what)
    expect(of('listing price')?.count).toBeGreaterThan(400_000)
    expect(of('purchase guard')?.count).toBe(33_001)
    const broken = world.version({ migration: `${SLOW} insert into nowhere values (1);` })
    expect((await world.rehearse(broken)).stdout).toContain('no such table: nowhere')
    const { code, output } = await world.runToItsEnd(broken)
    expect(code).toBe(1)
    expect(output.replaceAll(/\s+/g, ' ')).toContain('the database is as it was before: 0.1.0 can be started on it')
    await world.start()
    world.signal()
    await world.ended()
  },
  900_000,
)

test.runIf(needed)(
  `a rehearsal says plainly what it cannot do${needs}`,
  async ({ onTestFinished }) => {
    const world = await rehearsing(onTestFinished)
    const older = world.version({ edits: [['cli/commands.ts', "'rehearse-figures'", "'other-figures'"]] })
    expect((await world.rehearse(older)).stderr).toContain('0.2.0 is too old to be rehearsed')
    const nowhere = await world.rehearse(path.join(world.folder, 'nowhere'))
    expect(nowhere.stderr.replaceAll(/\s+/g, ' ')).toContain('is no folder of Quayside, and no package')
    const stopped = await run(['upgrade', '--rehearse', older, '--config', world.configFile], {
      stopped: until('the copy', () => existsSync(path.join(world.folder, 'rehearsal/quayside.db'))),
    })
    expect(stopped.stderr).toContain('stopped: nothing has changed')
    expect(existsSync(path.join(world.folder, 'rehearsal'))).toBe(false)
  },
  PATIENCE_MS,
)
