/** The command line under test: a run with everything it writes captured, and a small service that answers it. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { onTestFinished } from 'vitest'
import { runCommand } from '../../src/cli/commands.ts'
import { statusOf } from './quiet-status.ts'
import { sendJson, startHttp } from './supplier-server.ts'

export interface RunOptions {
  /** 80 columns, on a terminal; false stands for a pipe. */
  terminal?: boolean
  columns?: number
  env?: Record<string, string>
  /** Typed at the terminal, a line at a time. */
  typed?: string[]
  /** All of standard input, from a pipe. */
  piped?: string
  now?: () => number
  /** The signal that ends a command which runs until then (default: at once). */
  stopped?: Promise<void>
}

/** Runs one command to its end. */
export async function run(argv: string[], options: RunOptions = {}) {
  const { terminal = false, columns = 80, env = {}, typed = [], now = () => Date.now() } = options
  const stdin = new PassThrough()
  if (options.piped !== undefined) stdin.end(options.piped)
  const out = capture(() => {
    const line = typed.shift()
    if (line !== undefined) setImmediate(() => stdin.write(`${line}\r`))
  })
  const err = capture(() => {})
  const exitCode = await runCommand(argv, {
    stdin,
    stdout: out.stream,
    stderr: err.stream,
    env,
    isTerminal: terminal,
    columns,
    now,
    sleep: () => new Promise((resolve) => setImmediate(resolve)),
    random: () => 0.5,
    randomBytes: (count) => new Uint8Array(count).map((_, place) => place * 7 + 3),
    stopSignal: () => options.stopped ?? Promise.resolve(),
  })
  return { exitCode, stdout: out.text(), stderr: err.text() }
}

/** @param asked called whenever a question has been written */
function capture(asked: () => void) {
  let text = ''
  const stream = new Writable({
    write(chunk, _encoding, done) {
      text += String(chunk)
      if (/: $/.test(String(chunk))) asked()
      done()
    },
  })
  return { stream, text: () => text }
}

/** A folder of its own that goes when the test has finished. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-cli-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** What a path of the service answers: data, or an error with its status. */
export type Answers = Record<string, (heard: { body: string; url: string }) => unknown>

/** Thrown by an answer. */
export class Refusal {
  readonly status: number
  readonly error: object
  constructor(status: number, code: string, message = 'no', fields?: object[]) {
    this.status = status
    this.error = { code, message, ...(fields ? { fields } : {}) }
  }
}

/** A service that answers `GET /status` and the like, and a configuration and owner token that lead to it. */
export async function startService(answers: Answers) {
  const server = await startHttp((heard, response) => {
    const pathname = new URL(heard.url, 'http://service').pathname.replace('/api/v1', '')
    const answer = answers[`${heard.method} ${pathname}`]
    try {
      if (!answer) throw new Refusal(404, 'not_found', 'there is nothing at this path')
      const data = answer(heard)
      sendJson(response, 200, { success: true, data: pathname === '/status' ? statusOf(data as object) : data })
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal
      sendJson(response, refusal.status, { success: false, error: refusal.error, request_id: 'req-7' })
    }
  })
  onTestFinished(() => server.close())
  return { ...server, ...writePlace(server.origin) }
}

/** A configuration that says where the service is, and an owner token in its data folder. */
export function writePlace(origin: string) {
  const folder = temporaryFolder()
  const dataDir = path.join(folder, 'run')
  const config = path.join(folder, 'quayside.json')
  const { hostname: host, port } = new URL(origin)
  mkdirSync(dataDir)
  const tokenFile = path.join(dataDir, 'owner.token')
  writeFileSync(tokenFile, 'qs_a_owner\n', { mode: 0o600 })
  writeFileSync(config, JSON.stringify({ listen: { host, port: Number(port) }, dataDir }))
  return { config, tokenFile }
}

/** The widest line. */
export const widest = (text: string): number => Math.max(...text.split('\n').map((line) => line.length))
