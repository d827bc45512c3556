/** A server before the sandbox, for suppliers that write or take something in another way. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

export interface Passing {
  incoming: IncomingMessage
  body: Buffer
  response: ServerResponse
  /** Sends the request as it came to the sandbox. */
  passOn: () => Promise<Response>
}

/** @param answer answers one request; where it throws, the connection is cut @returns the address in place of `baseUrl` */
export async function standBefore(baseUrl: string, answer: (passing: Passing) => Promise<void>): Promise<string> {
  const { origin, pathname } = new URL(baseUrl)
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const { host: _, connection: __, 'transfer-encoding': ___, 'content-length': ____, ...headers } = incoming.headers
    const passOn = () =>
      fetch(`${origin}${incoming.url}`, {
        method: incoming.method ?? 'GET',
        headers: headers as Record<string, string>,
        ...(body.length > 0 && { body }),
      })
    // The sandbox may hang up.
    await answer({ incoming, body, response, passOn }).catch(() => incoming.socket.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`
}
