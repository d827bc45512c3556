import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { type Client, CONFIG_FILE, connectionOf, createClient, type Query } from './client.ts'
import { asRow, asRows, type Column, exitCodes, type Row, sentence, table } from './output.ts'
import type { Io, Session } from './program.ts'

/** What a command that speaks to the service works with. */
export interface Call {
  io: Io
  client: Client
  /** Its arguments, in order. */
  args: string[]
  json: boolean
  /** Columns that a table may take. */
  width: number
  /** The text of an option; undefined when it was not given. */
  option(name: string): string | undefined
  flag(name: string): boolean
  /** Writes the document with `--json`, the text otherwise. */
  print(document: unknown, text: () => string): void
}

/**
 * Gives a command the options that all of them share, and its action.
 *
 * @param act resolves with an exit code, or with nothing for 0
 */
export function serviceCommand(command: Command, session: Session, act: (call: Call) => Promise<number | undefined>) {
  // `webhooks create --url` is the webhook's address; that command finds the service without the option.
  const addressed = !command.options.some((option) => option.long === '--url')
  shareOptions(command)
  if (addressed) command.option('--url <address>', 'address of the service, else QUAYSIDE_URL, else the configuration')
  command.option('--token <token>', 'token, else QUAYSIDE_TOKEN, else the owner token')
  command.action(async () => {
    const options: Record<string, unknown> = command.opts()
    const option = (name: string) => (typeof options[name] === 'string' ? options[name] : undefined)
    const url = addressed ? option('url') : undefined
    const connection = connectionOf({ config: option('config'), url, token: option('token') }, session.io.env)
    const json = options.json === true
    const exitCode = await act({
      io: session.io,
      client: createClient(connection),
      args: command.args,
      json,
      width: widthOf(session.io),
      option,
      flag: (name) => options[name] === true,
      print: (document, text) => print(session.io, json, document, text),
    })
    session.end(exitCode ?? exitCodes.ok)
  })
}

/** The options of every command. */
export const shareOptions = (command: Command): Command =>
  command.option('--json', 'print one JSON document').option('--config <file>', `configuration, else ${CONFIG_FILE}`)

export function print(io: Io, json: boolean, document: unknown, text: () => string): void {
  io.stdout.write(json ? `${JSON.stringify(document, undefined, 2)}\n` : text())
}

/** Files and pipes get whole lines, so that nothing is missing from what is searched. */
export const widthOf = (io: Io): number => (io.isTerminal ? io.columns : Number.POSITIVE_INFINITY)

/** Columns of what `init` and `doctor` say in sentences, also into a pipe. */
export const proseWidth = (io: Io): number => Math.min(io.columns, 80)

/**
 * Asks whether what was shown is to be done: only `yes` is a yes.
 *
 * @param text what is to be done, shown before
 */
export async function confirmed(io: Io, text: string): Promise<boolean> {
  io.stdout.write(`${text}\n`)
  const lines = createInterface({ input: io.stdin, output: io.stdout, terminal: true })
  // Without this, the end of the input would leave the question open for ever, and the process would end with 0.
  const ended = new AbortController()
  lines.once('close', () => ended.abort())
  try {
    const typed = await lines.question('Type yes to do it: ', { signal: ended.signal })
    return typed.trim().toLowerCase() === 'yes'
  } catch {
    return false
  } finally {
    lines.close()
  }
}

export interface List {
  /** Under `/api/v1`. */
  path: string[]
  /** The list is short and comes whole. */
  whole?: true
  /** Names of options that become query parameters as they are. */
  filters?: string[]
  /** Query parameters that the command always sends. */
  fixed?: Query
  columns: (call: Call) => Column[]
  /** What to do next, or what the table has no room for, below it. */
  after?: string | ((rows: Row[], call: Call) => string)
  /** What an empty list means, as a sentence. */
  empty: string
}

/** Gives a command the options of a list, newest first, and an action that prints one page of it. */
export function listCommand(command: Command, session: Session, list: List): void {
  if (!list.whole) {
    command.option('--limit <count>', 'how many, 1 to 200; 50 unless told')
    command.option('--before <id>', 'go on after the last id of the page before')
  }
  serviceCommand(command, session, async (call) => {
    const names = ['limit', 'before', ...(list.filters ?? [])]
    const query: Query = { ...list.fixed, ...Object.fromEntries(names.map((name) => [name, call.option(name)])) }
    const page = asRow(await call.client.get(list.path, query))
    call.print(page, () => {
      const rows = asRows(page.items)
      if (rows.length === 0) return sentence(list.empty, call.width)
      const more = typeof page.next === 'string' ? `There is more: --before ${page.next}\n` : ''
      const after = typeof list.after === 'function' ? list.after(rows, call) : (list.after ?? '')
      return table(rows, list.columns(call), call.width) + more + after
    })
    return undefined
  })
}
