/** A server before the sandbox that changes what its orders state: for suppliers that write them in another way. */
import { standBefore } from './before-sandbox.ts'

/** An order as the sandbox writes it, in the shipped dialect. */
export interface StatedOrder {
  external_order_id: string
  status: string
  amount?: string | null
  quantity: number
  keys: string[]
}

/** @param change changes the orders of every answer in place */
export function changedAnswers(baseUrl: string, change: (order: StatedOrder) => void): Promise<string> {
  const { pathname } = new URL(baseUrl)
  return standBefore(baseUrl, async ({ incoming, response, passOn }) => {
    const answer = await passOn()
    const text = await answer.text()
    const passed = [...answer.headers].filter(
      ([name]) => !['connection', 'transfer-encoding', 'content-length', 'content-encoding'].includes(name),
    )
    response.writeHead(answer.status, Object.fromEntries(passed))
    response.end(incoming.url?.startsWith(`${pathname}/orders`) && answer.ok ? changed(text, change) : text)
  })
}

function changed(text: string, change: (order: StatedOrder) => void): string {
  const answer = JSON.parse(text) as { data: StatedOrder & { items?: StatedOrder[]; list?: StatedOrder[] } }
  for (const order of answer.data.items ?? answer.data.list ?? [answer.data]) change(order)
  return JSON.stringify(answer)
}
