/** Puts a shop that lives in memory behind an HTTP server, and sends the deliveries that it has ready. */
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { Agent, request as send } from 'undici'
import { addressOf, closeServer, listen } from '../../src/sandbox/server.ts'

export interface ShopRequest {
  method: string
  /** Absolute, with its query. */
  url: string
  /** Names in lower case. */
  headers: Record<string, string | string[] | undefined>
  body?: Buffer | string
}

export interface ShopAnswer {
  status: number
  headers: Record<string, string | string[]>
  body: string
  /** The connection ends without this answer: the shop may have acted. */
  isLost?: true
}

interface ShopDelivery {
  url: string
  headers: Record<string, string>
  body: string
}

/** A shop without sockets, as the server needs it. */
interface ServedShop<Delivery extends ShopDelivery> {
  handle: (request: ShopRequest) => ShopAnswer
  takeDeliveries: () => Delivery[]
  /** @param status what the receiver answered; null: nothing */
  delivered: (delivery: Delivery, status: number | null) => void
}

export interface ShopServerOptions {
  /** Which scheme the shop takes its requests to come by (default: https). */
  scheme?: 'http' | 'https' | undefined
  port?: number | undefined
}

export interface RunningShop<Delivery> {
  /** The shop's address, of the scheme that it pretends. */
  url: string
  /** Connects to an https address of this server without TLS. */
  connections: Agent
  /** Sends what is due, each delivery once, in order; the answers' statuses, null for none. */
  deliverDue: () => Promise<(number | null)[]>
  /** Sends one delivery, however often it was sent before. */
  deliver: (delivery: Delivery) => Promise<number | null>
  /** Takes no connection any more, until `start`. */
  stop: () => Promise<void>
  /** Listens again on the same port. */
  start: () => Promise<void>
  close: () => Promise<void>
}

export async function startShop<Delivery extends ShopDelivery>(
  shop: ServedShop<Delivery>,
  { scheme = 'https', port: wanted }: ShopServerOptions,
): Promise<RunningShop<Delivery>> {
  const open = () =>
    createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const answer = shop.handle({
          method: request.method ?? 'GET',
          url: `${scheme}://${request.headers.host}${request.url}`,
          headers: request.headers,
          body: Buffer.concat(chunks),
        })
        if (answer.isLost) {
          request.socket.destroy()
          return
        }
        response.writeHead(answer.status, answer.headers)
        response.end(answer.body)
      })
    })
  let server = await listen(open(), wanted)
  const address = addressOf(server)
  const port = Number(new URL(address).port)
  const connections = new Agent({
    connect: ({ hostname }, done) => {
      const socket = connect(port, hostname)
      socket.once('connect', () => done(null, socket))
      socket.once('error', (error) => done(error, null))
    },
  })

  const deliver = async (delivery: Delivery): Promise<number | null> => {
    const { url: to, headers, body } = delivery
    const status = await send(to, { method: 'POST', headers, body }).then(
      async (answer) => {
        await answer.body.dump()
        return answer.statusCode
      },
      () => null,
    )
    shop.delivered(delivery, status)
    return status
  }
  return {
    url: `${scheme}:${address.slice(address.indexOf('//'))}`,
    connections,
    deliver,
    deliverDue: async () => {
      const statuses: (number | null)[] = []
      for (const delivery of shop.takeDeliveries()) statuses.push(await deliver(delivery))
      return statuses
    },
    stop: () => closeServer(server),
    start: async () => {
      server = await listen(open(), port)
    },
    close: async () => {
      await connections.destroy()
      await closeServer(server)
    },
  }
}
