/** What a maintainer needs to help with an installation, for `doctor --report`. What is not surely harmless is left out. */
import { existsSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { backupFolder, listBackups } from '../backup/backup.ts'
import type { Config } from '../config/config.ts'
import { settingsInForce } from '../config/settings-in-force.ts'
import { codeOf, Failure } from '../errors.ts'
import { readStatus } from '../observe/status.ts'
import { databaseFileOf } from '../storage/data-folder.ts'
import { openBeside } from '../storage/database-place.ts'
import { appliedMigrations } from '../storage/migration-files.ts'
import { countStoreOrders } from '../storage/store-orders.ts'
import { connectionOf } from './client.ts'
import type { Io, ServiceFlags } from './command.ts'
import type { Finding } from './doctor.ts'
import { ROOT, version } from './words.ts'

const LEFT_OUT =
  'Left out: secrets, keys, orders, SKUs, amounts, paths, and what people, stores and suppliers have written. Hosts are host-1, stores store-1. Read it before you send it.'

type Facts = Record<string, unknown>

/** Writes the report: Markdown for an issue, or JSON. @param config undefined: there is none, or it has faults */
export async function writeReport(io: Io, options: ServiceFlags, findings: Finding[], config?: Config): Promise<void> {
  const masked = masking(config?.stores ?? [])
  const sections: Record<string, Facts | string[]> = {
    versions: { quayside: version(), installed: installedAs(), node: process.version, system: system() },
    findings: findings.map(({ level, check, message }) =>
      level === 'ok' ? `ok ${check}` : `${level} ${check}: ${masked(message, QUOTING.includes(check))}`,
    ),
    settings: config ? settingsOf(config, masked) : ['the configuration is missing or has faults'],
    service: await serviceFacts(options, io.env),
    ...(config && (await databaseFacts(config).catch(whyNot))),
  }
  const report = { leftOut: LEFT_OUT, madeAt: iso(io.now()), ...sections }
  const texts = Object.entries(sections).map(([name, facts]) => `\n### ${name}\n\n${listOf(facts)}`)
  io.stdout.write(options.json ? `${JSON.stringify(report, undefined, 2)}\n` : `${LEFT_OUT}\n${texts.join('')}`)
}

const listOf = (facts: Facts | string[]): string =>
  (Array.isArray(facts) ? facts : Object.entries(facts).map(([name, fact]) => `${name}: ${fact ?? '-'}`))
    .map((line) => `- ${line}\n`)
    .join('')

const iso = (at: number | null | undefined) => (at ? new Date(at).toISOString() : null)
const mib = (bytes = 0) => `${Math.round(bytes / 1024 / 1024)} MiB`
const whyNot = (error: unknown) => ({
  database: { error: (error instanceof Failure && error.reason) || codeOf(error) },
})
const system = () => `${os.platform()} ${os.release()} ${os.arch()}, ${mib(os.totalmem())}`

function installedAs(): string {
  if (ROOT.split(path.sep).includes('node_modules')) return 'package'
  return existsSync(path.join(ROOT, '.git')) ? 'clone' : 'image or folder'
}

/** Settings that are choices, times and numbers without a price. */
const SHOWN =
  /\b(kind|deliver|create|whenGone|growth|by|mode|source|otherLocations|holdAtRisk|least|apiVersion|language|logLevel|port|inFlight|keep|buffer|cap|zeroUnder|complete|\w*([cC]ron|Seconds|Minutes|Hours|Days|Mb))$/

/** The settings that are not the defaults. */
const settingsOf = (config: Config, masked: Mask): string[] =>
  settingsInForce(config)
    .filter(({ isDefault }) => !isDefault)
    .map(({ name, value }) => {
      const isShown = SHOWN.test(name) || /^(true|false|null)$/.test(value)
      return `${masked(name.replace(/channels\.[^.]+/, 'channels.…'))}: ${isShown ? value : 'set'}`
    })

async function serviceFacts(options: ServiceFlags, env: Io['env']): Promise<Facts> {
  try {
    const { origin, token } = connectionOf(options, env)
    const headers: Record<string, string> = token ? { authorization: `Bearer ${token.reveal()}` } : {}
    const answer = await fetch(`${origin}/metrics`, { headers, redirect: 'manual', signal: AbortSignal.timeout(5_000) })
    const text = await answer.text()
    const metric = (name: string) => Number(new RegExp(`^process_${name} (\\S+)$`, 'm').exec(text)?.[1] ?? 0)
    const startedAt = iso(metric('start_time_seconds') * 1_000)
    return { answers: answer.status, startedAt, memory: mib(metric('resident_memory_bytes')) }
  } catch {
    return { answers: 'no' }
  }
}

/** What the database holds: counts, states and times. */
async function databaseFacts(config: Config): Promise<Record<string, Facts>> {
  const file = databaseFileOf(config.dataDir)
  const db = await openBeside(config)
  if (!db) return { database: { tables: 'none' } }
  try {
    const { endedSync, sweep, freeze, ...counts } = await readStatus(db)
    const migrations = await db.query(appliedMigrations())
    const [backup] = listBackups(backupFolder(config))
    const { purchases, listings, outbox, deliveries, openAlerts } = counts
    const stores = config.stores.map(({ kind }) => ({ kind, total: 1 }))
    const orders = await db.query(countStoreOrders())
    const counted = { stores, orders, purchases, listings, outbox, deliveries, openAlerts }
    return {
      database: {
        ...(config.databaseUrl ? { on: 'PostgreSQL' } : { file: mib(statSync(file).size) }),
        migrations: `${migrations.length}, the newest ${migrations.at(-1)?.name}`,
        isFrozen: freeze !== undefined,
        lastSync: endedSync && `${endedSync.state} ${iso(endedSync.finishedAt)}, ${endedSync.offersSeen} offers`,
        lastSweep: iso(sweep?.finishedAt),
        lastBackup: backup && `${iso(backup.header?.madeAt)}, ${mib(backup.bytes)}`,
      },
      ...Object.fromEntries(Object.entries(counted).map(([name, rows]) => [name, tally(rows)])),
    }
  } finally {
    await db.close()
  }
}

/** Adds up counts of the same words. An order without a state is open. */
function tally(rows: readonly object[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const { total, store: _, ...words } of rows as { total: number; store?: string }[]) {
    const name = Object.values(words).filter(Boolean).join(' ') || 'open'
    sums[name] = (sums[name] ?? 0) + total
  }
  return sums
}

/** Checks whose messages end with words of others: of people, the supplier or a store. */
const QUOTING = ['alerts', 'answers', 'catalogue', 'freeze', 'listings', 'lists', 'orders', 'products', 'service']

/** Plain words, names of settings, codes, times and small numbers. */
const HARMLESS =
  /^([a-z]{1,16}([A-Z][a-z]+)*(['-][a-z]{1,7})?|[A-Z]{2,4}|E[A-Z]{4,}|Node|OpenAPI|Quayside|(host|store)-\d+|\d{1,3}%?|\d{4}-\d\d-\d\d|\d\dZ|[-&]?)$/

type Mask = (text: string, endsWithQuote?: boolean) => string

/** Masks every word of a text that is not harmless. The same host and the same store have the same name each time. */
function masking(stores: Pick<Config['stores'][number], 'id' | 'name'>[]): Mask {
  const hosts: string[] = []
  const hostOf = (address: string): string => {
    const host = address.split('/')[2] ?? ''
    if (!hosts.includes(host)) hosts.push(host)
    return `host-${hosts.indexOf(host) + 1}`
  }
  return (text, endsWithQuote = false) => {
    let left = text.replaceAll(/"[^"]*"/g, '…').replaceAll(/[a-z]+:\/\/[^\s)]+/g, hostOf)
    for (const [index, { id, name }] of stores.entries())
      left = left.replaceAll(id, `store-${index + 1}`).replaceAll(name, '…')
    left = left.replace(endsWithQuote ? /: .*$/s : /(?<=rejected the request|is not JSON): .*$/s, ': …')
    return left.replaceAll(/[^\s.("'`)\],;:!?=]+/g, (word) => (HARMLESS.test(word) ? word : '…'))
  }
}
