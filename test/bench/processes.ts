/** The processes of the bench: servers, loads, and sockets that are held open. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Load, Loaded } from './load.ts'

export interface Server {
  url: string
  file: string
  /** From the start of its process to the first answer it could give. */
  readyMs: number
  /** Ends it and keeps its database. */
  stop: () => Promise<void>
  close: () => Promise<void>
}

export const here = (name: string): string => path.join(import.meta.dirname, name)

/** Loaded before a service that has a channel to the bench: `coreTimeOf` asks it. */
export const CORE_TIME = new URL('./core-time.ts', import.meta.url).href

/** Milliseconds of a core that the main thread of a service has worked. */
export async function coreTimeOf(service: ChildProcess): Promise<number> {
  const answer = once(service, 'message')
  service.send('core time')
  const [{ user, system }] = (await answer) as [NodeJS.CpuUsage]
  return (user + system) / 1_000
}

/** As `npm start` starts the service, see `package.json`. */
const NURSERY = '--max-semi-space-size=16'

export async function openServer(
  kind: 'http' | 'fastify' | 'ceiling' | 'plain' | 'quayside',
  kept?: string,
): Promise<Server> {
  const file = kept ?? path.join(mkdtempSync(path.join(tmpdir(), 'quayside-bench-')), 'bench.db')
  const startedAt = performance.now()
  const child = spawn(process.execPath, [NURSERY, here('server.ts'), kind, file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const { port } = JSON.parse(await firstLine(child)) as { port: number }
  const readyMs = performance.now() - startedAt
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  const close = async (): Promise<void> => {
    await stop()
    rmSync(path.dirname(file), { recursive: true, force: true })
  }
  return { url: `http://127.0.0.1:${port}`, file, readyMs, stop, close }
}

export async function load(wanted: Load): Promise<Loaded> {
  const child = spawn(process.execPath, [here('load.ts'), JSON.stringify(wanted)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const line = await firstLine(child)
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return JSON.parse(line) as Loaded
}

/** Sockets that began a request and send a byte of it every few seconds: slower than any sender, within the limits. */
export async function openSlowSockets(url: string, count: number): Promise<{ close: () => void }> {
  const { hostname, port } = new URL(url)
  const sockets = await Promise.all(
    Array.from({ length: count }, async (): Promise<Socket> => {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {})
      await once(socket, 'connect')
      socket.write('POST /webhooks/supplier HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n')
      return socket
    }),
  )
  const drip = setInterval(() => {
    for (const socket of sockets) if (socket.writable) socket.write('x')
  }, 3_000)
  return {
    close: () => {
      clearInterval(drip)
      for (const socket of sockets) socket.destroy()
    },
  }
}

export async function firstLine(child: ChildProcess): Promise<string> {
  let text = ''
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk)
    const end = text.indexOf('\n')
    if (end >= 0) return text.slice(0, end)
  }
  throw new Error('a process of the bench ended without a word')
}

export const medianOf = (list: number[]): number =>
  list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)] ?? Number.NaN
