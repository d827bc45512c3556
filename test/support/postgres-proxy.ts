/** A proxy before a PostgreSQL server, through which tests see what passes and break it. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

export interface PostgresProxy {
  /** The same database through the proxy. */
  url: string
  /** What was sent, each until the server answered. */
  trips: string[]
  /** What happens, once, to the next piece that holds this text. */
  fate: Fate | undefined
  /** Whether connections are taken. */
  isOpen: boolean
  /** How many were not. */
  refused: number
  /** Cuts every connection, and takes none. */
  cutAll(): void
}

export interface Fate {
  at: string
  how: 'cut before' | 'cut after' | 'keep back' | 'hold'
  /** Of what is held: it is passed on after this. */
  meanwhile?: () => Promise<unknown>
}

/** How the message begins that ends a transaction. */
export const COMMIT = 'commit\0'

export async function openProxy(target: string): Promise<PostgresProxy> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  const listener = createServer((client) => {
    const server = connect(Number(port), hostname)
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        client.destroy()
        server.destroy()
      })
    }
    if (!proxy.isOpen) {
      proxy.refused += 1
      client.destroy()
    }
    let isAnswered = true
    let onAnswer = (answer: Buffer): void => void client.write(answer)
    server.on('data', (answer) => {
      isAnswered = true
      onAnswer(answer)
    })
    client.on('data', (piece) => {
      const text = piece.toString('latin1')
      if (isAnswered) proxy.trips.push(text)
      else proxy.trips.push(`${proxy.trips.pop() ?? ''}${text}`)
      isAnswered = false
      const met = proxy.fate && text.includes(proxy.fate.at) ? proxy.fate : undefined
      const fate = met?.how
      if (fate) proxy.fate = undefined
      if (fate === 'hold') return void met?.meanwhile?.().then(() => server.write(piece))
      if (fate === 'keep back') return
      if (fate === 'cut before') return client.destroy()
      if (fate === 'cut after') onAnswer = () => client.destroy()
      return server.write(piece)
    })
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const cut = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  onTestFinished(() => {
    cut()
    listener.close()
  })
  const address = new URL(target)
  address.host = `127.0.0.1:${(listener.address() as { port: number }).port}`
  const proxy: PostgresProxy = {
    url: address.href,
    trips: [],
    fate: undefined,
    isOpen: true,
    refused: 0,
    cutAll() {
      proxy.isOpen = false
      cut()
    },
  }
  return proxy
}
