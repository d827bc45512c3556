/** A webhook server that keeps what it was sent, and answers as a test wants. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

export interface ReceivedAlert {
  headers: IncomingHttpHeaders
  body: string
  /** Read from a body of JSON. */
  data: {
    kind: string
    severity: string
    title: string
    text: string
    more: number
    alerts: { id: string; state: string; subject: string | null; note: string | null; command: string }[]
  }
}

export async function startAlertReceiver() {
  const received: ReceivedAlert[] = []
  const receiver = {
    received,
    url: '',
    /** Called with each request that was read. */
    heard: (_alert: ReceivedAlert): unknown => undefined,
    answer: (response: ServerResponse): void => void response.writeHead(204).end(),
  }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      const data = (JSON.parse(body) as Pick<ReceivedAlert, 'data'>).data
      const alert = { headers: request.headers, body, data }
      received.push(alert)
      receiver.heard(alert)
      receiver.answer(response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  return receiver
}
