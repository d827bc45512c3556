/** What the torture's network does to an exchange is what its name says, or the run would prove something else. */
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Damage, startProxy } from './proxy.ts'

/** A server that answers each request, of one letter, with the same letter five times, behind a proxy. */
async function openWay(...damages: Damage[]) {
  let heard = ''
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      heard += String(chunk)
      socket.write(String(chunk).repeat(5))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const targetPort = typeof address === 'object' && address ? address.port : 0
  const proxy = await startProxy({ targetPort, damage: () => damages.shift() ?? { kind: 'none' } })
  onTestFinished(async () => {
    await proxy.close()
    server.close()
  })
  /** Sends one letter after the other on one connection. @returns what came back until it ended */
  const say = async (letters: string, giveUpAfterMs?: number): Promise<string> => {
    const socket = connect(proxy.port, '127.0.0.1')
    let answer = ''
    const rest = [...letters]
    const next = (): void => {
      const letter = rest.shift()
      if (letter === undefined) socket.destroy()
      else socket.write(letter)
    }
    socket.on('error', () => {})
    socket.on('connect', () => {
      next()
      if (giveUpAfterMs !== undefined) setTimeout(() => socket.destroy(), giveUpAfterMs)
    })
    socket.on('data', (chunk) => {
      answer += String(chunk)
      if (answer.length % 5 === 0) next()
    })
    await new Promise((resolve) => socket.on('close', resolve))
    return answer
  }
  return { say, proxy, heard: () => heard }
}

const until = async (met: () => boolean): Promise<void> => {
  while (!met()) await new Promise((resolve) => setImmediate(resolve))
}

describe('the proxy of the torture', () => {
  test('passes on what it does not damage, exchange after exchange', async () => {
    const { say } = await openWay()
    expect(await say('abc')).toBe('aaaaabbbbbccccc')
  })

  test('drops a request before it was passed on', async () => {
    const { say, heard } = await openWay({ kind: 'none' }, { kind: 'dropped' })
    expect(await say('abc')).toBe('aaaaa')
    expect(heard()).toBe('a')
  })

  test('holds a request until its client is gone, and passes it on then', async () => {
    const { say, heard } = await openWay({ kind: 'held', ms: 2_000 })
    expect(await say('a', 40)).toBe('')
    expect(heard()).toBe('')
    await until(() => heard() === 'a')
  })

  test('loses an answer to a request that ran', async () => {
    const { say, heard } = await openWay({ kind: 'answer_lost' })
    expect(await say('a')).toBe('')
    expect(heard()).toBe('a')
  })

  test('cuts an answer off', async () => {
    const { say, heard } = await openWay({ kind: 'none' }, { kind: 'answer_cut', bytes: 2 })
    expect(await say('ab')).toBe('aaaaabb')
    expect(heard()).toBe('ab')
  })

  test('gives an answer when its client is gone', async () => {
    const { say, heard } = await openWay({ kind: 'answer_late', ms: 120 })
    expect(await say('a', 60)).toBe('')
    expect(heard()).toBe('a')
  })

  test('refuses every client while it is away, and none once it is back', async () => {
    const { say, proxy, heard } = await openWay()
    await proxy.away()
    expect(await say('a')).toBe('')
    expect(heard()).toBe('')
    await proxy.back()
    expect(await say('b')).toBe('bbbbb')
  })
})
