/**
 * A TCP proxy that damages what passes through it.
 *
 * It knows nothing of HTTP but that one side speaks and then the other: bytes of the client that follow bytes of the
 * server begin an exchange. Each exchange meets one damage, or none.
 */
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export type Damage =
  | { kind: 'none' }
  /** The connection ends before the request is passed on. */
  | { kind: 'dropped' }
  /** The request is passed on late, while the client still waits. */
  | { kind: 'delayed'; ms: number }
  /** The request is passed on when the client has given up; the answer reaches no client. */
  | { kind: 'held'; ms: number }
  /** The request ran; the connection ends before a byte of its answer. */
  | { kind: 'answer_lost' }
  /** The request ran; the connection ends within its answer, after so many bytes. */
  | { kind: 'answer_cut'; bytes: number }
  /** The request ran; its answer comes when the client has given up. */
  | { kind: 'answer_late'; ms: number }

export interface FaultProxy {
  port: number
  /** Refuses connections and ends those that are open, until `back`. */
  away: () => Promise<void>
  back: () => Promise<void>
  close: () => Promise<void>
}

export interface ProxyOptions {
  /** Asked at each connection where it may move. */
  targetPort: number | (() => number)
  /** What happens to the exchange that begins with these bytes. */
  damage: (head: Buffer) => Damage
  /** Called with all that the server says, before it is damaged. */
  onAnswer?: ((piece: Buffer) => void) | undefined
}

/** A held request is given this long to be answered, once it was passed on and its client is gone. */
const LINGER_MS = 3_000

export async function startProxy({ targetPort, damage, onAnswer }: ProxyOptions): Promise<FaultProxy> {
  const sockets = new Set<Socket>()
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on('close', () => sockets.delete(socket)).on('error', () => {})
  }
  const server = createServer((client) => {
    client.setNoDelay(true)
    const port = typeof targetPort === 'number' ? targetPort : targetPort()
    const upstream = keep(connect(port, '127.0.0.1').setNoDelay(true))
    if (onAnswer) upstream.on('data', onAnswer)
    link(keep(client), upstream, damage)
  })
  const listen = (port: number): Promise<number> =>
    new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, '127.0.0.1', () => {
        server.off('error', reject)
        const address = server.address()
        resolve(typeof address === 'object' && address ? address.port : port)
      })
    })
  const away = async (): Promise<void> => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  const port = await listen(0)
  return {
    port,
    away,
    back: async () => {
      if (!server.listening) await listen(port)
    },
    close: away,
  }
}

/** Passes bytes on in both directions, in order, each exchange with the damage that was chosen for it. */
function link(client: Socket, upstream: Socket, choose: (head: Buffer) => Damage): void {
  let damage: Damage = { kind: 'none' }
  let answered = true
  let passed = 0
  let held = false
  // Bytes queue behind what is held back.
  let requests: Promise<unknown> = Promise.resolve()
  let answers: Promise<unknown> = Promise.resolve()
  const end = (): void => {
    client.destroy()
    upstream.destroy()
  }

  client.on('data', (chunk) => {
    if (answered) {
      answered = false
      passed = 0
      damage = choose(chunk)
      if (damage.kind === 'dropped') return end()
      if (damage.kind === 'delayed' || damage.kind === 'held') {
        held = damage.kind === 'held'
        requests = requests.then(() => sleep('ms' in damage ? damage.ms : 0))
      }
    }
    requests = requests.then(() => upstream.writable && upstream.write(chunk))
  })
  upstream.on('data', (chunk) => {
    answered = true
    if (damage.kind === 'answer_lost') return end()
    if (damage.kind === 'answer_cut') {
      const rest = Math.max(0, damage.bytes - passed)
      passed += chunk.length
      if (client.writable) client.write(chunk.subarray(0, rest), () => end())
      return
    }
    if (damage.kind === 'answer_late' && passed === 0) {
      const { ms } = damage
      answers = answers.then(() => sleep(ms))
    }
    passed += chunk.length
    answers = answers.then(() => client.writable && client.write(chunk))
  })
  client.on('close', () => {
    if (!held) return void upstream.destroy()
    // Its client is gone and the request still goes its way: that is what this damage is about.
    void requests.then(() => sleep(LINGER_MS, undefined, { ref: false })).then(() => upstream.destroy())
  })
  upstream.on('close', () => void answers.then(() => client.destroy()))
}
