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
import { appliedMigrations } from '../storage/settings.ts'
import { countStoreOrders } from '../storage/store-orders.ts'
import { programVersion } from '../storage/version-note.ts'
import { connectionOf } from './client.ts'
import type { Io, ServiceFlags } from './command.ts'
import type { Finding } from './doctor.ts'
import { ROOT } from './words.ts'

const LEFT_OUT = `Left out: secrets, keys, orders, SKUs, amounts, paths, and what people, stores and suppliers have written.
Hosts are host-1, stores store-1. Read it before you send it.`

type Facts = Record<string, unknown>

/** Writes the report: Markdown for an issue, or JSON. @param config undefined: there is none, or it has faults */
export async function writeReport(io: Io, options: ServiceFlags, findings: Finding[], config?: Config): Promise<void> {
  const masked = masking(config?.stores ?? [])
  const installed = ROOT.includes('node_modules') ? 'package' : existsSync(path.join(ROOT, '.git')) ? 'clone' : 'image'
  const system = `${os.platform()} ${os.release()} ${os.arch()}, ${mib(os.totalmem())}`
  const sections: Record<string, Facts | string[]> = {
    versions: { quayside: programVersion(), installed, node: process.version, system, madeAt: iso(io.now()) },
    findings: findings.map(({ level, check, message }) =>
      level === 'ok' ? `ok ${check}` : `${level} ${check}: ${masked(message, QUOTING.includes(check))}`,
    ),
    settings: config ? settingsOf(config, masked) : ['the configuration is missing or has faults'],
    service: await serviceFacts(options, io.env).catch(() => ({ answers: false })),
    ...(config && (await databaseFacts(config).catch((error: unknown) => ({ database: { error: nameOf(error) } })))),
  }
  const linesOf = (facts: Facts | string[]) =>
    Array.isArray(facts) ? facts : Object.entries(facts).map(([name, fact]) => `${name}: ${fact ?? 'none'}`)
  const text = Object.entries(sections).map(
    ([name, facts]) => `\n### ${name}\n\n- ${linesOf(facts).join('\n- ') || 'none'}\n`,
  )
  const document = { leftOut: LEFT_OUT, ...sections }
  io.stdout.write(options.json ? `${JSON.stringify(document, undefined, 2)}\n` : `${LEFT_OUT}\n${text.join('')}`)
}

const iso = (at: number | null | undefined) => (at ? new Date(at).toISOString() : null)
const mib = (bytes: number) => `${Math.round(bytes / 1024 / 1024)} MiB`
const nameOf = (error: unknown) => (error instanceof Failure && error.reason) || codeOf(error)

/** Settings that are choices, times or numbers without a price. */
const SHOWN =
  /\b(kind|deliver|create|whenGone|growth|by|mode|source|otherLocations|holdAtRisk|least|apiVersion|language|logLevel|port|inFlight|keep|buffer|cap|zeroUnder|complete|\w*([cC]ron|Seconds|Minutes|Hours|Days|Mb))$/

/** The settings that are not the defaults. */
const settingsOf = (config: Config, masked: Mask): string[] =>
  settingsInForce(config)
    .filter(({ isDefault }) => !isDefault)
    .map(({ name, value }) => {
      const isShown = SHOWN.test(name) || /^(true|false|null)$/.test(value)
      return `${masked(`${name}:`)} ${isShown ? value : 'set'}`
    })

/** Facts of the running service, from its metrics. */
async function serviceFacts(options: ServiceFlags, env: Io['env']): Promise<Facts> {
  const { origin, token } = connectionOf(options, env)
  const headers: Record<string, string> = token ? { authorization: `Bearer ${token.reveal()}` } : {}
  const answer = await fetch(`${origin}/metrics`, { headers, redirect: 'manual', signal: AbortSignal.timeout(5_000) })
  const text = await answer.text()
  const metric = (name: string) => Number(new RegExp(`^process_${name} (\\S+)$`, 'm').exec(text)?.[1] ?? 0)
  const startedAt = iso(metric('start_time_seconds') * 1_000)
  return { answers: answer.ok, startedAt, memory: startedAt && mib(metric('resident_memory_bytes')) }
}

/** What the database holds: states, counts and times. */
async function databaseFacts(config: Config): Promise<Record<string, Facts>> {
  const db = await openBeside(config)
  if (!db) return { database: { tables: 'none' } }
  try {
    const { endedSync, sweep, freeze, purchases, listings, outbox, deliveries, openAlerts } = await readStatus(db)
    const migrations = await db.query(appliedMigrations())
    const [backup] = listBackups(backupFolder(config))
    const counts = {
      stores: config.stores.map(({ kind }) => ({ kind, total: 1 })),
      orders: await db.query(countStoreOrders()),
      ...{ purchases, listings, outbox, deliveries, openAlerts },
    }
    return {
      database: {
        size: config.databaseUrl ? 'PostgreSQL' : mib(statSync(databaseFileOf(config.dataDir)).size),
        migrations: `${migrations.length}, the newest ${migrations.at(-1)?.name}`,
        frozen: freeze !== undefined,
        lastSync: endedSync && `${endedSync.state} ${iso(endedSync.finishedAt)}, ${endedSync.offersSeen} offers`,
        lastSweep: iso(sweep?.finishedAt),
        lastBackup: backup && `${iso(backup.header?.madeAt)}, ${mib(backup.bytes)}`,
      },
      ...Object.fromEntries(Object.entries(counts).map(([name, rows]) => [name, tally(rows)])),
    }
  } finally {
    await db.close()
  }
}

/** Adds up counts of the same words. An order without a state is open. */
function tally(rows: readonly object[]): Facts {
  const sums: Record<string, number> = {}
  for (const { total, store: _, ...words } of rows as { total: number; store?: string }[]) {
    const name = Object.values(words).filter(Boolean).join(' ') || 'open'
    sums[name] = (sums[name] ?? 0) + total
  }
  return sums
}

/** Checks whose messages end with words of others: of people, the supplier or a store. */
const QUOTING = ['alerts', 'answers', 'catalogue', 'freeze', 'listings', 'lists', 'orders', 'products', 'service']

/** Plain words, codes, times, small numbers, and the names of settings where they begin a message. */
const HARMLESS =
  /^([a-z]{1,16}(['-][a-z]{1,7})?|\/?[a-z]{1,16}|API|GET|HTTP|JSON|MiB|POST|SKU|E[A-Z]{4,}|QUAYSIDE_(?!STORE|ALERT)[A-Z_]+|Node|OpenAPI|PostgreSQL|Quayside|(host|store)-\d+|\d{1,3}%?|\d{4}-\d\d-\d\d|\d\dZ|[-&])\.?$/
const SETTING = /^[a-z][a-zA-Z]*(\.[\w-]+)*$/

type Mask = (text: string, endsWithQuote?: boolean) => string

/** What people have named: settings that are unknown, rules of a category or a SKU, channels of alerts. */
const NAMED =
  /^.*(?=: unknown; known)|(?<=^[\w.-]*\.(products|categories)\.).*(?=:( |$))|(?<=^alerts\.channels\.|not sent by )[^\s.:]+/s

/** Masks every word that is not harmless. A host, and a store, has the same name each time. */
function masking(stores: readonly { id: string; name: string }[]): Mask {
  const hosts: string[] = []
  const hostOf = (address: string): string => {
    const host = address.split('/')[2] ?? ''
    if (!hosts.includes(host)) hosts.push(host)
    return `host-${hosts.indexOf(host) + 1}`
  }
  return (text, endsWithQuote = false) => {
    let left = text
      .replace(NAMED, 'one')
      .replaceAll(/"[^"]*"/g, '…')
      .replaceAll(/[a-z]+:\/\/[^\s)]+/g, hostOf)
    for (const [index, { id, name }] of stores.entries())
      left = left.replaceAll(id, `store-${index + 1}`).replaceAll(name, '…')
    left = left.replace(endsWithQuote ? /: .*$/s : /(?<=rejected the request|is not JSON): .*$/s, ': …')
    return left.replaceAll(/[^\s("'`)\],;:!?=]+/g, (word, at: number) => {
      const isSetting = at === 0 && /^:( |$)/.test(left.slice(word.length)) && SETTING.test(word)
      return isSetting || HARMLESS.test(word) ? word : '…'
    })
  }
}
