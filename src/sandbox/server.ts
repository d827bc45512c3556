/**
 * The sandbox: a supplier of our own that speaks the whole Reseller API v1.1 in any dialect.
 *
 * Its ledger is always true: it records every charge and every issued key, with any faults and after any number of kills.
 * The sandbox shares only the dialect, the money and the layout of texts with the rest of Quayside. It has its own code for
 * signatures. So a bug of our client does not meet the same bug here, and tests find it.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import express from 'express'
import { type Dialect, valueAt } from '../dialect/dialect.ts'
import { Failure } from '../errors.ts'
import { createApi, malformedAnswer } from './api.ts'
import { generatedCatalogue, shippedCatalogue } from './catalogue.ts'
import { cryptoRandom } from './chance.ts'
import { createControl } from './control.ts'
import { routesOf } from './endpoints.ts'
import { createFaults } from './faults.ts'
import { frontPage } from './front-page.ts'
import { openapiOf } from './openapi.ts'
import type { SandboxDemo } from './panel.ts'
import { createExchangeLog } from './stage.ts'
import { createSender } from './webhooks.ts'
import { openWorld, type WorldOptions } from './world.ts'

/** By default, time and randomness are real, the balance is 2,500.00 (low below 100.00), and an order completes after 300 ms. */
type Optional = 'now' | 'random' | 'file' | 'seed' | 'balanceMinor' | 'balanceLowMinor' | 'completeAfterMs'

export interface SandboxOptions extends Partial<Pick<WorldOptions, Optional>> {
  dialect: Dialect
  /** The one valid API key. */
  apiKey: string
  /** The port to listen at. Default: a free port. */
  port?: number
  /** The address to listen at. Default: loopback. */
  host?: string
  /** The size of a generated catalogue, which `seed` seeds too. Default: the shipped catalogue is used. */
  offers?: number
  /** The rate limit. Default: 600. */
  requestsPerMinute?: number
  /** Whether a timer settles due orders and sends deliveries. If false, callers do it by `advance` and `deliverDue`. */
  automatic?: boolean
  /** The demo that the page of the sandbox shows; only set in a demo. */
  demo?: SandboxDemo | undefined
}

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>

/** The time between two runs of the timer. It is much shorter than the 300 ms of an order, and a run is cheap. */
const tickMs = 50

/** How long a caller may take to read that its request is malformed. A connection cut at once would lose the answer. */
const lingerMs = 1_000

/** Words of a dialect that only suppliers other than the Reseller API v1.1 need, with the value that the sandbox serves. */
const SERVED: Record<string, unknown> = {
  paths: undefined,
  constantHeaders: undefined,
  auth: undefined,
  'signature.string': '{timestamp}.{body}',
  'signature.mac': 'sha256',
  'signature.secret': 'utf8',
  'event.header': undefined,
  orderBody: undefined,
  orderAnswer: 'order',
  idempotency: 'header',
  keys: undefined,
}

function refuseUnserved(dialect: Dialect): void {
  const words = Object.keys(SERVED).filter((word) => ![undefined, SERVED[word]].includes(valueAt(dialect, word)))
  const named = `${words.map((word) => `\`${word}\``).join(', ')} of the dialect ${dialect.name}`
  const message = `the sandbox does not serve ${named}: it speaks the Reseller API v1.1 alone`
  if (words.length > 0) throw new Failure('invalid', message)
}

/** @throws Failure `invalid` for a dialect with words that the sandbox does not serve */
export async function startSandbox(options: SandboxOptions) {
  const { dialect, apiKey, offers, now = Date.now, random = cryptoRandom, requestsPerMinute = 600 } = options
  refuseUnserved(dialect)
  const { balanceMinor = 250_000, balanceLowMinor = 10_000, completeAfterMs = 300 } = options
  const catalogue = offers === undefined ? shippedCatalogue() : generatedCatalogue(offers, options.seed ?? 1)
  const faults = createFaults()
  const settings = { catalogue, faults, now, random, balanceMinor, balanceLowMinor, completeAfterMs }
  const world = openWorld({ ...options, ...settings })
  const exchanges = createExchangeLog()
  const sender = createSender({ dialect, now }, world.webhooks, ({ orderId }, at, status) => {
    const order = orderId === null ? undefined : world.orders.get(orderId)
    if (!order) return
    const { externalOrderId: asked } = order
    const orders = [{ ...order, keys: world.orders.keysOf(order.id).length }]
    exchanges.add({ kind: 'delivery', asked, orders, at, answeredAt: now(), status })
  })
  const closing = new AbortController()
  // A wait that closing cuts short never resolves, so the work after it is never done.
  const pause = (ms: number): Promise<void> =>
    wait(ms, undefined, { signal: closing.signal }).catch(() => new Promise(() => {}))
  const routes = routesOf({ world, dialect, faults, requestsPerMinute, openapi: openapiOf(dialect) })
  const app = express()
  app.disable('x-powered-by').disable('etag').disable('query parser').enable('case sensitive routing')
  app.use(frontPage({ world, faults, dialect, exchanges, now, demo: options.demo }))
  app.use('/sandbox', createControl({ world, faults, dialect }))
  const needs = { dialect, faults, exchanges, apiKey, requestsPerMinute, now, random, pause }
  app.use('/v1', createApi({ ...needs, routes }))
  // Other paths have no routes, but their answers have the same envelope and a request id.
  app.use(createApi({ ...needs, routes: [] }))

  const http = createServer(app)
  http.on('clientError', ({ code }: NodeJS.ErrnoException, socket: Socket) => {
    if (code === 'ECONNRESET') socket.destroy()
    // The parser reports the same error again for every further byte.
    if (!socket.writable) return
    socket.end(malformedAnswer({ dialect, random }, code))
    setTimeout(() => socket.destroy(), lingerMs).unref()
  })
  const server = await listen(http, options.port, options.host).catch(async (cause: unknown) => {
    // If the port is taken, the start fails. The file must not stay open then.
    await sender.close()
    world.close()
    throw cause
  })
  const tick = () => {
    world.orders.advance()
    void sender.deliverDue()
  }
  const timer = options.automatic === false ? undefined : setInterval(tick, tickMs).unref()
  const address = addressOf(server)
  return {
    /** Base address of the API; ends in `/v1`. */
    baseUrl: `${address}/v1`,
    /** Base address of the control API. */
    controlUrl: `${address}/sandbox`,
    world,
    faults,
    advance: world.advance,
    deliverDue: sender.deliverDue,
    close: async (): Promise<void> => {
      clearInterval(timer)
      closing.abort()
      await sender.close()
      await closeServer(server)
      world.close()
    },
  }
}

/** Resolves when the server listens; rejects when the port is taken. */
export function listen(server: Server, port = 0, host = '127.0.0.1'): Promise<Server> {
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen(port, host, () => resolve(server.off('error', reject)))
  })
}

/** Returns the address of a server. A server that listens on all addresses is reached on loopback. */
export function addressOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo
  if (address === '0.0.0.0' || address === '::') return `http://127.0.0.1:${port}`
  return family === 'IPv6' ? `http://[${address}]:${port}` : `http://${address}:${port}`
}

/** Closes the server, and ends every connection at once, idle or busy. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
