import Connection from 'better-sqlite3'
import { getTableColumns, is } from 'drizzle-orm'
import { getTableConfig, SQLiteSyncDialect, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readMigrations } from '../../src/storage/migration-files.ts'
import * as schema from '../../src/storage/schema.ts'
import { migrate } from '../../src/storage/sqlite/open.ts'

interface Shape {
  columns: { name: string; type: string; notNull: boolean; default: string | null }[]
  primaryKey: string[]
  /** Unique ones: they are part of what the rows mean. Which others find rows is in the migrations and in `plans.test.ts`. */
  uniqueKeys: string[]
  foreignKeys: string[]
}

const tables = Object.values(schema).filter((value) => is(value, SQLiteTable))

function migratedConnection(): Connection.Database {
  const connection = new Connection(':memory:')
  onTestFinished(() => void connection.close())
  migrate(connection, readMigrations(), () => 1)
  return connection
}

/** The text of one, for people and for comparison: `name (a, b) where …`. */
const keyName = (name: string, columns: (string | undefined)[], where = '') =>
  `${name} (${columns.join(', ')})${where && ` where ${where.replace(/\s+/g, ' ').trim()}`}`

const keyText = (columns: string[], table: string, targets: string[], onDelete: string, onUpdate: string) =>
  `(${columns.join(', ')}) -> ${table} (${targets.join(', ')}) ${onDelete} ${onUpdate}`.toLowerCase()

/** What `storage/schema.ts` declares. */
function declaredShape(table: SQLiteTable): Shape {
  const { columns, indexes, foreignKeys, primaryKeys } = getTableConfig(table)
  const dialect = new SQLiteSyncDialect()
  const single = columns.filter(({ primary }) => primary).map(({ name }) => name)
  return {
    columns: columns.map((column) => ({
      name: column.name,
      type: column.getSQLType(),
      notNull: column.notNull,
      default: column.default === undefined ? null : literal(column.default),
    })),
    primaryKey: primaryKeys[0]?.columns.map(({ name }) => name) ?? single,
    uniqueKeys: [
      ...columns.filter(({ isUnique }) => isUnique).map(({ name }) => keyName('constraint', [name])),
      ...indexes.map(({ config }) => {
        const names = config.columns.map((column) => ('name' in column ? column.name : 'expression'))
        const where = config.where && dialect.sqlToQuery(config.where).sql
        return keyName(config.name, names, where)
      }),
    ].sort(),
    foreignKeys: foreignKeys
      .map((key) => {
        const { columns: from, foreignColumns, foreignTable } = key.reference()
        const [names, targets] = [from, foreignColumns].map((list) => list.map(({ name }) => name))
        const target = getTableConfig(foreignTable).name
        return keyText(names ?? [], target, targets ?? [], key.onDelete ?? 'no action', key.onUpdate ?? 'no action')
      })
      .sort(),
  }
}

/** What the migrations made. */
function migratedShape(connection: Connection.Database, table: string): Shape {
  const rows = <T>(text: string) => connection.prepare<[], T>(text).all()
  const columns = rows<{ name: string; type: string; notnull: number; dflt_value: string | null; pk: number }>(
    `pragma table_info(${table})`,
  )
  const indexes = rows<{ name: string; unique: number; origin: string }>(`pragma index_list(${table})`)
  const keys = rows<{ id: number; table: string; from: string; to: string; on_delete: string; on_update: string }>(
    `pragma foreign_key_list(${table})`,
  )
  return {
    columns: columns.map(({ name, type, notnull, dflt_value }) => ({
      name,
      type: type.toLowerCase(),
      notNull: notnull === 1,
      default: dflt_value,
    })),
    primaryKey: columns
      .filter(({ pk }) => pk > 0)
      .sort((a, b) => a.pk - b.pk)
      .map(({ name }) => name),
    uniqueKeys: indexes
      .filter(({ unique, origin }) => unique === 1 && origin !== 'pk')
      .map(({ name, origin }) => {
        const columnsOf = rows<{ name: string | null }>(`pragma index_info(${name})`)
        const names = columnsOf.map((column) => column.name ?? 'expression')
        const text = rows<{ sql: string | null }>(`select sql from sqlite_master where name = '${name}'`)[0]?.sql
        const where = /\bwhere\b(.*)$/is.exec(text ?? '')?.[1]
        return keyName(origin === 'u' ? 'constraint' : name, names, where)
      })
      .sort(),
    foreignKeys: [...Map.groupBy(keys, ({ id }) => id).values()]
      .map((parts) => {
        const [first] = parts
        const from = parts.map((part) => part.from)
        const to = parts.map((part) => part.to)
        return keyText(from, first?.table ?? '', to, first?.on_delete ?? '', first?.on_update ?? '')
      })
      .sort(),
  }
}

const literal = (value: unknown) => {
  if (typeof value === 'object') return `'${JSON.stringify(value)}'`
  if (typeof value === 'boolean') return value ? '1' : '0'
  return typeof value === 'string' ? `'${value}'` : String(value)
}

describe('the migrations', () => {
  test('make the tables of the schema and no others', () => {
    const made = migratedConnection().prepare("select name from sqlite_master where type = 'table'").pluck().all()
    const declared = tables.map((table) => getTableConfig(table).name)
    expect(made.sort()).toEqual([...declared, 'schema_migrations'].sort())
  })

  test.each(tables.map((table) => [getTableConfig(table).name, table] as const))(
    'make %s as declared',
    (name, table) => {
      expect(migratedShape(migratedConnection(), name)).toEqual(declaredShape(table))
    },
  )

  test('make strict tables, which refuse a value of another type', () => {
    const lax = migratedConnection()
      .prepare("select name from pragma_table_list where schema = 'main' and not strict and name not like 'sqlite_%'")
      .all()
    expect(lax).toEqual([])
  })

  test('give every column the name of its property, in snake case', () => {
    for (const table of tables) {
      for (const [property, { name }] of Object.entries(getTableColumns(table))) {
        expect(name).toBe(property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))
      }
    }
  })
})
