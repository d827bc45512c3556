/**
 * Makes commands from the rows of the command line: `addCommand` makes one command from each row.
 *
 * All output is written through `io`: tables and words for people, or one JSON document with `--json`.
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
  type ConnectionOptions,
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

/** What one command uses of the world outside: streams, environment, clock, randomness and signals. */
export interface Io {
  stdin: NodeJS.ReadableStream
  stdout: NodeJS.WritableStream
  stderr: NodeJS.WritableStream
  env: Record<string, string | undefined>
  /** Whether standard input and output are both a terminal: then questions may be asked, and a line may be drawn again. */
  isTerminal: boolean
  columns: number
  /** Epoch milliseconds. */
  now: () => number
  sleep: (ms: number) => Promise<void>
  /** Returns a number in [0, 1). */
  random: () => number
  /** Returns bytes from a cryptographic source. */
  randomBytes: (count: number) => Uint8Array
  /** Resolves at the first SIGTERM or SIGINT. The second signal ends the process at once. */
  stopSignal: () => Promise<void>
}

/** What the commands share in one run of the command line. */
export interface Session {
  io: Io
  exitCode: number
}

export interface Call {
  io: Io
  client: Client
  args: string[]
  json: boolean
  /** Whether a person at a terminal can be asked questions. */
  asks: boolean
  width: number
  /** The text of an option; undefined when it was not given. */
  option(name: string): string | undefined
  flag(name: string): boolean
  /** Returns options as fields of a query or a body. Numbers and flags stay as they are; a missing option is undefined. */
  values<K extends string>(...names: K[]): { [N in K]?: unknown }
  /** Prints the document as JSON with `--json`, the text otherwise. */
  print(document: unknown, text: () => string): void
}

/** What every row has. These texts stand in the help of the command. */
interface CommandHead {
  /** The words and arguments of the command: `deliveries show <id>`. */
  command: string
  about: string
  /** What the arguments are, in their order (default: `its id`). */
  args?: string[]
  options?: Record<string, string | OptionRow>
  hidden?: true
  /** A text below the help of the command. `helpText` turns its commands into what a person can paste. */
  help?: string
  /** Example calls, which the help shows below the text of `help`: `status --json`. */
  examples?: string[]
  /** The command that lists what the argument may name (default: `list` of the same group). */
  listedBy?: string
}

interface OptionRow {
  about: string
  parse?: (text: string) => unknown
  fallback?: string | number
  required?: boolean
}

/** A command with code of its own, which returns the exit code (undefined: 0). A row without code is a group of commands. */
interface OtherRow extends CommandHead {
  call?: never
  /** Does not speak to the service. Its code is loaded when it runs. */
  run?(io: Io, options: object, ...args: string[]): Promise<number | undefined>
  /** Speaks to the service in more than one call. */
  act?: (call: Call) => Promise<number | undefined>
}

interface OperationHead<R extends Route> extends CommandHead {
  /**
   * The route of the operation. The arguments fill its variable pieces, in order. An argument for `:store` may be
   * the store's id, or its name alone. Without such an argument, `:store` is `--store`, or else the only store.
   */
  call: R
  /** The list whose newest entry is shown when no `[id]` is given, and the message for an empty list. */
  newest?: { of: 'GET /sweeps' | 'GET /sync/runs'; none: string }
  /** Options that become query parameters as they are. */
  filters?: QueryName<R>[]
  /** Query parameters that are always sent, or that depend on flags. */
  query?: Query<R> | ((call: Call) => Query<R>)
  /** Options that become fields of the body as they are, or a function that makes the body. */
  body?: BodyName<R>[] | ((call: Call) => Body<R> | Promise<Body<R>>)
  /** Returns a CSV file, which is sent in the place of a body. */
  file?: (call: Call) => Promise<Uint8Array<ArrayBuffer>>
  /** Returns the version that the change is based on, for If-Match. */
  ifMatch?: (call: Call) => Promise<string>
  deadlineMs?: number
  /** Says whether the answer reports that the request did not succeed: then the exit code is 1. */
  fails?: (answer: Answer<R>) => boolean
}

interface ListView<R extends Route> {
  columns: Columns<Item<R>> | ((call: Call) => Columns<Item<R>>)
  /** What an empty list means, as a sentence. */
  empty: string
  /** The option that asks for the next page (default: `before`); null: the list comes whole. */
  page?: 'after' | null
  /** Returns the text below the table: what to do next, or what the table has no room for. */
  below?: (rows: Item<R>[], call: Call) => string
}

/** An operation, and how its answer is shown: as a text, as one fact on each line, or as a table. */
type RowOf<R extends Route> = OperationHead<R> &
  ({ text: (answer: Answer<R>, call: Call) => string } | RecordView<Answer<R>> | ListView<R>)
type OperationRow = { [R in Route]: RowOf<R> }[Route]

export type CommandRow = OtherRow | OperationRow

/** The options that a command is given, typed by how they are written: `--data-dir <folder>` becomes `dataDir`, a text. */
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

export const fileOptions = {
  '--json': 'print one JSON document',
  '--config <file>': `configuration, else ${CONFIG_FILE}`,
}
export type FileFlags = Given<typeof fileOptions>

export const serviceOptions = {
  ...fileOptions,
  '--url <address>': 'address of the service, else QUAYSIDE_URL, else the configuration',
  '--token <token>': 'token, else QUAYSIDE_TOKEN, else, at the configured address, the owner token',
}
export type ServiceFlags = Given<typeof serviceOptions>

/** Makes the command of a row and adds it to its group, which the words before the last one name. */
export function addCommand(root: Command, session: Session, row: CommandRow): void {
  const [words = [], names = []] = [/^[^<[]+/, /[<[].*/].map((part) =>
    (part.exec(row.command)?.[0] ?? '').trim().split(' '),
  )
  const above = words
    .slice(0, -1)
    .reduce((group, word) => group.commands.find((one) => one.name() === word) ?? group, root)
  const command = above.command(words.at(-1) ?? '', { hidden: row.hidden === true }).description(row.about)
  for (const [index, name] of names.filter(Boolean).entries()) command.argument(name, row.args?.[index] ?? 'its id')
  const more = [row.help, row.examples && examplesText(row.examples)].filter(Boolean)
  if (more.length > 0) command.addHelpText('after', helpText(more.join('\n')))
  addOptions(command, row.options ?? {})
  if (!row.call && row.run) {
    const { run } = row
    command.action(async () => {
      session.exitCode = (await run(session.io, command.opts(), ...command.args)) ?? exitCodes.ok
    })
  }
  const act = row.call ? (call: Call) => perform(row, call) : row.act
  if (!act) return
  if ('columns' in row && row.page !== null) addOptions(command, pageOptions[row.page ?? 'before'])
  // In `webhooks create`, `--url` is the webhook's address, so that command finds the service without this option.
  const addressed = !command.options.some((option) => option.long === '--url')
  addOptions(command, serviceOptions)
  const group = words.slice(0, -1).join(' ')
  command.action(async () => {
    const hasList = group !== '' && above.commands.some((one) => one !== command && one.name() === 'list')
    const listedBy = row.listedBy ?? (hasList ? `${group} list` : undefined)
    const { url, ...others } = command.opts<ConnectionOptions>()
    const connection = connectionOf(addressed ? { ...others, url } : others, session.io.env)
    const call = callOf(command, session.io, createClient(connection, listedBy))
    session.exitCode = (await act(call).catch(otherVersion(call.client.origin))) ?? exitCodes.ok
  })
}

/** Explains a TypeError: a service that was not restarted after an upgrade answers without a field that this version reads. */
const otherVersion = (origin: string) => (error: unknown) => {
  if (!(error instanceof TypeError)) throw error
  const message = `what ${origin} answers cannot be shown: ${error.message}.\nIs it of another version? Restart it.`
  throw new Failure('unavailable', message, { cause: error })
}

/** Writes the commands of a help as a person can paste them. They stand at the beginning of a line or in backquotes. */
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

function callOf(command: Command, io: Io, client: Client): Call {
  const options: Record<string, unknown> = command.opts()
  const json = options.json === true
  return {
    io,
    client,
    args: command.args,
    json,
    asks: io.isTerminal && !json,
    width: widthOf(io),
    option: (name) => (typeof options[name] === 'string' ? options[name] : undefined),
    flag: (name) => options[name] === true,
    values: (...names) => Object.fromEntries(names.map((name) => [name, options[name]])) as object,
    print: (document, text) => print(io, json, document, text),
  }
}

/** Calls the operation of a row and prints its answer. @param given a row whose types all belong to its route */
async function perform(given: OperationRow, call: Call): Promise<number> {
  const row = given as RowOf<Route>
  const paging = 'columns' in row && row.page !== null ? ['limit', row.page ?? 'before'] : []
  const query = {
    ...(typeof row.query === 'function' ? row.query(call) : row.query),
    ...call.values(...paging, ...(row.filters ?? [])),
  }
  const body = Array.isArray(row.body) ? call.values(...row.body) : await row.body?.(call)
  const file = await row.file?.(call)
  const ifMatch = await row.ifMatch?.(call)
  const path = await pathOf(row, call)
  const answer = await call.client.call(row.call, { path, query, body, file, ifMatch, deadlineMs: row.deadlineMs })
  call.print(answer, () => textOf(row, answer, call))
  return row.fails?.(answer) ? exitCodes.failed : exitCodes.ok
}

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

/** How a record is shown: its facts, and the parts that follow them. */
export interface RecordView<A extends object> {
  facts: Facts<A>
  /** Each part stands after an empty line. Empty parts are left out. */
  parts?: (answer: A, call: Call) => string[]
}

export const recordText = <A extends object>(record: A, { facts, parts }: RecordView<A>, call: Call): string =>
  [factsText(record, facts, call.width, call.io.now()), ...(parts?.(record, call) ?? [])].filter(Boolean).join('\n')

/** Returns the store of `--store`, or the only store. @throws Failure `invalid` where there are several stores */
export const storeOf = async (call: Call): Promise<string> =>
  call.option('store') ?? (await storeNamed(call, undefined, 'Name it by --store: one of'))

/** Returns the id of a store that the service has. @throws Failure as `storeAmong` does */
export const storeNamed = async ({ client }: Call, named: string | undefined, choose?: string): Promise<string> =>
  storeAmong((await client.call('GET /stores')).items, named, choose)

/**
 * Returns the id of a store. @param named its id or its name; undefined for the only store
 * @throws Failure `not_found` unless exactly one store has the name; `invalid` without a name, unless there is one store only
 */
export function storeAmong(stores: readonly { id: string }[], named: string | undefined, choose = 'There are'): string {
  const ids = stores.map(({ id }) => id)
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

/** The option for a reason. Some commands need a reason, others only take one. */
export const REASON = { '--reason <text>': 'why; the audit keeps it' }

/** Returns the reason that was given. @throws Failure `invalid` where no reason was given */
export function neededReason({ option }: Call): string {
  const reason = option('reason')
  if (reason === undefined) throw new Failure('invalid', "give a reason, for later readers: --reason '…'")
  return reason
}

export const oneOf =
  <T extends string>(words: readonly T[]) =>
  (text: string): T => {
    const word = words.find((one) => one === text)
    if (word !== undefined) return word
    throw new InvalidArgumentError(`Give one of ${words.join(', ')}.`)
  }

export const whole =
  (max: number) =>
  (text: string): number => {
    if (/^\d{1,10}$/.test(text) && Number(text) <= max) return Number(text)
    throw new InvalidArgumentError(`Give a whole number from 0 to ${max}.`)
  }

/** Makes a parser of whole numbers, so that a word does not become NaN. The service checks the bounds. */
export const wholeOf =
  (unit: string) =>
  (text: string): number => {
    if (/^\d{1,6}$/.test(text)) return Number(text)
    throw new InvalidArgumentError(`Give a whole number of ${unit}.`)
  }

export function print(io: Io, json: boolean | undefined, document: unknown, text: () => string): void {
  io.stdout.write(json ? `${JSON.stringify(document, undefined, 2)}\n` : text())
}

/** Returns the width of output. Files and pipes get lines without a limit, so that a search in them misses nothing. */
export const widthOf = (io: Io): number => (io.isTerminal ? io.columns : Number.POSITIVE_INFINITY)

/** Returns the width of the sentences of commands such as `init` and `doctor`, also for a pipe. */
export const proseWidth = (io: Io): number => Math.min(io.columns, 80)
