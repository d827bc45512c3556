/**
 * The last released version, as far as it meets a database: which migrations it has and the text of each of its statements. It
 * runs beside the present one while processes are restarted one after the other.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Change } from '../../src/storage/database.ts'
import { type Migration, readMigrations } from '../../src/storage/migration-files.ts'
import { compile as compileForPostgres } from '../../src/storage/postgres/translation.ts'
import { compile as compileForSqlite } from '../../src/storage/sqlite/sqlite.ts'
import { everyStatement } from './statement-calls.ts'

/** Texts with their values, in the words of both engines. */
export interface StatementTexts {
  name: string
  sqlite: Text[]
  postgres: Text[]
}

export interface Text {
  sql: string
  params: unknown[]
}

export interface EarlierVersion {
  version: string
  migrations: Pick<Migration, 'version' | 'name' | 'digest'>[]
  statements: StatementTexts[]
}

const file = new URL('../fixtures/earlier-version.json', import.meta.url)

export const earlierVersion = (): EarlierVersion =>
  JSON.parse(readFileSync(file, 'utf8'), (_, value) => (isBytes(value) ? Buffer.from(value.bytes, 'hex') : value))

const isBytes = (value: unknown): value is { bytes: string } =>
  typeof value === 'object' && value !== null && 'bytes' in value

/** What the present version would leave behind as the earlier one. */
export async function presentVersion(version: string): Promise<EarlierVersion> {
  const migrations = readMigrations().map(({ sql: _, ...migration }) => migration)
  const statements = (await everyStatement()).map(([name, statement]) => {
    const all = [statement].flat(2) as (Change | Change['statement'])[]
    const texts = all.map((one) => ('rows' in one ? one.statement : one))
    return { name, sqlite: texts.map(compileForSqlite), postgres: texts.map(compileForPostgres) }
  })
  return { version, migrations, statements }
}

/** Takes the present version for the released one; see CONTRIBUTING.md for when. */
export async function writeEarlierVersion(): Promise<void> {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  const { statements, ...head } = await presentVersion(version)
  const bytes = (_: string, value: unknown) => {
    const given = value as { type?: string; data?: number[] } | null
    return given?.type === 'Buffer' ? { bytes: Buffer.from(given.data ?? []).toString('hex') } : value
  }
  const lines = statements.map((statement) => JSON.stringify(statement, bytes))
  const text = `${JSON.stringify(head, undefined, 2).slice(0, -2)},\n  "statements": [\n${lines.join(',\n')}\n  ]\n}\n`
  writeFileSync(file, text)
}
