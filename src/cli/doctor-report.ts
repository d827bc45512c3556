/** What a maintainer needs to help with an installation, for `doctor --report`. Its words are those of this program alone. */
import { existsSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { z } from 'zod'
import { backupFolder, listBackups } from '../backup/backup.ts'
import { type Config, configShape } from '../config/config.ts'
import { settingsInForce } from '../config/settings-in-force.ts'
import { codeOf, Failure, failureReasons, localReasons } from '../errors.ts'
import { readStatus } from '../observe/status.ts'
import { databaseFileOf } from '../storage/data-folder.ts'
import { readBeside } from '../storage/database-place.ts'
import { appliedMigrations } from '../storage/settings.ts'
import { countStoreOrders } from '../storage/store-orders.ts'
import { programVersion } from '../storage/version-note.ts'
import { connectionOf } from './client.ts'
import type { Io, ServiceFlags } from './command.ts'
import type { Finding } from './doctor.ts'
import { ROOT } from './words.ts'

const LEFT_OUT = `Left out: secrets, keys, orders, SKUs, amounts, names, addresses, paths, and the messages of all findings.
Stores have numbers. Read it before you send it.`

type Facts = Record<string, unknown>

/** Writes the report: Markdown for an issue, or JSON. @param config undefined: there is none, or it has faults */
export async function writeReport(io: Io, options: ServiceFlags, findings: Finding[], config?: Config): Promise<void> {
  const installed = ROOT.includes('node_modules') ? 'package' : existsSync(path.join(ROOT, '.git')) ? 'clone' : 'image'
  const system = `${os.platform()} ${os.release()} ${os.arch()}, ${mib(os.totalmem())}`
  const sections: Record<string, Facts | string[]> = {
    versions: { quayside: programVersion(), installed, node: process.version, system, madeAt: iso(io.now()) },
    findings: findings.map(({ level, check, reason = '' }) =>
      REASONS.has(reason) ? `${level} ${check}: ${reason}` : `${level} ${check}`,
    ),
    settings: config ? settingsOf(config) : ['the configuration is missing or has faults'],
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

/** A service of another version may answer with any text as its reason. */
const REASONS = new Set<string>([...Object.keys(failureReasons), 'not_found', ...localReasons])

/** Settings that are choices, times or numbers without a price. */
const SHOWN =
  /\b(kind|deliver|create|whenGone|growth|by|mode|source|otherLocations|holdAtRisk|least|apiVersion|logLevel|port|inFlight|keep|buffer|cap|zeroUnder|complete|\w*([cC]ron|Seconds|Minutes|Hours|Days|Mb))$/

function settingsOf(config: Config): string[] {
  const schema = JSON.stringify(z.toJSONSchema(configShape, { io: 'input', unrepresentable: 'any' }))
  const known = new Set(schema.match(/\w+(?=":)/g))
  const stores = config.stores.map(({ id }) => id)
  const lines = settingsInForce(config)
    .filter(({ isDefault }) => !isDefault)
    .map(({ name, value }) => {
      const named = name
        .replace(/(?<=^stores\.)[^.]+/, (id) => String(stores.indexOf(id) + 1))
        .replace(/(?<=^(alerts\.channels|stores\.\d+\.pricing\.(products|categories))\.).*(?=\.)/s, 'one')
      const isKnown = named.split('.').every((part) => known.has(part) || /^(one|\d{1,3})$/.test(part))
      if (!isKnown) return 'one unknown setting'
      return `${named}: ${SHOWN.test(named) || /^(true|false|null)$/.test(value) ? value : 'set'}`
    })
  return [...new Set(lines)]
}

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
  const facts = await readBeside(config, async (db) => {
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
        migrations: `${migrations.length}, the newest "${migrations.at(-1)?.name}"`,
        frozen: freeze !== undefined,
        lastSync: endedSync && `${endedSync.state} ${iso(endedSync.finishedAt)}, ${endedSync.offersSeen} offers`,
        lastSweep: iso(sweep?.finishedAt),
        lastBackup: backup && `${iso(backup.header?.madeAt)}, ${mib(backup.bytes)}`,
      },
      ...Object.fromEntries(Object.entries(counts).map(([name, rows]) => [name, tally(rows)])),
    }
  })
  return facts ?? { database: { tables: 'none' } }
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
