/** A rehearsed upgrade of a database on a server: on the copy that an operator made. */
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, inject, test } from 'vitest'
import { loadConfig } from '../../src/config/config.ts'
import { run } from '../support/cli-run.ts'
import { otherVersion } from '../support/other-version.ts'
import { isOnPostgres } from '../support/postgres.ts'
import { run as runSql, withDatabase } from '../support/postgres-server.ts'
import { openInstallation } from '../support/service-process.ts'

const needs = isOnPostgres ? '' : ' (skipped: .ci/run runs it)'

test.runIf(isOnPostgres)(
  `on PostgreSQL it changes the copy alone${needs}`,
  async ({ onTestFinished }) => {
    const { folder, configFile, ...installation } = await openInstallation(onTestFinished)
    await installation.start()
    expect(await installation.order('1001', (await installation.sku()) ?? '', false)).toBe(202)
    installation.signal()
    await installation.ended()
    const next = otherVersion(onTestFinished, {
      version: '0.2.0',
      migration: 'create table added (id integer primary key);',
    })
    const rehearse = (...more: string[]) =>
      run(['upgrade', '--rehearse', next, '--config', configFile, ...more], { stopped: new Promise(() => {}) })
    expect((await rehearse()).stderr.replaceAll(/\s+/g, ' ')).toContain('make a copy, as `createdb -T` does')
    const url = loadConfig(configFile, {}).databaseUrl?.reveal() ?? ''
    const name = new URL(url).pathname.slice(1)
    await runSql(inject('postgres')?.url ?? '', `create database ${name}_copy template ${name}`)
    const file = path.join(folder, 'copy-url')
    writeFileSync(file, url, { mode: 0o600 })
    expect((await rehearse('--copy-url-file', file)).exitCode).toBe(2)
    const alias = new URL(url)
    alias.hostname = alias.hostname === 'localhost' ? '127.0.0.1' : 'localhost'
    writeFileSync(file, alias.href)
    expect((await rehearse('--copy-url-file', file)).exitCode, 'the same database by another name').toBe(2)
    writeFileSync(file, withDatabase(url, `${name}_copy`))
    const done = await rehearse('--copy-url-file', file)
    expect(done.stderr).toBe('')
    expect(done.stdout).toContain('Migrations: of-the-new-version')
    expect(done.stdout).toContain('Nothing differs.')
    await installation.start()
  },
  180_000,
)
