/** The first start of another version, with real processes: whatever ends it before it serves, the version before goes on. */
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { describe, expect, type TestContext, test } from 'vitest'
import type { FirstStartPoint } from '../../src/backup/first-start.ts'
import { currentEpoch } from '../../src/storage/restores.ts'
import { run } from '../support/cli-run.ts'
import { isNeeded } from '../support/needs.ts'
import { type Changes, otherVersion } from '../support/other-version.ts'
import { openInstallation } from '../support/service-process.ts'

const SETTLES_SOON = { settleSeconds: 3, listLagSeconds: 0.2, scanGapSeconds: 0.5 }
const THIS = path.join(import.meta.dirname, '../..')
/** Services are started four times in each test, on a machine that has other things to do. */
const PATIENCE_MS = 180_000
const ADDED = 'create table added (id integer primary key, text text not null) strict;'
/** Takes long enough to be killed in the middle. */
const ENDLESS = `${ADDED}
insert into added (text) with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 1000000000)
  select 'a text of some length, so that the log grows: ' || n from numbers;`

/** An installation of this version with an order that was fulfilled, whose service is stopped, and a newer version. */
async function upgrading(onTestFinished: TestContext['onTestFinished'], changes: Omit<Changes, 'version'>) {
  const installation = await openInstallation(onTestFinished, SETTLES_SOON)
  const { folder, configFile, sandbox } = installation
  const database = path.join(folder, 'quayside.db')
  const buy = async (reference: string) => {
    expect(await installation.order(reference, (await installation.sku()) ?? '', false)).toBe(202)
    await installation.closed(reference)
  }
  const stop = async () => {
    installation.signal()
    await installation.ended()
  }
  await installation.start()
  await buy('1001')
  await stop()
  const noteOf = () => JSON.parse(readFileSync(`${database}.version`, 'utf8')) as object
  const backups = () =>
    existsSync(path.join(folder, 'backups')) ? readdirSync(path.join(folder, 'backups')).length : 0
  return {
    ...installation,
    database,
    next: otherVersion(onTestFinished, { version: '0.2.0', ...changes }),
    buy,
    stop,
    noteOf,
    backups,
    /** How many databases lie beside it that it replaced. */
    replaced: () => readdirSync(folder).filter((name) => /replaced/.test(name) && !/-(wal|shm)$/.test(name)).length,
    epoch: () => installation.withDatabase(async (db) => (await currentEpoch(db))?.epoch),
    run: (...argv: string[]) => run([...argv, '--config', configFile]),
    charges: () => sandbox.world.report().charges.length,
    /** The version before starts again, has its order, and takes another one. */
    goesOn: async () => {
      await installation.start()
      expect((await run(['orders', 'show', '1001', '--config', configFile])).stdout).toContain('fulfilled')
      await buy('1002')
      await stop()
      expect(sandbox.world.report().charges).toHaveLength(2)
      expect(noteOf()).toMatchObject({ version: '0.1.0', served: true })
      expect(readdirSync(folder).filter((name) => /restoring|copy/.test(name))).toEqual([])
    },
  }
}

/** Each takes half a minute. */
const runs = isNeeded('campaigns')
const needs = runs ? '' : ' (skipped: .ci/run runs it)'

const killed: { when: string; at: FirstStartPoint | 'migrating' }[] = [
  { when: 'after its backup, before that is noted', at: 'backed_up' },
  { when: 'before the tables change', at: 'backup_noted' },
  { when: 'in the middle of a migration', at: 'migrating' },
  { when: 'when everything is open, before it serves', at: 'serving' },
]

describe.runIf(runs)(`the first start of a new version that is killed${needs}`, () => {
  for (const { when, at } of killed) {
    test.concurrent(
      `${when}: the version before goes on, in the same epoch`,
      async ({ onTestFinished }) => {
        const world = await upgrading(onTestFinished, { migration: at === 'migrating' ? ENDLESS : ADDED })
        const grows = () => (statSync(`${world.database}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 1_000_000
        const how = at === 'migrating' ? { look: grows } : { crash: at }
        expect(await world.runToItsEnd(world.next, how)).toMatchObject({ signal: 'SIGKILL' })
        await world.goesOn()
        expect(await world.epoch()).toBe(1)
        expect(world.backups()).toBe(at === 'backed_up' ? 1 : 0)
        expect(world.replaced(), 'what a version did that knows no note would be there').toBe(at === 'serving' ? 1 : 0)
      },
      PATIENCE_MS,
    )
  }

  test.concurrent(
    'before the tables change: what a version does that knows no note stays',
    async ({ onTestFinished }) => {
      const world = await upgrading(onTestFinished, { migration: ADDED })
      await world.runToItsEnd(world.next, { crash: 'backup_noted' })
      const call = 'const first = await beginFirstStart({ config, log, now, at: registeredAt() })'
      const nothing =
        'const first = { held: undefined, serving: async () => {}, failed: async (error: unknown) => error }'
      const earlier = otherVersion(onTestFinished, {
        version: '0.0.9',
        edits: [['app.ts', call, `${nothing} as FirstStart`]],
      })
      await world.start(undefined, { program: earlier })
      await world.buy('1002')
      await world.stop()
      await world.start(undefined, { program: world.next })
      await world.buy('1003')
      expect((await world.run('orders', 'show', '1002')).stdout).toContain('fulfilled')
      expect(world.charges()).toBe(3)
      await world.stop()
    },
    PATIENCE_MS,
  )

  test.concurrent(
    'after it serves: the version before refuses, and goes on from the backup',
    async ({ onTestFinished }) => {
      const world = await upgrading(onTestFinished, { migration: ADDED })
      await world.runToItsEnd(world.next, { crash: 'served' })
      expect((await world.runToItsEnd(THIS)).output).toContain('made by a newer Quayside')
      await world.start(undefined, { program: world.next })
      await world.buy('1002')
      await world.stop()
      const { backup } = world.noteOf() as { backup: string }
      const { code, output } = await world.runToItsEnd(THIS)
      expect(code).not.toBe(0)
      expect(output).toContain('made by a newer Quayside')
      expect(output).toContain(`restore ${backup}`)
      expect(output).toContain('Let your stores hand in again what came since')
      expect((await world.run('restore', backup)).exitCode).toBe(0)
      await world.start()
      expect(await world.order('1002', (await world.sku()) ?? '', false)).toBe(202)
      await world.closed('1002')
      expect(world.charges()).toBe(2)
      await world.stop()
      expect(await world.epoch()).toBe(2)
    },
    PATIENCE_MS,
  )
})

const broken: { what: string; changes: Omit<Changes, 'version'>; why: string }[] = [
  {
    what: 'its migration fails',
    changes: { migration: `${ADDED} insert into nowhere values (1);` },
    why: 'no such table: nowhere',
  },
  {
    what: 'its code throws before it serves',
    changes: {
      migration: ADDED,
      edits: [
        [
          'app.ts',
          'const metrics = createMetrics(',
          "if (base) throw new TypeError('broken')\n  const metrics = createMetrics(",
        ],
      ],
    },
    why: 'broken',
  },
]

describe.runIf(runs)(`the first start of a new version that fails${needs}`, () => {
  for (const { what, changes, why } of broken) {
    test.concurrent(
      `as ${what}: puts the database back itself, and the version before goes on`,
      async ({ onTestFinished }) => {
        const world = await upgrading(onTestFinished, changes)
        const { code, output } = await world.runToItsEnd(world.next)
        expect(code).toBe(1)
        expect(output).toContain(why)
        expect(output.replaceAll(/\s+/g, ' ')).toContain('the database is as it was before: 0.1.0 can be started on it')
        expect(world.noteOf()).toEqual({ version: '0.1.0', served: true })
        expect([world.backups(), world.replaced()]).toEqual([0, 0])
        await world.goesOn()
        expect(await world.epoch()).toBe(1)
      },
      PATIENCE_MS,
    )
  }

  test.concurrent(
    'another program has its port: the database is put back',
    async ({ onTestFinished }) => {
      const world = await upgrading(onTestFinished, { migration: ADDED })
      const other = createServer().listen(Number(new URL(world.url).port), '127.0.0.1')
      await once(other, 'listening')
      const { code, output } = await world.runToItsEnd(world.next)
      other.close()
      expect(code).toBe(5)
      expect(output.replaceAll(/\s+/g, ' ')).toMatch(/another program listens at .*0\.1\.0 can be started on it/)
      await world.goesOn()
    },
    PATIENCE_MS,
  )

  test.concurrent(
    'its backup is gone before it is put back: says which, and what to do',
    async ({ onTestFinished }) => {
      const world = await upgrading(onTestFinished, { migration: ADDED })
      await world.runToItsEnd(world.next, { crash: 'serving' })
      const { backup } = world.noteOf() as { backup: string }
      rmSync(backup)
      const { code, output } = await world.runToItsEnd(THIS)
      expect(code).toBe(1)
      expect(output.replaceAll(/\s+/g, ' ')).toContain(`its backup ${backup} is not there. Mount its disk`)
      rmSync(`${world.database}.version`)
      await world.start(undefined, { program: world.next })
      await world.buy('1002')
      await world.stop()
    },
    PATIENCE_MS,
  )

  test.concurrent(
    'no backup can be made: nothing changes, and what to do is said',
    async ({ onTestFinished }) => {
      const world = await upgrading(onTestFinished, { migration: ADDED })
      writeFileSync(path.join(world.folder, 'backups'), 'no folder')
      const before = readFileSync(world.database)
      const { code, output } = await world.runToItsEnd(world.next)
      expect(code).toBe(1)
      expect(output.replaceAll(/\s+/g, ' ')).toContain(
        'Make room, or set backups.folder to a folder of another disk; then start again.',
      )
      expect(readFileSync(world.database).equals(before)).toBe(true)
      await world.goesOn()
    },
    PATIENCE_MS,
  )
})
