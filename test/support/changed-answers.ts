/** A server before the sandbox that changes what its orders state: for suppliers that write them in another way. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** An order as the sandbox writes it, in the shipped dialect. */
export interface StatedOrder {
  external_order_id: string
  status: string
  amount?: string | null
  quantity: number
  keys: string[]
}

/** @param change changes the orders of every answer in place */
export async function changedAnswers(baseUrl: string, change: (order: StatedOrder) => void): Promise<string> {
  const { origin, pathname } = new URL(baseUrl)
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const { host: _, connection: __, 'transfer-encoding': ___, 'content-length': ____, ...headers } = incoming.headers
    try {
      const answer = await fetch(`${origin}${incoming.url}`, {
        method: incoming.method ?? 'GET',
        headers: headers as Record<string, string>,
        ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
      })
      const text = await answer.text()
      const passed = [...answer.headers].filter(
        ([name]) => !['connection', 'transfer-encoding', 'content-length', 'content-encoding'].includes(name),
      )
      response.writeHead(answer.status, Object.fromEntries(passed))
      response.end(incoming.url?.startsWith(`${pathname}/orders`) && answer.ok ? changed(text, change) : text)
    } catch {
      // The sandbox hung up.
      incoming.socket.destroy()
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`
}

function changed(text: string, change: (order: StatedOrder) => void): string {
  const answer = JSON.parse(text) as { data: StatedOrder & { items?: StatedOrder[]; list?: StatedOrder[] } }
  for (const order of answer.data.items ?? answer.data.list ?? [answer.data]) change(order)
  return JSON.stringify(answer)
}
