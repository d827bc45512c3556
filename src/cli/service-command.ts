import type { Command } from 'commander'
import { type Client, createClient } from './client.ts'
import { CONFIG_FILE, connectionOf } from './connection.ts'
import { exitCodes } from './exit-codes.ts'
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
