/** The load balancer before several processes: each connection goes to the next of them that takes it. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface Balancer {
  port: number
  close: () => Promise<void>
}

export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const sockets = new Set<Socket>()
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on('close', () => sockets.delete(socket)).on('error', () => {})
  }
  let turn = 0
  const server = createServer((client) => {
    turn += 1
    keep(client)
    const [first = 0, ...others] = ports.map((_, index) => ports[(turn + index) % ports.length] ?? 0)
    handOver(client, first, others)
  })
  /** One that refuses the connection has read nothing of the request. */
  function handOver(client: Socket, port: number, others: number[]): void {
    const upstream = keep(connect(port, '127.0.0.1'))
    const refused = (): void => {
      const [next, ...rest] = others
      if (next === undefined) client.destroy()
      else handOver(client, next, rest)
    }
    upstream.once('error', refused)
    upstream.once('connect', () => {
      upstream.off('error', refused)
      client.on('close', () => upstream.destroy())
      upstream.on('close', () => client.destroy())
      client.pipe(upstream)
      upstream.pipe(client)
    })
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as { port: number }).port,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
