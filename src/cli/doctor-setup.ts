import { existsSync, readdirSync, statfsSync, statSync } from 'node:fs'
import path from 'node:path'
import { type Config, DATA_DIR, loadConfig } from '../config.ts'
import { fileSystemOf } from '../domain/file-system.ts'
import { rateAt } from '../domain/rates.ts'
import { Failure, messageOf } from '../errors.ts'
import { fileSystemType } from '../storage/lock.ts'
import { CONFIG_FILE, readPlace, resolveFrom } from './connection.ts'
import type { Report } from './doctor.ts'
import { commandLine } from './invocation.ts'

/** The version that the lock file brings; others from 22.19 run, and are tested less. */
const NODE_MAJOR = 24

export function checkNode(report: Report): void {
  const version = process.versions.node
  if (version.startsWith(`${NODE_MAJOR}.`)) report('ok', 'Node', version)
  else report('warn', 'Node', `${version} runs it; the tested one is ${NODE_MAJOR}`, 'start it by `npm start` or `npx`')
}

/**
 * @param source the file, and whether the demo wrote it; undefined when there is none
 * @returns undefined when there is none or it has faults, each of which is reported
 */
export function checkConfig(
  source: { file: string; demo: boolean } | undefined,
  env: Record<string, string | undefined>,
  report: Report,
): Config | undefined {
  if (!source || source.demo) {
    report(
      'warn',
      'configuration',
      `there is no ${CONFIG_FILE}: this is the demo`,
      `\`${commandLine('init')}\` writes one`,
    )
  }
  if (!source) return undefined
  const { file } = source
  try {
    const config = loadConfig(file, source.demo ? {} : env)
    report(
      'ok',
      'configuration',
      `${file}, ${config.stores.length === 1 ? 'one store' : `${config.stores.length} stores`}`,
    )
    report('ok', 'dialect', `${config.dialectFacts.name} (${config.dialectFile})`)
    return config
  } catch (error) {
    const fields = error instanceof Failure ? error.fields : []
    const mend = `mend it in ${file}`
    if (fields.length === 0) report('fail', 'configuration', messageOf(error), mend)
    for (const fault of fields) {
      const secret = fault.field.startsWith('QUAYSIDE_')
      const check = fault.field === 'supplier.dialect' ? 'dialect' : secret ? 'secret' : 'configuration'
      report('fail', check, `${fault.field}: ${fault.message}`, secret ? undefined : mend)
    }
    return undefined
  }
}

/** Long enough for a person to enter the next rate. */
const WEEK_MS = 7 * 24 * 3_600_000

/** A store in another currency than the supplier's has prices while a rate is in force, and orders need one back. */
export function checkRates({ stores, dialectFacts }: Config, now: number, report: Report): void {
  const supplierCurrency = dialectFacts.money.currency
  for (const { id, currency, terms } of stores) {
    if (currency === supplierCurrency) continue
    const { rates } = terms.pricing
    const add = (from: string, to: string) => `add one from ${from} to ${to} to \`rates\``
    const there = add(supplierCurrency, currency)
    const [rate, later] = [now, now + WEEK_MS].map((at) => rateAt(rates, supplierCurrency, currency, at))
    if (!rate) report('fail', 'rates', `${id} has no prices: no rate to ${currency} is in force`, there)
    else if (!later) report('warn', 'rates', `${id} has no prices in a week: its rate to ${currency} ends`, there)
    else report('ok', 'rates', `1 ${supplierCurrency} is ${rate.text} ${currency} for ${id}`)
    if (rateAt(rates, currency, supplierCurrency, now)) continue
    const message = `orders of ${id} that name prices in ${currency} are refused: no rate turns them into ${supplierCurrency}`
    report('warn', 'rates', message, add(currency, supplierCurrency))
  }
}

/** Secrets are for their owner's eyes: files 0600, their folder 0700. */
export function checkModes(file: string | undefined, report: Report): void {
  const folder = path.join(path.dirname(file ?? CONFIG_FILE), 'secrets')
  const names = existsSync(folder) ? readdirSync(folder).map((name) => path.join(folder, name)) : []
  const owner = path.join(dataDirOf(file), 'owner.token')
  const files = [...names, ...(existsSync(owner) ? [owner] : [])].filter((each) => statSync(each).isFile())
  const open = files.filter((each) => (statSync(each).mode & 0o077) !== 0)
  for (const each of open) report('fail', 'file modes', `others can read ${each}`, `chmod 600 ${each}`)
  if (existsSync(folder) && (statSync(folder).mode & 0o077) !== 0) {
    report('warn', 'file modes', `others can look into ${folder}`, `chmod 700 ${folder}`)
  }
  if (open.length === 0) report('ok', 'file modes', `${files.length} secret files, none of which others can read`)
}

/** Where a faulty configuration does not say, the default is as good a guess as any. */
function dataDirOf(file: string | undefined): string {
  try {
    return readPlace(file).dataDir
  } catch {
    return resolveFrom(file, DATA_DIR)
  }
}

/** @param typeOf tells the file system of a folder, see `fileSystemOf` */
export function checkFileSystem(file: string | undefined, report: Report, typeOf = fileSystemType): void {
  const dataDir = dataDirOf(file)
  const { name, use } = fileSystemOf(typeOf(dataDir))
  const mend = 'move dataDir to a disk of this machine'
  if (use === 'refused') report('fail', 'file system', `${dataDir} is on ${name}: the service does not start`, mend)
  if (use !== 'doubtful') return
  report('warn', 'file system', `${dataDir} is on ${name}: whether a power cut loses orders is up to that`, mend)
}

const MIB = 1024 * 1024

/** A busy shop writes some 10 MiB a day: 100 MiB is days, 1 GiB is months. A full disk stops everything at once. */
const FREE_FAIL = 100 * MIB
const FREE_WARN = 1024 * MIB

export function checkDisk(file: string | undefined, report: Report): void {
  const dataDir = dataDirOf(file)
  let place = dataDir
  while (!existsSync(place)) place = path.dirname(place)
  const { bavail, bsize } = statfsSync(place)
  const free = bavail * bsize
  const text = `${Math.round(free / MIB).toLocaleString('en-US')} MiB free for ${dataDir}`
  if (free < FREE_FAIL) report('fail', 'disk', text, 'make room: a full disk stops intake and buying')
  else if (free < FREE_WARN) report('warn', 'disk', text, 'make room before it is full')
  else report('ok', 'disk', text)
}
