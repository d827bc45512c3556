/** A client that writes the given bytes: malformed and repeated headers cannot be sent by a proper one. */
import { connect } from 'node:net'
import type { HeaderLine } from './delivery.ts'

export interface RawRequest {
  method?: string
  target?: string
  headers?: HeaderLine[]
  body?: Buffer
  /** Sent after the body in chunks, which the body then is. */
  trailers?: HeaderLine[]
}

export interface Answer {
  status: number
  /** The whole answer as it came, headers included. */
  text: string
  headers: Record<string, string>
  body: string
}

/** The bytes of a request that ends its connection. */
export function requestBytes({ method = 'POST', target = '/', headers = [], body, trailers }: RawRequest): Buffer {
  const lines = [`${method} ${target} HTTP/1.1`, 'host: quayside.test', 'connection: close']
  for (const [name, value] of headers) lines.push(`${name}: ${value}`)
  if (trailers) {
    lines.push('transfer-encoding: chunked')
    const end = trailers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    const size = (body?.length ?? 0).toString(16)
    const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n${size}\r\n`, 'latin1')
    return Buffer.concat([head, body ?? Buffer.alloc(0), Buffer.from(`\r\n0\r\n${end}\r\n`, 'latin1')])
  }
  if (body) lines.push(`content-length: ${body.length}`)
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body ?? Buffer.alloc(0)])
}

/**
 * Writes the bytes and reads until the server has closed the connection.
 *
 * @param pieces written one after the other
 * @param hangUp ends our side right after the bytes: what a sender does that goes away
 * @returns undefined when no answer came
 */
export function exchange(
  port: number,
  pieces: Buffer | Buffer[],
  { hangUp = false } = {},
): Promise<Answer | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    const socket = connect({ port, host: '127.0.0.1' }, () => {
      for (const piece of [pieces].flat()) socket.write(piece)
      if (hangUp) socket.end()
    })
    socket.on('data', (chunk) => chunks.push(chunk))
    // A server that refuses a body may close before all of it is written; what it answered counts.
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(readAnswer(Buffer.concat(chunks).toString('latin1'))))
  })
}

export function readAnswer(text: string): Answer | undefined {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const [statusLine = '', ...lines] = head.split('\r\n')
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1]
  if (status === undefined) return undefined
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  )
  return { status: Number(status), text, headers, body: rest.join('\r\n\r\n') }
}
