/**
 * A load balancer as simple as can be: each request goes to the next process whose `/readyz` answered 200 when it was last asked. It
 * repeats nothing: what it cannot pass on is a 502, so that the sender sees every request that a process did not answer.
 */
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'

/** How often each process is asked whether it is ready. */
const LOOK_MS = 1_000
/** A process that is busy, or waits for its disk, may take so long to answer. */
const ANSWER_MS = 5_000

/** @param targets `http://127.0.0.1:8080` and others */
export async function openBalancer(targets: readonly string[]) {
  let ready: readonly string[] = []
  let turn = 0
  /** One that takes its time to say so is as ready as it was. */
  const isReady = (target: string): Promise<boolean> =>
    fetch(`${target}/readyz`, { headers: { connection: 'close' }, signal: AbortSignal.timeout(ANSWER_MS) }).then(
      (answer) => answer.ok,
      (error: unknown) => error instanceof DOMException && error.name === 'TimeoutError' && ready.includes(target),
    )
  const look = async (): Promise<void> => {
    const answers = await Promise.all(targets.map(isReady))
    ready = targets.filter((_, place) => answers[place])
  }
  await look()
  // One after the other, so that the latest answer counts.
  let isLooking = false
  const looking = setInterval(async () => {
    if (isLooking) return
    isLooking = true
    await look()
    isLooking = false
  }, LOOK_MS)
  const server = createServer((incoming, response) => {
    turn += 1
    const target = ready[turn % ready.length]
    const fail = (status: number) => {
      if (response.headersSent) response.destroy()
      else response.writeHead(status).end()
    }
    if (target === undefined) return fail(504)
    const { connection: _, ...headers } = incoming.headers
    const passed = request(`${target}${incoming.url}`, { method: incoming.method, headers, agent: false })
    passed.on('response', (answer) => {
      const { connection: _, ...given } = answer.headers
      response.writeHead(answer.statusCode ?? 502, given)
      pipeline(answer, response).catch(() => fail(502))
    })
    passed.on('error', () => fail(502))
    incoming.pipe(passed)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** The processes that were ready when they were last asked. */
    ready: (): readonly string[] => ready,
    /** Asks every process now. */
    look,
    close: (): void => {
      clearInterval(looking)
      server.closeAllConnections()
      server.close()
    },
  }
}
