/**
 * How the rows of the command line become commands: `commandFrom` makes one out of each.
 *
 * Everything is written through `io`: tables and words for people, one JSON document with `--json`.
 */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { sentence } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import type { Route } from '../http/api/table.ts'
import {
  type Answer,
  type Body,
  type BodyName,
  type Client,
  CONFIG_FILE,
  connectionOf,
  createClient,
  type Item,
  type Query,
  type QueryName,
} from './client.ts'
import { exitCodes } from './exit-codes.ts'
import { type Facts, factsText } from './facts.ts'
import { type Columns, table } from './tables.ts'
import { commandLine } from './words.ts'

/** The outside of one command. */
export interface Io {
  stdin: NodeJS.ReadableStream
  stdout: NodeJS.WritableStream
  stderr: NodeJS.WritableStream
  env: Record<string, string | undefined>
  /** Standard input and output are both a terminal: questions may be asked and a line be drawn again. */
  isTerminal: boolean
  /** Width of the terminal. */
  columns: number
  /** Epoch milliseconds. */
  now: () => number
  sleep: (ms: number) => Promise<void>
  /** In [0, 1). */
  random: () => number
  /** From a cryptographic source. */
  randomBytes: (count: number) => Uint8Array
  /** Resolves at the first SIGTERM or SIGINT; the second ends the process at once. */
  stopSignal: () => Promise<void>
}

/** One run of the command line: what the commands share. */
export interface Session {
  io: Io
  /** Of the command that ran. */
  exitCode: number
}

/** What a command that speaks to the service works with. */
export interface Call {
  io: Io
  client: Client
  /** The arguments of the command, in order. */
  args: string[]
  json: boolean
  /** Whether a person sits there who can be asked. */
  asks: boolean
  /** Columns that a table may take. */
  width: number
  /** The text of an option; undefined when it was not given. */
  option(name: string): string | undefined
  flag(name: string): boolean
  /** Options as a query or a body takes them: by name, numbers and flags as such, what was not given undefined. */
  values<K extends string>(...names: K[]): { [N in K]?: unknown }
  /** Writes the document with `--json`, the text otherwise. */
  print(document: unknown, text: () => string): void
}

/** What every command has, by the way it is written in the help. */
interface CommandHead {
  /** The words and arguments of the command: `deliveries show <id>`. */
  command: string
  about: string
  /** What its arguments are, in order (default: `its id`). */
  args?: string[]
  /** Flags, each with what it means. */
  options?: Record<string, string | OptionRow>
  /** Stands below its help; `quayside` at the beginning of a command becomes what a person can paste. */
  help?: string
  /** Ways to call it, below that: `status --json`. */
  examples?: string[]
  /** The command that lists what its argument names (default: `list` of its group). */
  listedBy?: string
}

interface OptionRow {
  about: string
  parse?: (text: string) => unknown
  fallback?: string | number
  required?: boolean
}

/** A group of commands; it does nothing itself. */
interface GroupRow extends CommandHead {
  call?: never
}

/** A command that does not speak to the service. What it runs is loaded when it runs. @returns the exit code; nothing for 0 */
interface LocalRow extends CommandHead {
  call?: never
  run(io: Io, options: object, ...args: string[]): Promise<number | undefined>
}

/** A command that speaks to the service in more than one call. @returns the exit code; nothing for 0 */
interface ActingRow extends CommandHead {
  call?: never
  act: (call: Call) => Promise<number | undefined>
}

/** One operation of the service. */
interface OperationHead<R extends Route> extends CommandHead {
  /**
   * Its route. The arguments fill the places in their order; a `:store` that is no argument is `--store`, or the only store, and one
   * that is may be given by its name alone.
   */
  call: R
  /** The list whose newest entry is meant where no `[id]` is given, and what it means that there is none. */
  newest?: { of: 'GET /sweeps' | 'GET /sync/runs'; none: string }
  /** Options that become query parameters as they are. */
  filters?: QueryName<R>[]
  /** Query parameters that are always sent, or depend on flags. */
  query?: Query<R> | ((call: Call) => Query<R>)
  /** Options that become fields of the body as they are, or what makes the body. */
  body?: BodyName<R>[] | ((call: Call) => Body<R> | Promise<Body<R>>)
  /** The version of what the change is based on, for If-Match. */
  ifMatch?: (call: Call) => Promise<string>
  deadlineMs?: number
  /** Whether the answer says that what was asked did not succeed: then the exit code is 1. */
  fails?: (answer: Answer<R>) => boolean
}

/** How a list is shown: as a table. */
interface ListView<R extends Route> {
  columns: Columns<Item<R>> | ((call: Call) => Columns<Item<R>>)
  /** What an empty list means, as a sentence. */
  empty: string
  /** The option that goes on after a page (default: `before`); null: the list comes whole. */
  page?: 'after' | null
  /** What to do next, or what the table has no room for. */
  below?: (rows: Item<R>[], call: Call) => string
}

/** An operation, and how its answer is shown: as a text, as facts below each other, or as a table. */
type RowOf<R extends Route> = OperationHead<R> &
  ({ text: (answer: Answer<R>, call: Call) => string } | RecordView<Answer<R>> | ListView<R>)
type OperationRow = { [R in Route]: RowOf<R> }[Route]

export type CommandRow = GroupRow | LocalRow | ActingRow | OperationRow

/** What a command is given of its options, by the way they are written: `--data-dir <folder>` is `dataDir`, a text. */
export type Given<O> = { [F in keyof O as O[F] extends Always ? never : NameOf<F>]?: Value<F, O[F]> } & {
  [F in keyof O as O[F] extends Always ? NameOf<F> : never]: Value<F, O[F]>
}

type Always = { fallback: unknown } | { required: unknown }
type NameOf<F> = F extends `--${infer Words} ${string}` ? Camel<Words> : F extends `--${infer Words}` ? Camel<Words> : F
type Camel<Words> = Words extends `${infer One}-${infer More}` ? `${One}${Capitalize<Camel<More>>}` : Words
type Value<F, Row> = F extends `${string} <${string}`
  ? Row extends { parse: (text: string) => infer Parsed }
    ? Parsed
    : string
  : true

/** The options of every command that reads a configuration. */
export const fileOptions = {
  '--json': 'print one JSON document',
  '--config <file>': `configuration, else ${CONFIG_FILE}`,
}
export type FileFlags = Given<typeof fileOptions>

/** The options of every command that speaks to the service. */
export const serviceOptions = {
  ...fileOptions,
  '--url <address>': 'address of the service, else QUAYSIDE_URL, else the configuration',
  '--token <token>': 'token, else QUAYSIDE_TOKEN, else, at the configured address, the owner token',
}
export type ServiceFlags = Given<typeof serviceOptions>

/** Adds the command of a row to the command that its first words name. */
export function addCommand(root: Command, session: Session, row: CommandRow): void {
  const [words = [], names = []] = [/^[^<[]+/, /[<[].*/].map((part) =>
    (part.exec(row.command)?.[0] ?? '').trim().split(' '),
  )
  const above = words
    .slice(0, -1)
    .reduce((group, word) => group.commands.find((one) => one.name() === word) ?? group, root)
  const command = above.command(words.at(-1) ?? '').description(row.about)
  for (const [index, name] of names.filter(Boolean).entries()) command.argument(name, row.args?.[index] ?? 'its id')
  const more = [row.help, row.examples && examplesText(row.examples)].filter(Boolean)
  if (more.length > 0) command.addHelpText('after', helpText(more.join('\n')))
  addOptions(command, row.options ?? {})
  if ('run' in row) {
    command.action(async () => {
      session.exitCode = (await row.run(session.io, command.opts(), ...command.args)) ?? exitCodes.ok
    })
  }
  if (!row.call && !('act' in row)) return
  if ('columns' in row && row.page !== null) addOptions(command, pageOptions[row.page ?? 'before'])
  // `webhooks create --url` is the webhook's address; that command finds the service without the option.
  const addressed = !command.options.some((option) => option.long === '--url')
  addOptions(command, serviceOptions)
  const group = words.slice(0, -1).join(' ')
  command.action(async () => {
    const hasList = group !== '' && above.commands.some((one) => one !== command && one.name() === 'list')
    const listedBy = row.listedBy ?? (hasList ? `${group} list` : undefined)
    const call = callOf(command, session.io, { addressed, listedBy })
    const ending = 'act' in row ? row.act(call) : perform(row, call)
    session.exitCode = (await ending.catch(otherVersion(call.client.origin))) ?? exitCodes.ok
  })
}

/** An answer without a field that this version reads comes from a service that was not restarted after an upgrade. */
const otherVersion = (origin: string) => (error: unknown) => {
  if (!(error instanceof TypeError)) throw error
  const message = `what ${origin} answers cannot be shown: ${error.message}.\nIs it of another version? Restart it.`
  throw new Failure('unavailable', message, { cause: error })
}

/** The commands of a help, at the beginning of a line or in backquotes, as a person can paste them. */
export const helpText = (help: string): string => help.replaceAll(/(?<=^ {2}|`)quayside (?=[a-z])/gm, commandLine(''))

const examplesText = (examples: string[]): string =>
  `\n${examples.length === 1 ? 'Example' : 'Examples'}:\n${examples.map((one) => `  quayside ${one}`).join('\n')}`

export const pageOptions = {
  before: { '--limit <count>': 'page size, 1-200 (default: 50)', '--before <id>': 'the page after this id' },
  after: { '--limit <count>': 'page size, 1-200 (default: 50)', '--after <id>': 'the page after this id' },
}

function addOptions(command: Command, options: Record<string, string | OptionRow>): void {
  for (const [flags, given] of Object.entries(options)) {
    const { about, parse, fallback, required }: OptionRow = typeof given === 'string' ? { about: given } : given
    const option = new Option(flags, about)
    if (command.options.some(({ long }) => long === option.long)) continue
    if (parse) option.argParser(parse)
    if (fallback !== undefined) option.default(fallback)
    if (required) option.makeOptionMandatory()
    command.addOption(option)
  }
}

function callOf(
  command: Command,
  io: Io,
  { addressed, listedBy }: { addressed: boolean; listedBy: string | undefined },
): Call {
  const options: Record<string, unknown> = command.opts()
  const option = (name: string) => (typeof options[name] === 'string' ? options[name] : undefined)
  const url = addressed ? option('url') : undefined
  const json = options.json === true
  return {
    io,
    client: createClient(connectionOf({ config: option('config'), url, token: option('token') }, io.env), listedBy),
    args: command.args,
    json,
    asks: io.isTerminal && !json,
    width: widthOf(io),
    option,
    flag: (name) => options[name] === true,
    values: (...names) => Object.fromEntries(names.map((name) => [name, options[name]])) as object,
    print: (document, text) => print(io, json, document, text),
  }
}

/** Calls the operation of a row and prints its answer. @param given one row: the types of its route agree with each other */
async function perform(given: OperationRow, call: Call): Promise<number> {
  const row = given as RowOf<Route>
  const paging = 'columns' in row && row.page !== null ? ['limit', row.page ?? 'before'] : []
  const query = {
    ...(typeof row.query === 'function' ? row.query(call) : row.query),
    ...call.values(...paging, ...(row.filters ?? [])),
  }
  const body = Array.isArray(row.body) ? call.values(...row.body) : await row.body?.(call)
  const ifMatch = await row.ifMatch?.(call)
  const path = await pathOf(row, call)
  const answer = await call.client.call(row.call, { path, query, body, ifMatch, deadlineMs: row.deadlineMs })
  call.print(answer, () => textOf(row, answer, call))
  return row.fails?.(answer) ? exitCodes.failed : exitCodes.ok
}

/** What the varying pieces of the route are. */
async function pathOf({ call: route, command, newest }: OperationHead<Route>, call: Call) {
  const path: Record<string, string> = {}
  const args = call.args.values()
  if (newest && call.args.length === 0) {
    const [first] = (await call.client.call(newest.of, { query: { limit: 1 } })).items
    if (!first) throw new Failure('not_found', newest.none)
    return { id: first.id }
  }
  for (const [, name = ''] of route.matchAll(/:(\w+)/g)) {
    if (name !== 'store') path[name] = args.next().value ?? ''
    else path[name] = /[<[]store/.test(command) ? await storeNamed(call, args.next().value) : await storeOf(call)
  }
  return path
}

function textOf(row: RowOf<Route>, answer: Answer<Route>, call: Call): string {
  if ('text' in row) return row.text(answer, call)
  if ('facts' in row) return recordText(answer, row, call)
  const { items, next } = answer as { items: Item<Route>[]; next?: string | null }
  if (items.length === 0) return sentence(row.empty, call.width)
  const more = next ? `There is more: --${row.page ?? 'before'} ${next}\n` : ''
  const columns = typeof row.columns === 'function' ? row.columns(call) : row.columns
  return table(items, columns, call.width, call.io.now()) + more + (row.below?.(items, call) ?? '')
}

/** How a record is shown: its facts, and what follows them. */
export interface RecordView<A extends object> {
  facts: Facts<A>
  /** Each after an empty line; empty ones are left out. */
  parts?: (answer: A, call: Call) => string[]
}

/** A record for people, as `RecordView` says. */
export const recordText = <A extends object>(record: A, { facts, parts }: RecordView<A>, call: Call): string =>
  [factsText(record, facts, call.width, call.io.now()), ...(parts?.(record, call) ?? [])].filter(Boolean).join('\n')

/** The store of `--store`, or the only one. @throws Failure `invalid` where there are several */
export const storeOf = async (call: Call): Promise<string> =>
  call.option('store') ?? (await storeNamed(call, undefined, 'Name it by --store: one of'))

/**
 * @param named its id, or its name alone; undefined for the only store
 * @throws Failure `not_found` where no store, or more than one, has the name; `invalid` where there are several to choose from
 */
async function storeNamed({ client }: Call, named: string | undefined, choose = 'There are'): Promise<string> {
  const ids = (await client.call('GET /stores')).items.map(({ id }) => id)
  if (named !== undefined && ids.includes(named)) return named
  // An id is a name, a dash and eight characters.
  const [only, other] = ids.filter((id) => named === undefined || id.slice(0, -9) === named)
  if (only !== undefined && other === undefined) return only
  const there = ids.join(', ') || 'none'
  if (named === undefined) throw new Failure('invalid', `which store? ${choose} ${there}`)
  const which = only === undefined ? `there is no store ${named}` : `several stores are called ${named}`
  const message = `${which}; there are ${there}. One that was just added is known after a restart`
  throw new Failure('not_found', message)
}

/** The flag for a reason, also of commands that can do without one. */
export const REASON = { '--reason <text>': 'why; the audit keeps it' }

/** @throws Failure `invalid` where none was given */
export function neededReason({ option }: Call): string {
  const reason = option('reason')
  if (reason === undefined) throw new Failure('invalid', "give a reason, for later readers: --reason '…'")
  return reason
}

/** The value must be one of these words. */
export const oneOf =
  <T extends string>(words: readonly T[]) =>
  (text: string): T => {
    const word = words.find((one) => one === text)
    if (word !== undefined) return word
    throw new InvalidArgumentError(`Give one of ${words.join(', ')}.`)
  }

/** A whole number from 0 to `max`. */
export const whole =
  (max: number) =>
  (text: string): number => {
    if (/^\d{1,10}$/.test(text) && Number(text) <= max) return Number(text)
    throw new InvalidArgumentError(`Give a whole number from 0 to ${max}.`)
  }

/** The service sets the bounds; here a word must not become NaN. */
export const wholeOf =
  (unit: string) =>
  (text: string): number => {
    if (/^\d{1,6}$/.test(text)) return Number(text)
    throw new InvalidArgumentError(`Give a whole number of ${unit}.`)
  }

export function print(io: Io, json: boolean | undefined, document: unknown, text: () => string): void {
  io.stdout.write(json ? `${JSON.stringify(document, undefined, 2)}\n` : text())
}

/** Files and pipes get whole lines, so that nothing is missing from what is searched. */
export const widthOf = (io: Io): number => (io.isTerminal ? io.columns : Number.POSITIVE_INFINITY)

/** Columns of what `init` and `doctor` say in sentences, also into a pipe. */
export const proseWidth = (io: Io): number => Math.min(io.columns, 80)
