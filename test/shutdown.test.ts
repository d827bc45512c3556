import { Agent } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { deliveries, purchases, storeOrders } from '../src/storage/schema.ts'
import { build } from '../src/storage/statement.ts'
import { readAnswer, requestBytes } from './support/raw-http.ts'
import { delivery, type Installation, openInstallation, until, WEBHOOK_PATH } from './support/service-process.ts'

/** The drain takes eight seconds at most, so that all ends in the ten that Docker gives; a slow disk may add some. The supplier takes a minute. */
const ENDS_MS = 20_000

/** A delivery whose head the server has read, and whose last byte is missing. */
async function begin(port: number, id: string) {
  const { headers, body } = delivery(id)
  const bytes = requestBytes({ target: WEBHOOK_PATH, headers: [...headers, ['expect', '100-continue']], body })
  const socket = connect({ port, host: '127.0.0.1' })
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
  })
  socket.on('error', () => undefined)
  const closed = new Promise((resolve) => socket.once('close', resolve))
  const status = closed.then(() => readAnswer(text.replace(CONTINUE, ''))?.status)
  socket.write(bytes.subarray(0, -1))
  await until('the server to go on', () => text === CONTINUE)
  return { id, finish: () => socket.write(bytes.subarray(-1)), status }
}
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'

/** Sends orders and deliveries from 48 senders, half of them on connections that they keep, until nothing listens. */
function burst(service: Installation, item: string) {
  const answers = new Map<string, number | 'closed'>()
  let running = true
  const sender = async (place: number): Promise<void> => {
    const agent = place % 2 === 0 ? new Agent({ keepAlive: true, maxSockets: 1 }) : false
    // Orders are a minority, as in life: the supplier answers slowly, and they would only queue.
    const send = place % 12 < 2 ? service.order : service.deliver
    for (let n = 0; running; n += 1) {
      const id = `b-${place}-${n}`
      const status = await (send === service.order ? service.order(id, item, agent) : service.deliver(id, agent))
      if (status === 'refused') break
      answers.set(id, status)
    }
    if (agent) agent.destroy()
  }
  const over = Promise.all(Array.from({ length: 48 }, (_, place) => sender(place)))
  return {
    answers,
    over,
    count: (status: number) => [...answers.values()].filter((each) => each === status).length,
    stop: () => {
      running = false
    },
  }
}

describe('a SIGTERM', () => {
  test.concurrent('in the middle of a burst loses nothing and answers nothing false', async ({ onTestFinished }) => {
    const service = await openInstallation(onTestFinished)
    await service.start()
    const item = (await service.sku()) ?? ''
    const charges = () => service.sandbox.world.report().charges.length
    // Orders are under way at the supplier when the signal comes, and for a while after it.
    service.sandbox.faults.add({ fault: 'slow', delayMs: 4_000, times: 10_000 })
    const load = burst(service, item)
    onTestFinished(load.stop)
    await until('the burst', () => load.count(200) > 300 && load.count(202) > 20 && charges() > 0)
    const waited = charges()
    // Those that were charged right now keep the service busy for the seconds in which it is watched.
    await until('more charges', () => charges() > waited)
    const half = await Promise.all(Array.from({ length: 5 }, (_, n) => begin(service.port, `half-${n}`)))
    const [chargesBefore, answeredBefore] = [charges(), load.answers.size]

    service.signal()
    const ended = service.ended()
    await until('/readyz to say so', async () => (await service.probe('/readyz'))?.status === 503)
    expect((await service.probe('/readyz'))?.text).toContain('draining')
    expect((await service.probe('/livez'))?.status).toBe(200)
    for (const { finish } of half) finish()

    const { code, ms } = await ended
    expect({ code, inTime: ms < ENDS_MS }).toEqual({ code: 0, inTime: true })
    await load.over
    expect([...load.answers].filter(([, answer]) => ![200, 202, 503, 'closed'].includes(answer))).toEqual([])
    expect(load.count(503)).toBeGreaterThan(0)
    expect(load.answers.size).toBeGreaterThan(answeredBefore)
    for (const { status, id } of half) expect(await status, id).toBe(200)

    const rows = await service.withDatabase(async (db) => ({
      deliveries: new Set((await db.query(build.select().from(deliveries))).map((row) => row.deliveryId)),
      orders: new Set((await db.query(build.select().from(storeOrders))).map((row) => row.reference)),
      purchases: await db.query(build.select().from(purchases)),
    }))
    const acknowledged = (status: number) => [...load.answers].filter(([, each]) => each === status).map(([id]) => id)
    expect(acknowledged(200).filter((id) => !rows.deliveries.has(id))).toEqual([])
    expect(acknowledged(202).filter((id) => !rows.orders.has(id))).toEqual([])
    expect(acknowledged(503).filter((id) => rows.deliveries.has(id) || rows.orders.has(id))).toEqual([])
    expect(half.filter(({ id }) => !rows.deliveries.has(id))).toEqual([])
    // What was under way has its answer; what waited still waits: at most one for each of the four was claimed before.
    expect(rows.purchases.filter(({ state }) => state === 'sending' || state === 'unknown')).toEqual([])
    expect(rows.purchases.filter(({ sends }) => sends > 0).length).toBe(charges())
    expect(charges() - chargesBefore).toBeLessThanOrEqual(4)
    expect(rows.purchases.some(({ state }) => state === 'planned')).toBe(true)
  })

  test.concurrent('waits for the supplier up to the deadline; the next start looks the order up', async (context) => {
    const service = await openInstallation(context.onTestFinished)
    await service.start()
    await leaveUnanswered(service, '2001')
    service.signal()
    const { code, ms } = await service.ended()
    expect({ code, inTime: ms < ENDS_MS }).toEqual({ code: 0, inTime: true })
    await expectResumed(service, '2001')
  })

  test.concurrent('that comes again ends the process at once; the next start looks the order up', async (context) => {
    const service = await openInstallation(context.onTestFinished)
    await service.start()
    await leaveUnanswered(service, '3001')
    service.signal()
    await until('/readyz to say so', async () => (await service.probe('/readyz'))?.status === 503)
    service.signal()
    const { code, ms } = await service.ended()
    expect({ code, atOnce: ms < 5_000 }).toEqual({ code: 1, atOnce: true })
    await expectResumed(service, '3001')
  })
})

/** An order that the supplier has charged and does not answer. */
async function leaveUnanswered(service: Installation, reference: string): Promise<void> {
  service.sandbox.faults.add({ fault: 'slow', delayMs: 60_000 })
  expect(await service.order(reference, (await service.sku()) ?? '', false)).toBe(202)
  await until('the charge', () => service.sandbox.world.report().charges.length > 0)
}

/** The row was left as it is; the next process finds the order, and the store gets its key, once. */
async function expectResumed(service: Installation, reference: string): Promise<void> {
  expect(await service.purchase()).toMatchObject({ state: 'sending', sends: 1, supplierOrderId: null })
  await service.start()
  await until('the order to be closed', () =>
    service.shop.received().some(({ type, data }) => type === 'order.closed' && data.reference === reference),
  )
  const { charges, refunds } = service.sandbox.world.report()
  expect({ charges: charges.length, refunds: refunds.length }).toEqual({ charges: 1, refunds: 0 })
  expect(service.shop.keys().get(`${reference}/1`)).toHaveLength(1)
}
