import { existsSync, readdirSync, statfsSync, statSync } from 'node:fs'
import path from 'node:path'
import { type Config, DATA_DIR, isGiven, secretSourcesOf } from '../config/config.ts'
import { clearTextWarnings, ENCRYPT, keyWayWarnings, SAY_HOW } from '../config/warnings.ts'
import { counted, grouped } from '../domain/figures.ts'
import { namesInRules, nearestName, type RuleName } from '../domain/pricing-rules.ts'
import { rateAt } from '../domain/rates.ts'
import { codeOf, Failure, messageOf } from '../errors.ts'
import { orderWords, provenBy } from '../fitting/check.ts'
import { type Inspection, inspect } from '../installation.ts'
import { secretsOf } from '../settings/set-up-files.ts'
import { readConfig } from '../settings/stored.ts'
import { fileSystemOf, fileSystemType } from '../storage/data-folder.ts'
import { placeName } from '../storage/database-place.ts'
import { unreadableText } from './catalogue.ts'
import { CONFIG_FILE, configFileOf, readPlace, resolveFrom } from './client.ts'
import { type Io, proseWidth, type ServiceFlags } from './command.ts'
import type { DoctorFlags } from './commands.ts'
import { checkPublicUrl, checkService, checkStores, checkWebhooks, meetService } from './doctor-service.ts'
import { checkLists, checkRecords, checkSupplier } from './doctor-supplier.ts'
import { exitCodes, sectionOf } from './exit-codes.ts'
import { findingText } from './facts.ts'
import { commandLine, instant } from './words.ts'

/** The result of one check. `fail`: what was checked does not work. `warn`: it works, but a person should know something. */
export interface Finding {
  check: string
  level: 'ok' | 'warn' | 'fail'
  message: string
  fix?: string
  /** The reason of the Failure that is its cause. */
  reason?: string
}

export type Report = (level: Finding['level'], check: string, message: string, fix?: string, cause?: unknown) => void

export interface Visit {
  io: Io
  config: Config
  report: Report
}

/**
 * Checks a set-up, from this machine outwards, and names the cause of each fault.
 *
 * @returns the exit code; with `--report` it is 0 once the report is written
 */
export async function runDoctor(io: Io, options: DoctorFlags): Promise<number> {
  const findings: Finding[] = []
  const report: Report = (level, check, message, fix, cause) => {
    const reason = cause instanceof Failure ? cause.reason : undefined
    const finding: Finding = { check, level, message, ...(fix && { fix }), ...(reason && { reason }) }
    findings.push(finding)
    if (!options.json && !options.report) io.stdout.write(findingText(level, check, message, fix, proseWidth(io)))
  }
  const config = await visit(io, options, report)
  if (options.report) {
    await (await import('./doctor-report.ts')).writeReport(io, options, findings, config)
    return exitCodes.ok
  }
  const failed = findings.filter(({ level }) => level === 'fail').length
  const warned = findings.filter(({ level }) => level === 'warn').length
  if (options.json) io.stdout.write(`${JSON.stringify({ healthy: failed === 0, findings }, undefined, 2)}\n`)
  else io.stdout.write(`\n${failed === 0 ? 'Nothing fails' : `${failed} failed`}, ${warned} to know about.\n`)
  return failed === 0 ? exitCodes.ok : exitCodes.failed
}

/** Runs all checks, and returns the configuration. Each check comes after the checks that it depends on: the first fault most likely causes the later ones. */
async function visit(io: Io, options: ServiceFlags, report: Report): Promise<Config | undefined> {
  const source = configFileOf(options.config, io.env)
  checkNode(report)
  const config = await checkConfig(source, io.env, report)
  checkModes(source?.file, report)
  if (config) await checkWithin(config, io.now(), report)
  const visited: Visit | undefined = config && { io, config, report }
  const service = await meetService(options, io.env)
  const supplier = visited && (await checkSupplier(visited))
  try {
    if (visited && supplier) {
      await checkRecords(visited, supplier)
      await checkLists(visited, supplier)
      await checkWebhooks(visited, supplier, service)
    }
    if (config) await checkPublicUrl(config, report)
    checkService(service, config, io.now(), report)
    await checkStores(config?.stores ?? [], service, report)
  } finally {
    await supplier?.close().catch((error: unknown) => report('warn', 'supplier', messageOf(error), undefined, error))
  }
  checkFileSystem(source?.file, report)
  checkDisk(source?.file, report)
  return config
}

/** Checks the configuration against its database. This asks nothing over the network: a rehearsal does it, too. */
export async function checkWithin(config: Config, now: number, report: Report): Promise<void> {
  const inspection = await checkKey(config, report)
  checkRates(config, now, report)
  for (const warning of clearTextWarnings(config)) report('warn', 'encryption', warning, ENCRYPT)
  for (const warning of keyWayWarnings(config)) report('warn', 'keys', warning, SAY_HOW)
  if (inspection) checkSync(inspection, now, report)
  if (inspection) checkRules(config, inspection, report)
  if (inspection) checkFirstOrder(config, inspection, now, report)
}

/** Says what the newest order proves of the words that no check without an order can prove. */
function checkFirstOrder({ dialectFacts }: Config, { bought }: Inspection, now: number, report: Report): void {
  const words = orderWords(dialectFacts)
  if (words.length === 0) return
  if (!bought) {
    report('warn', 'first order', `not proven until an order is complete: ${words.join(', ')}`)
    return
  }
  const { purchase, keys } = bought
  const at = instant(new Date(purchase.changedAt).toISOString(), now)
  const { proven, open } = provenBy(dialectFacts, { ...purchase, keys })
  const order = `the order ${purchase.supplierOrderId} at ${at}`
  report('ok', 'first order', `${order} proves ${proven.join(', ') || 'nothing'}`)
  for (const why of open) report('warn', 'first order', `${order} does not prove ${why}`)
}

/** The version of Node that `npm ci` installs. Other versions from 22.19 on work too, and are tested less. */
const NODE_MAJOR = 24

function checkNode(report: Report): void {
  const version = process.versions.node
  if (version.startsWith(`${NODE_MAJOR}.`)) report('ok', 'Node', version)
  else report('warn', 'Node', `${version} runs it; the tested one is ${NODE_MAJOR}`, 'start it by `npm start` or `npx`')
}

/** @returns undefined when there is no configuration, or it has faults; each fault is reported */
async function checkConfig(
  source: ReturnType<typeof configFileOf>,
  env: Io['env'],
  report: Report,
): Promise<Config | undefined> {
  if (!source || source.demo) {
    const fix = `\`${commandLine('init')}\` writes one`
    report('warn', 'configuration', `there is no ${CONFIG_FILE}: this is the demo`, fix)
  }
  if (!source) return undefined
  const { file } = source
  try {
    const config = await readConfig(file, source.demo ? {} : env)
    report('ok', 'configuration', `${file}, ${counted(config.stores.length, 'store')}`)
    const unread =
      config.home === 'file' ? [] : secretSourcesOf(config).filter((one) => isGiven(one, path.dirname(file), env))
    for (const { variable, file: name } of unread) {
      const message = `${variable} or secrets/${name} is not read any more: the database has this secret`
      report('warn', 'secret', message, `remove it, and change it by \`${commandLine('settings apply')}\``)
    }
    report('ok', 'dialect', `${config.dialectFacts.name} (${config.dialectFile})`)
    return config
  } catch (error) {
    const fields = error instanceof Failure ? error.fields : []
    const fix = `fix it in ${file}`
    if (fields.length === 0)
      report('fail', 'configuration', messageOf(error), codeOf(error) === 'invalid' ? fix : undefined, error)
    for (const { field, message } of fields) {
      const secret = field.startsWith('QUAYSIDE_')
      const check = field === 'supplier.dialect' ? 'dialect' : secret ? 'secret' : 'configuration'
      report('fail', check, `${field}: ${message}`, secret ? undefined : fix)
    }
    return undefined
  }
}

/** How long before the end of a rate `doctor` warns: a person then has time to enter the next rate. */
const WEEK_MS = 7 * 24 * 3_600_000

/** Checks the stores with another currency than the supplier's. They need a rate for their prices, and one back for orders. */
function checkRates({ stores, dialectFacts }: Config, now: number, report: Report): void {
  const supplierCurrency = dialectFacts.money.currency
  for (const { id, currency, policy } of stores) {
    if (currency === supplierCurrency) continue
    const { rates } = policy.pricing
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

/** Checks that only their owner can read secrets: the files have the mode 0600, and their folder 0700. */
function checkModes(file: string | undefined, report: Report): void {
  try {
    const folder = secretsOf(file ?? CONFIG_FILE)
    const names = existsSync(folder) ? readdirSync(folder).map((name) => path.join(folder, name)) : []
    const isOpen = (each: string) => (statSync(each).mode & 0o077) !== 0
    const all = [...names, path.join(dataDirOf(file), 'owner.token')]
    const files = all.filter((each) => statSync(each, { throwIfNoEntry: false })?.isFile())
    const open = files.filter(isOpen)
    for (const each of open) report('fail', 'file modes', `others can read ${each}`, `chmod 600 ${each}`)
    if (existsSync(folder) && isOpen(folder)) {
      report('warn', 'file modes', `others can look into ${folder}`, `chmod 700 ${folder}`)
    }
    if (open.length === 0) report('ok', 'file modes', `${files.length} secret files, none of which others can read`)
  } catch (error) {
    report('fail', 'file modes', messageOf(error), undefined, error)
  }
}

/** Returns the data folder. Where a faulty configuration does not name the folder, the default is the best guess. */
function dataDirOf(file: string | undefined): string {
  try {
    return readPlace(file).dataDir
  } catch {
    return resolveFrom(file, DATA_DIR)
  }
}

/** Checks the data folder's file system. @param typeOf returns the file system of a folder, see `fileSystemOf` */
export function checkFileSystem(file: string | undefined, report: Report, typeOf = fileSystemType): void {
  const dataDir = dataDirOf(file)
  const { name, use } = fileSystemOf(typeOf(dataDir))
  const fix = 'move dataDir to a disk of this machine'
  if (use === 'refused') report('fail', 'file system', `${dataDir} is on ${name}: the service does not start`, fix)
  if (use !== 'doubtful') return
  report('warn', 'file system', `${dataDir} is on ${name}: whether a power cut loses orders is up to that`, fix)
}

const MIB = 1024 * 1024

/** A busy shop writes some 10 MiB a day: 100 MiB last for days, 1 GiB for months. A full disk stops everything at once. */
const FREE_FAIL = 100 * MIB
const FREE_WARN = 1024 * MIB

function checkDisk(file: string | undefined, report: Report): void {
  const dataDir = dataDirOf(file)
  let folder = dataDir
  while (!existsSync(folder)) folder = path.dirname(folder)
  const { bavail, bsize } = statfsSync(folder)
  const free = bavail * bsize
  const text = `${grouped(Math.round(free / MIB))} MiB free for ${dataDir}`
  if (free < FREE_FAIL) report('fail', 'disk', text, 'make room: a full disk stops intake and buying')
  else if (free < FREE_WARN) report('warn', 'disk', text, 'make room before it is full')
  else report('ok', 'disk', text)
}

/** Checks the key-encryption key as a start of the service would. @returns undefined when the database cannot be read */
async function checkKey(config: Config, report: Report): Promise<Inspection | undefined> {
  const inspection = await inspect(config).catch((error: unknown) => {
    const stops = config.databaseUrl !== null || (error instanceof Failure && error.reason === 'database_moved')
    const section = error instanceof Failure ? sectionOf(error) : undefined
    const fix = stops ? section && `see ${section}` : 'is it the one of this service, and may this user read it?'
    const what = stops ? 'the service does not start' : 'it cannot be looked into'
    report(stops ? 'fail' : 'warn', 'database', `${what}: ${messageOf(error)}`, fix, error)
    return undefined
  })
  if (!inspection) return undefined
  const { key, server } = inspection
  if (server !== null) {
    const what = `${placeName(config)}, PostgreSQL ${server.version}`
    const fix = `\`${commandLine('database create')}\` makes one for a new installation; else is this the address of yours?`
    if (server.hasTables) report('ok', 'database', what)
    else report('fail', 'database', `${what}, is empty: the service does not start`, fix)
  }
  if ('fault' in key) {
    const [, what = key.fault, fix] = /^(.*?): (.*)$/s.exec(key.fault) ?? []
    report('fail', 'secret', `the service does not start: ${what}`, fix)
  } else if (key.next) {
    const fix = 'put it in the place of the key-encryption key'
    report('warn', 'secret', `only the next key-encryption key, ${key.name}, opens the database`, fix)
  } else {
    const message = key.opened ? 'opens the database' : 'is well formed'
    report('ok', 'secret', `the key-encryption key ${key.name} ${message}`)
    if (!key.opened && server === null) {
      const fix = `\`${commandLine('database create')}\` makes one for a new installation; else look for its volume and dataDir`
      report('fail', 'database', `there is none in ${config.dataDir}: the service does not start`, fix)
    }
  }
  return inspection
}

/** Reports how the latest sync run ended. While runs fail, the stores sell at old prices, and new offers are not listed. */
function checkSync({ lastSync }: Inspection, now: number, report: Report): void {
  if (!lastSync) return
  const { id, state, finishedAt, offersSeen, offersUnreadable, firstUnreadable, error } = lastSync
  const at = instant(finishedAt === null ? undefined : new Date(finishedAt).toISOString(), now)
  const unread = offersUnreadable === 0 ? '' : `${counted(offersUnreadable, 'offer', 'offers')} could not be read`
  const first = firstUnreadable === null ? '' : `; the first by ${unreadableText(firstUnreadable)}`
  const fix = unread === '' ? `see \`${commandLine(`sync show ${id}`)}\`` : `see \`${commandLine('dialect check')}\``
  if (state === 'failed') {
    const causes = [error, unread === '' ? null : unread + first].filter((cause) => cause !== null)
    report('fail', 'catalogue', `the last sync failed, ${at}: ${causes.join('; ')}`, fix)
  } else if (unread !== '') report('warn', 'catalogue', `${unread} in the last sync, ${at}${first}`, fix)
  else report('ok', 'catalogue', `${counted(offersSeen, 'offer', 'offers')}, read ${at}`)
}

/** How many names in rules, and how many categories, are reported one by one at most. */
const RULES_SHOWN = 10
const CATEGORIES_SHOWN = 5

/** Reports rules with a category or a SKU that no offer has. Such a rule has no effect, and only `doctor` says so. */
function checkRules({ stores }: Config, { catalogue }: Inspection, report: Report): void {
  const names = namesInRules(stores)
  if (!catalogue || names.length === 0) return
  const categories = new Set(catalogue.categories)
  const strange = names.filter(({ kind, name }) => !(kind === 'SKU' ? catalogue.skus : categories).has(name))
  for (const one of strange.slice(0, RULES_SHOWN)) {
    const { store, rule, kind, name } = one
    report('warn', 'rules', `${rule} of ${store}: no offer has the ${kind} "${name}"`, meant(one, catalogue.categories))
  }
  const more = strange.length - RULES_SHOWN
  if (more > 0) report('warn', 'rules', `and ${more} more names that no offer has`)
  if (strange.length === 0) report('ok', 'rules', 'every category and SKU that they name is in the catalogue')
}

function meant({ kind, name }: RuleName, categories: string[]): string {
  if (kind === 'SKU') return 'write it as the supplier does, in the same case, or take it out'
  const nearest = nearestName(name, categories)
  if (nearest !== undefined) return `write "${nearest}", if that is meant`
  if (categories.length === 0) return 'take it out: no offer has a category'
  const more = categories.length - CATEGORIES_SHOWN
  const some = categories.slice(0, CATEGORIES_SHOWN).map((category) => `"${category}"`)
  return `there are ${some.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
