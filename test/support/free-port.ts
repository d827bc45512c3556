/**
 * Ports for processes and servers that a test starts later, or starts again. They lie below those that the system gives to clients and
 * to servers that ask for any port: none of these takes one in between. Each worker of the test runner has a range of its own.
 */
import { once } from 'node:events'
import { createServer } from 'node:net'

const FIRST = 20_000
const PER_WORKER = 3_000
const WORKERS = 4

const from = FIRST + (Number(process.env.VITEST_POOL_ID ?? 0) % WORKERS) * PER_WORKER
// Processes that share a range begin at different places.
let next = Math.floor(Math.random() * PER_WORKER)

export async function freePort(): Promise<number> {
  for (let tried = 0; tried < PER_WORKER; tried += 1) {
    next = (next + 1) % PER_WORKER
    const port = from + next
    if (await isFree(port)) return port
  }
  throw new Error(`no port is free from ${from} on`)
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
