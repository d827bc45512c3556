/**
 * A proxy before a PostgreSQL server that counts what a process sends: statements, and how often it waits for the answers. It can
 * also keep each answer back, as a server does that is further away.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface Wire {
  /** The same database through the proxy. */
  url: string
  /** Since the start. */
  count: () => Sent
  close: () => void
}

export interface Sent {
  statements: number
  roundTrips: number
}

/** @param awayMs how long each answer is kept back. Default: not at all */
export async function openWire(target: string, awayMs = 0): Promise<Wire> {
  const { hostname, port } = new URL(target)
  const sent: Sent = { statements: 0, roundTrips: 0 }
  const sockets = new Set<Socket>()
  const listener = createServer((client) => {
    const server = connect(Number(port), hostname)
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.setNoDelay()
      socket.on('error', () => undefined)
      socket.on('close', () => {
        client.destroy()
        server.destroy()
      })
    }
    const count = counting(sent)
    client.on('data', (piece) => {
      count(piece)
      server.write(piece)
    })
    server.on('data', (piece) => {
      if (awayMs === 0) client.write(piece)
      else setTimeout(() => client.write(piece), awayMs)
    })
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = new URL(target)
  address.host = `127.0.0.1:${(listener.address() as AddressInfo).port}`
  return {
    url: address.href,
    count: () => ({ ...sent }),
    close: () => {
      for (const socket of sockets) socket.destroy()
      listener.close()
    },
  }
}

/**
 * Reads the messages of one connection. Query and Execute are a statement each; the server answers at Query and at Sync.
 *
 * @see the PostgreSQL manual, "Message Formats": a type, the length, which counts itself, and the rest; the first has no type
 */
function counting(sent: Sent): (piece: Buffer) => void {
  let rest = Buffer.alloc(0)
  let hasBegun = false
  return (piece) => {
    rest = Buffer.concat([rest, piece])
    for (;;) {
      const head = hasBegun ? 1 : 0
      if (rest.length < head + 4) return
      const end = head + rest.readInt32BE(head)
      if (rest.length < end) return
      const type = hasBegun ? rest.toString('latin1', 0, 1) : ''
      if (type === 'Q' || type === 'E') sent.statements += 1
      if (type === 'Q' || type === 'S') sent.roundTrips += 1
      hasBegun = true
      rest = rest.subarray(end)
    }
  }
}
