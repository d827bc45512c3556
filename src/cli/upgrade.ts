/** `upgrade --rehearse` tries another version on a copy of the database. Both versions run the hidden command `rehearse-figures`. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs'
import path from 'node:path'
import { type Config, readSecretFile } from '../config/config.ts'
import { counted, duration } from '../domain/figures.ts'
import { sentence } from '../domain/text-layout.ts'
import { Failure, messageOf } from '../errors.ts'
import { type Compared, compareFigures, type Figure, type FiguresHead, figuresOf } from '../rehearsal/figures.ts'
import { Secret } from '../secret.ts'
import { readConfig } from '../settings/stored.ts'
import { databaseFileOf } from '../storage/data-folder.ts'
import { migrationsIn, openAlone, placeName } from '../storage/database-place.ts'
import { writeText } from '../storage/files.ts'
import { appliedMigrations } from '../storage/settings.ts'
import { programVersion } from '../storage/version-note.ts'
import { CONFIG_FILE } from './client.ts'
import { type Io, print, proseWidth } from './command.ts'
import type { FiguresFlags, UpgradeFlags } from './commands.ts'
import { checkWithin } from './doctor.ts'
import { exitCodes } from './exit-codes.ts'
import { drawnLine } from './terminal.ts'
import { cell, commandLine, configOption, quoted, ROOT } from './words.ts'

const entryOf = (program: string): string => path.join(program, 'src/quayside.js')
/** The file in the folder of a copy that has its address, where the copy is on a server. */
const addressOf = (copy: string): string => path.join(copy, 'database-url')

export async function runUpgrade(io: Io, flags: UpgradeFlags): Promise<number> {
  const { rehearse: target, config: named, json } = flags
  const file = named ?? (io.env.QUAYSIDE_CONFIG || CONFIG_FILE)
  const config = await readConfig(file, io.env)
  const copy = path.join(config.dataDir, 'rehearsal')
  if (existsSync(copy)) throw new Failure('conflict', `${copy} is there: remove it, if no other rehearsal runs`)
  const known = await migrationsIn(config)
  if (!known) throw new Failure('not_found', `there is no database at ${placeName(config)}`)
  const isOlder = known.missing.length > 0
  const halt = new AbortController()
  void io.stopSignal().then(() => halt.abort())
  const line = drawnLine(io, io.isTerminal && !json)
  const running: Promise<void>[] = []
  const start = (program: string, ...args: string[]) => {
    // No secret goes to npm, nor to what npm installs.
    const env = program === 'npm' ? withoutSettings(io.env) : io.env
    const child = spawn(program, args, { env, signal: halt.signal, stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    child.stderr.setEncoding('utf8').on('readable', () => {
      said = `${said}${child.stderr.read() ?? ''}`.slice(-4_000)
    })
    const ended = once(child, 'close').then(([code]) => {
      const why = said.trim().replace(/^quayside: /, '') || `it ended with ${code}`
      if (code !== 0) throw new Failure('unavailable', why)
    })
    running.push(ended.catch(() => {}))
    return { out: child.stdout, ended }
  }
  const remove = () => rmSync(copy, { recursive: true, force: true, maxRetries: 3 })
  // A second Ctrl-C ends the process at once.
  process.once('exit', remove)
  try {
    mkdirSync(copy, { mode: 0o700 })
    const next = await programAt(target, path.join(copy, 'program'), start)
    line.draw('copying the database', true)
    await makeCopy(config, copy, flags.copyUrlFile)
    const given = ['rehearse-figures', '--config', file, '--copy', copy, '--at', `${io.now()}`]
    const kept = path.join(copy, 'figures')
    if (!isOlder) {
      line.draw(`computing every price and order with ${programVersion()}`, true)
      const own = start(process.execPath, entryOf(ROOT), ...given)
      await Promise.all([once(own.out.pipe(createWriteStream(kept, { mode: 0o600 })), 'finish'), own.ended])
    }
    const other = start(process.execPath, entryOf(next.folder), ...given)
    const compared = await compareFigures(isOlder ? undefined : createReadStream(kept), other.out, (figures) =>
      line.draw(`${cell(figures)} figures compared with those of ${next.version}`),
    )
      .then((done) => other.ended.then(() => ({ ...done, failure: null })))
      .catch(async (error: unknown) => {
        other.out.resume()
        const failure = await other.ended.then(() => messageOf(error), messageOf)
        return { migrations: [], figures: 0, differences: [], failure }
      })
    halt.signal.throwIfAborted()
    if (compared.failure?.includes("unknown command 'rehearse-figures'")) {
      throw new Failure('conflict', `${next.version} is too old to be rehearsed: it lacks the command for it`)
    }
    const differs = compared.failure !== null || compared.differences.length > 0
    const versions = { from: programVersion(), to: next.version, database: placeName(config) }
    const result = { ...versions, isOlder, differs, ...compared }
    line.clear()
    print(io, json, result, () => rehearsedText(result, flags, proseWidth(io)))
    return differs ? exitCodes.failed : exitCodes.ok
  } catch (error) {
    throw halt.signal.aborted ? new Failure('conflict', 'stopped: nothing has changed', { cause: error }) : error
  } finally {
    line.clear()
    halt.abort()
    await Promise.all(running)
    remove()
    process.off('exit', remove)
  }
}

const withoutSettings = (env: Io['env']): Io['env'] =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('QUAYSIDE_')))

type Start = (program: string, ...args: string[]) => { out: NodeJS.ReadableStream; ended: Promise<void> }

/** Finds the new version in a folder, or else installs a package into `home`. */
async function programAt(target: string, home: string, start: Start): Promise<{ folder: string; version: string }> {
  const places = [target, path.join(target, 'node_modules/quayside')].map((one) => path.resolve(one))
  const found = places.find((one) => existsSync(entryOf(one)))
  if (found === undefined) {
    const wanted = existsSync(target) ? path.resolve(target) : target
    const quietly = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
    const npm = start('npm', 'install', '--prefix', home, ...quietly, '--', wanted)
    npm.out.resume()
    await npm.ended.catch((cause: unknown) => {
      throw new Failure('unavailable', `${target} is no folder of Quayside, and no package: ${messageOf(cause)}`)
    })
  }
  const folder = found ?? path.join(home, 'node_modules/quayside')
  const { version } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as { version: string }
  return { folder, version }
}

const ROOM_BYTES = 512 * 1024 * 1024

async function makeCopy(config: Config, copy: string, urlFile: string | undefined): Promise<void> {
  if (config.databaseUrl === null) {
    const { copyDatabase } = await import('../storage/sqlite/snapshot.ts')
    const database = databaseFileOf(config.dataDir)
    const { bavail, bsize } = statfsSync(copy)
    // The copy, its migration and the figures; a full disk would stop the service.
    if (bavail * bsize < 3 * statSync(database).size + ROOM_BYTES) {
      throw new Failure('unavailable', `${copy} has too little room for a copy: three times the database and 512 MB`)
    }
    return copyDatabase(database, path.join(copy, 'quayside.db'))
  }
  const databaseUrl = urlFile === undefined ? config.databaseUrl : readSecretFile(urlFile)
  const { identityOf } = await import('../storage/postgres/open.ts')
  const [own, given] = [await identityOf(config.databaseUrl.reveal()), await identityOf(databaseUrl.reveal())]
  if (given === own) {
    const how = 'make a copy, as `createdb -T` does, and name a file with the address of the copy by --copy-url-file'
    throw new Failure('invalid', `the database is on a PostgreSQL server: ${how}`)
  }
  writeText(addressOf(copy), databaseUrl.reveal(), 0o600)
}

interface Result extends Compared {
  from: string
  to: string
  database: string
  /** The database is of a version before `from`, so the figures of `from` say nothing. */
  isOlder: boolean
  /** What ended the new version; null: it did everything. */
  failure: string | null
}

function rehearsedText(result: Result, { rehearse: target, config }: UpgradeFlags, width: number): string {
  const { from, to, isOlder, failure, migrations, figures, differences } = result
  const [backup, restore] = ['backup', 'restore <backup>'].map(
    (one) => `\`${commandLine(one + configOption(config))}\``,
  )
  const ran = migrations.map(({ name, ms }) => `${name} (${duration(ms)})`).join(', ') || 'none'
  const none = `The database is of a version before ${from}: there is nothing to compare ${counted(figures, 'figure')} with.`
  const found = [
    `Migrations: ${ran}.`,
    isOlder ? none : `${counted(figures, 'figure')} compared.`,
    ...differences.flatMap(({ what, count, first }) => [
      `${what}: ${cell(count)} ${count === 1 ? 'differs' : 'differ'}`,
      ...first.map(({ of, from, to }) => `  ${of}: ${from} -> ${to}`),
    ]),
    ...(differences.length > 0 || isOlder ? [] : ['Nothing differs.']),
    'To upgrade:',
    `  1. ${backup}, and copy the backup to another machine. Stop the service.`,
    `  2. Put ${quoted(target)} in the place of ${from}, and keep ${from}.`,
    '  3. Start the service. It makes a backup by itself first.',
    `  To go back: put ${from} in its place again, and start it. If ${to} has served and changed tables, ${from} asks for ${restore} first.`,
  ]
  const lines = failure === null ? found : [`${to} fails: ${failure}`, `Stay on ${from}.`]
  const title = `Rehearsed ${from} -> ${to} on a copy of ${result.database}: nothing has changed.`
  return [title, ...lines]
    .flatMap((one) => one.split('\n'))
    .map((one) => sentence(one, width, { hang: 4 }))
    .join('')
}

/** Writes the figures of this version, see `rehearsal/figures`. It opens the copy alone, and sends no request. */
export async function runFigures(io: Io, { config: file, copy, at }: FiguresFlags): Promise<undefined> {
  const databaseUrl = existsSync(addressOf(copy)) ? new Secret(readFileSync(addressOf(copy), 'utf8')) : null
  const place = { dataDir: path.resolve(copy), databaseUrl }
  const config = { ...(await readConfig(file, io.env, place)), ...place }
  let end = 0
  const write = async (lines: object[]): Promise<void> => {
    end += lines.length
    if (!io.stdout.write(lines.map((one) => `${JSON.stringify(one)}\n`).join(''))) await once(io.stdout, 'drain')
  }
  const known = await migrationsIn(config)
  const db = await openAlone(config, { now: Date.now, mustExist: true })
  const opened = Date.now()
  const ran = (await db.query(appliedMigrations())).slice(known?.applied.length)
  const migrations = ran.map(({ name, appliedAt }, index) => ({
    name,
    ms: (ran[index + 1]?.appliedAt ?? opened) - appliedAt,
  }))
  const head: FiguresHead = { quayside: programVersion(), format: 1, migrations }
  const findings = new Map<string, Figure>()
  await checkWithin(config, at, (level, check, message) => {
    const is = { level, message }
    findings.set(`${check}\n${message}`, { kind: 'finding', key: ['1', check, message], of: check, is })
  })
  const sorted = [...findings].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  await write([head, ...sorted.map(([, finding]) => finding)])
  const { policyOf } = await import('../app.ts')
  const { dialectFacts: dialect, stores } = config
  for await (const figures of figuresOf({ db, at, policy: policyOf(config), dialect, stores })) await write(figures)
  await write([{ end: end - 1 }])
  await db.close()
}
