/** Something between Quayside and another party that answers in the party's place, when the test says so. */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** An answer in place of the party's own. */
export interface Substitute {
  /** Which request it answers: the next one that matches. */
  method: string
  path: string
  answer: (heard: IncomingMessage) => { status: number; headers?: Record<string, string>; body: string }
  /** The party is asked as well, and what it says is thrown away. */
  reaches?: boolean
}

/** @param target origin that everything else is handed on to */
export async function startHostileProxy(target: string) {
  const substitutes: Substitute[] = []
  let answered = 0

  const handle = (heard: IncomingMessage, response: ServerResponse, body: Buffer): void => {
    const place = substitutes.findIndex(({ method, path }) => method === heard.method && heard.url?.startsWith(path))
    const [substitute] = place < 0 ? [] : substitutes.splice(place, 1)
    const say = () => {
      if (!substitute) return
      answered += 1
      const { status, headers, body: text } = substitute.answer(heard)
      response.writeHead(status, headers).end(text)
    }
    if (substitute && !substitute.reaches) {
      say()
      return
    }
    const options = { method: heard.method, headers: { ...heard.headers, host: new URL(target).host }, agent: false }
    const onward = request(`${target}${heard.url}`, options, (answer) => {
      if (substitute) {
        answer.resume().on('end', say)
        return
      }
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    onward.end(body)
  }

  const server = createServer((heard, response) => {
    const chunks: Buffer[] = []
    heard.on('data', (chunk: Buffer) => chunks.push(chunk))
    heard.on('end', () => handle(heard, response, Buffer.concat(chunks)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Answers the next request that matches, once. */
    substitute: (one: Substitute) => void substitutes.push(one),
    /** How many were answered so, and how many wait. */
    answered: () => answered,
    waiting: () => substitutes.length,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
