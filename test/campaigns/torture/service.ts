/** Quayside itself, as a process that is started again and again, with what is to hit it this time. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createWriteStream, writeFileSync } from 'node:fs'
import path from 'node:path'

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
}

export interface Started {
  /** Resolves with true when it listens, with false when it ended before. */
  ready: Promise<boolean>
  ended: Promise<Ended>
}

export interface StartOptions {
  /** Where it kills itself, such as `intended:2`. */
  crash?: string
  /** No file of it can grow beyond so many KiB: a disk that is full. */
  fileKib?: number
}

export interface Service {
  /** Of several processes each has one. */
  name: string
  start: (options?: StartOptions) => Started
  signal: (signal: NodeJS.Signals) => void
  /** Resolves when the process that was started last has ended. */
  ended: () => Promise<Ended>
  /** Shifts its wall clock against ours. */
  shiftClock: (ms: number) => void
  /** Milliseconds from the start of the process until it listened, one for each start that came so far. */
  startsMs: number[]
  /** Whether the process that was started last has said that it is the worker now. */
  isWorker: () => boolean
  /** The last lines that it wrote. */
  lastLines: () => string[]
  close: () => Promise<void>
}

const ENTRY = path.join(import.meta.dirname, '../../../src/quayside.js')
const LISTENS = /Quayside listens at/
const BEGAN = /"worker\.began"/
/** Lines kept to show why it ended. */
const LINES_MAX = 30

export interface ServiceOptions {
  folder: string
  configFile: string
  /** Of one process of several. */
  name?: string
  /** What it does, of several processes. */
  role?: 'web' | 'worker'
  /** Modules that are loaded before it. */
  preload: string[]
  env: Record<string, string>
}

export function createService({ folder, configFile, name = 'quayside', role, preload, env }: ServiceOptions): Service {
  const clockFile = path.join(folder, `${name}.clock`)
  writeFileSync(clockFile, '0')
  const log = createWriteStream(path.join(folder, `${name}.log`), { flags: 'a' })
  const lines: string[] = []
  const startsMs: number[] = []
  let child: ChildProcess | undefined
  let began = false
  let last: Promise<Ended> = Promise.resolve({ code: 0, signal: null })
  const crash = path.join(import.meta.dirname, '../../support/crash.ts')
  const imports = [path.join(import.meta.dirname, './clock.ts'), crash, ...preload].flatMap((file) => [
    '--import',
    file,
  ])
  const environment = {
    ...process.env,
    ...env,
    TORTURE_CLOCK: clockFile,
    // A service that is started hundreds of times need not be compiled as often; one that ends in order keeps the result.
    NODE_COMPILE_CACHE: path.join(folder, 'compiled'),
  }
  execFileSync(process.execPath, [...imports, ENTRY, '--help'], { env: environment, stdio: 'ignore' })
  const command = [process.execPath, ...imports, ENTRY, 'serve', '--config', configFile]
  if (role) command.push('--role', role)

  function start({ crash, fileKib }: StartOptions = {}): Started {
    const startedAt = performance.now()
    // POSIX counts the limit in blocks of 512 bytes.
    const limited = ['sh', '-c', 'ulimit -f "$1"; shift; exec "$@"', 'sh', String((fileKib ?? 0) * 2), ...command]
    const [program = '', ...given] = fileKib === undefined ? command : limited
    const running = spawn(program, given, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...environment, ...(crash ? { QUAYSIDE_CRASH: crash } : {}) },
    })
    child = running
    began = false
    let listens: (yes: boolean) => void = () => {}
    const ready = new Promise<boolean>((resolve) => {
      listens = resolve
    })
    for (const stream of [running.stdout, running.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        log.write(text)
        lines.push(...text.split('\n').filter(Boolean))
        lines.splice(0, lines.length - LINES_MAX)
        began ||= running === child && BEGAN.test(text)
        if (!LISTENS.test(text)) return
        startsMs.push(performance.now() - startedAt)
        listens(true)
      })
    }
    last = new Promise((resolve) => {
      running.once('exit', (code, signal) => {
        log.write(`--- ended: ${signal ?? `code ${code}`}\n`)
        listens(false)
        resolve({ code, signal })
      })
    })
    return { ready, ended: last }
  }

  return {
    name,
    start,
    signal: (signal) => void child?.kill(signal),
    ended: () => last,
    shiftClock: (ms) => writeFileSync(clockFile, String(ms)),
    startsMs,
    isWorker: () => began,
    lastLines: () => [...lines],
    close: async () => {
      child?.kill('SIGKILL')
      await last
      log.end()
    },
  }
}
