import { createHmac } from 'node:crypto'
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Shop, startShop } from './recording-store.ts'

const secretBytes = Buffer.from('0123456789abcdef0123456789abcdef')
const secret = `whsec_${secretBytes.toString('base64')}`
const at = 1_767_225_600

let folder: string
let shop: Shop
let printed: string[]
const open = () =>
  startShop({
    secret,
    file: join(folder, 'shop.jsonl'),
    now: () => at * 1000,
    onCallback: ({ id }) => printed.push(id),
  })
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'shop-'))
  printed = []
  shop = await open()
})
afterEach(async () => {
  await shop.close()
  rmSync(folder, { recursive: true })
})

async function send(id: string, line: string, keys: string[], { timestamp = at, tamper = '' } = {}): Promise<number> {
  const data = { store: 'demo', reference: 'order-1', line, sku: 'S', quantity: 1, keys, delivered: 1, complete: true }
  const body = JSON.stringify({ type: 'line.fulfilled', timestamp: new Date(timestamp * 1000).toISOString(), data })
  const mac = createHmac('sha256', secretBytes).update(`${id}.${timestamp}.${body}`).digest('base64')
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,other v1,${mac}`,
  }
  return (await fetch(shop.url, { method: 'POST', headers, body: body + tamper })).status
}

describe('the demo store', () => {
  it('records each authentic callback once and keeps its keys by line', async () => {
    expect(await send('m1', '1', ['AAA'])).toBe(204)
    expect(await send('m1', '1', ['AAA'])).toBe(204)
    expect(await send('m2', '1', ['BBB'])).toBe(204)
    expect(printed).toEqual(['m1', 'm2'])
    expect(shop.keys()).toEqual(new Map([['order-1/1', ['AAA', 'BBB']]]))
    expect([shop.repeated(), shop.duplicates()]).toEqual([1, []])
  })

  it('refuses what is forged, changed or stale', async () => {
    expect(await send('m1', '1', ['AAA'], { tamper: ' ' })).toBe(401)
    expect(await send('m1', '1', ['AAA'], { timestamp: at - 301 })).toBe(401)
    expect((await fetch(shop.url, { method: 'POST', body: '{}' })).status).toBe(401)
    expect([shop.refused(), shop.received()]).toEqual([3, []])
  })

  it('reports a key that came twice or to two lines', async () => {
    await send('m1', '1', ['AAA'])
    await send('m2', '1', ['AAA'])
    await send('m3', '2', ['AAA'])
    expect(shop.duplicates()).toEqual([
      { key: 'AAA', first: 'order-1/1', again: 'order-1/1' },
      { key: 'AAA', first: 'order-1/1', again: 'order-1/2' },
    ])
  })

  it('answers as it is set, with or without recording', async () => {
    shop.answerNext(503, 2)
    shop.answerNext(500, 1, 'recorded')
    const statuses = []
    for (let time = 1; time <= 4; time += 1) statuses.push(await send('m1', '1', ['AAA']))
    expect(statuses).toEqual([503, 503, 500, 204])
    expect([shop.received().length, shop.repeated()]).toEqual([1, 1])
  })

  it('knows after a restart what it had recorded, and drops a line that was cut off', async () => {
    await send('m1', '1', ['AAA'])
    await shop.close()
    appendFileSync(join(folder, 'shop.jsonl'), '{"id":"m2","ty')
    shop = await open()
    await send('m1', '1', ['AAA'])
    await send('m2', '1', ['BBB'])
    await shop.close()
    shop = await open()
    expect(shop.received().map(({ id }) => id)).toEqual(['m1', 'm2'])
  })
})
