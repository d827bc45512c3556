import type { OutboxRow } from '../storage/outbox.ts'
import { keysOfHandOver, lineById, storeOrderById } from '../storage/store-orders.ts'
import { load } from './advance.ts'
import type { Fulfilment } from './fulfil.ts'
import { orderStanding } from './order-view.ts'
import { openKey } from './ordering.ts'

/** What an effect was owed with. Of a failure: the units that will not come, and the row of the table that ended them. */
interface Payload {
  purchaseId?: string
  state?: string
  units?: number
  row?: string
}

/** What to tell a customer-facing person, per failure that the supplier's codes or our own rules give. */
const ADVICE: Record<string, string> = {
  out_of_stock: 'Refund this part of the order, or wait: nothing was bought.',
  cancelled: 'Nothing was bought; refund the customer if that is not done yet.',
  deadline: 'It could not be bought in time and nothing was charged; refund the customer.',
  closed: 'Nothing more of it will come: refund the customer if that is not done yet.',
  short: 'The units that are missing will not come: refund them.',
  failed: 'The supplier could not deliver; refund the customer or retry the purchase in Quayside.',
}

/** What a callback says. Licence keys are opened for it and exist nowhere else in the clear. */
export interface Message {
  /** Without licence keys: this is kept, so that each repeat of a callback says the same. */
  said: Record<string, unknown>
  keys: string[]
}

/** The data that leaves. */
export const messageData = (row: OutboxRow, { said, keys }: Message): Record<string, unknown> =>
  row.type === 'line.fulfilled' ? { ...said, keys } : said

/** What a callback says: as it was said when a byte of it first left, or as things stand now. */
export async function renderMessage(fulfilment: Fulfilment, row: OutboxRow): Promise<Message> {
  const keys = row.type === 'line.fulfilled' ? await fulfilment.db.query(keysOfHandOver(row.id)) : []
  const fresh = keys.filter((key) => key.handedOverAt === null).length
  return {
    said: row.said === null ? await sayNow(fulfilment, row, fresh) : (JSON.parse(row.said) as Message['said']),
    keys: keys.map((key) => openKey(fulfilment, key)),
  }
}

/** @param fresh licence keys that the store gets by this callback */
async function sayNow(fulfilment: Fulfilment, row: OutboxRow, fresh: number): Promise<Message['said']> {
  const payload = JSON.parse(row.payload) as Payload
  if (row.type === 'order.closed') {
    const [order] = await fulfilment.db.query(storeOrderById(row.orderId ?? ''))
    return { store: row.store, reference: order?.reference, state: payload.state }
  }
  const loaded = await load(fulfilment, payload.purchaseId ?? '')
  if (!loaded) throw new Error('the purchase of the callback is gone')
  const { purchase, name } = loaded
  const [line] = await fulfilment.db.query(lineById(purchase.lineId))
  const head = {
    store: name.store,
    reference: name.reference,
    line: name.line,
    sku: line?.sku,
    quantity: line?.quantity,
  }
  if (row.type === 'line.fulfilled') {
    const standing = await orderStanding(fulfilment, purchase.orderId)
    const handedOver = standing?.lines.find((one) => one.line.line === name.line)?.delivered ?? 0
    const delivered = handedOver + fresh
    return { ...head, delivered, complete: delivered === line?.quantity }
  }
  const { code, message } = decided(payload.row, purchase) ?? failure(purchase, fulfilment.now())
  const advice = (payload.row === 'closed' ? ADVICE.closed : ADVICE[code]) ?? ADVICE.failed
  return {
    ...head,
    quantity: payload.units ?? purchase.quantity,
    state: purchase.state === 'cancelled' ? 'cancelled' : 'failed',
    code,
    message,
    advice,
  }
}

/** The end that a person gave it, in words for the store; undefined when no person did. */
function decided(row: string | undefined, { cancelRequestedAt }: { cancelRequestedAt: number | null }) {
  if (row === 'handed_over') return { code: 'short', message: 'fewer keys came than were ordered' }
  if (row !== 'closed' || cancelRequestedAt !== null) return undefined
  return { code: 'closed', message: 'given up by the people who run Quayside' }
}

function failure(
  purchase: {
    state: string
    cancelRequestedAt: number | null
    deadlineAt: number
    failureCode: string | null
    failureMessage: string | null
  },
  now: number,
): { code: string; message: string } {
  if (purchase.state === 'cancelled' && purchase.cancelRequestedAt !== null) {
    return { code: 'cancelled', message: 'cancelled at the request of the store' }
  }
  if (purchase.state === 'cancelled' && now >= purchase.deadlineAt) {
    return { code: 'deadline', message: 'could not be bought before its deadline' }
  }
  return {
    code: purchase.failureCode ?? purchase.state,
    message: purchase.failureMessage ?? 'the supplier could not deliver this line',
  }
}
