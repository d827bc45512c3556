/**
 * Quayside as a real process buys from the mock of Kinguin with the shipped dialect, while answers are lost and the process is killed.
 *
 * The judge is the mock's ledger. The dialect says that no request keeps a repeat from buying twice, so a request that is lost before
 * it ran waits for a person: the test decides as a person would, who looks into the supplier's dashboard.
 */
import { describe, expect, type TestContext, test } from 'vitest'
import { Refusal as Refused } from '../campaigns/torture/duty.ts'
import { isNeeded } from '../support/needs.ts'
import { lineOf, orderOf } from '../support/references.ts'
import { until } from '../support/service-process.ts'
import type { Kinguin, OrderFault, ReadFault } from './kinguin.ts'
import type { Order } from './kinguin-ledger.ts'
import { type KinguinService, openKinguinService } from './kinguin-service.ts'

interface Purchase {
  id: string
  state: string
  quantity: number
  amount: string | null
  holdReason: string | null
  note: string | null
  externalOrderId: string
  supplierOrderId: string | null
}

/** After this, a request that had left has run, as the shortened dialect says. */
const CERTAIN_MS = 7_000

/** What Kinguin does with an order by hand. */
type Ending = 'canceled' | 'refunded' | 'refunded later'

interface Campaign {
  orders: number
  products: number
  /** One for each POST, in their order; those after the last are answered. */
  faults: OrderFault[]
  reads?: (number: number) => ReadFault | undefined
  /** How many orders are placed before each kill -9. */
  kills?: number[]
  /** By the number of the order, from 0. */
  endings?: Record<number, Ending>
}

/** Places orders, decides what waits for a person, and ends once every order is closed. */
async function run({ onTestFinished }: TestContext, campaign: Campaign) {
  const { orders, products, faults, reads, kills = [], endings = {} } = campaign
  const isHeldBack = ({ orderExternalId = '' }: Order) => {
    const ending = endings[Number(orderOf(orderExternalId)) - FIRST]
    return ending === 'canceled' || ending === 'refunded'
  }
  const service = await openKinguinService(onTestFinished, { products, isHeldBack })
  const { kinguin, shop, duty } = service
  await service.start()
  const listed = await catalogue(service)
  kinguin.orderFaults.push(...faults)
  if (reads) kinguin.failReads(reads)
  const wanted = Array.from({ length: orders }, (_, number) => ({
    reference: String(FIRST + number),
    sku: listed[(number * 7) % listed.length]?.sku ?? '',
    quantity: 1 + (number % 3),
    ending: endings[number],
  }))
  const decisions: Record<string, number> = {}
  for (const [number, { reference, sku, quantity }] of wanted.entries()) {
    if (kills.includes(number)) {
      await service.kill()
      await service.start()
    }
    expect(await service.order(reference, sku, quantity)).toBe(202)
  }
  const reviewedAt = new Map<string, number>()
  // A proof that an order is absent takes long on a busy machine, so there is more than one bounded wait.
  for (let [closed, waits] = [-1, 0]; closed < orders; ) {
    const before = closed
    const look = async () => {
      endByHand(kinguin, wanted)
      await decide(service, reviewedAt, decisions)
      closed = closedOrders(service).size
      return closed > before
    }
    await until(`more than ${before} orders to be closed`, look).catch(async (error: Error) => {
      waits += 1
      if (waits < WAITS_MAX) return
      const open = (await duty.all<Purchase>('/purchases')).filter(({ state }) => !OVER.includes(state))
      throw new Error(`${error.message}: ${open.map((one) => `${one.externalOrderId} ${one.state} ${one.note ?? ''}`)}`)
    })
  }
  return { service, kinguin, shop, duty, wanted, decisions }
}

type Ended = Awaited<ReturnType<typeof run>>

const FIRST = 1_001
/** Waits without an order that is closed, of 45 seconds each. */
const WAITS_MAX = 4
const OVER = ['fulfilled', 'failed', 'rejected', 'cancelled']

function endByHand(kinguin: Kinguin, wanted: { reference: string; ending: Ending | undefined }[]): void {
  for (const { reference, ending } of wanted) {
    if (ending !== 'canceled' && ending !== 'refunded') continue
    const own = kinguin.ledger.orders.find(({ orderExternalId = '' }) => orderOf(orderExternalId) === reference)
    if (own) kinguin.end(own, ending)
  }
}

const closedOrders = ({ shop }: KinguinService): Set<string> =>
  new Set(
    shop
      .received()
      .filter(({ type }) => type === 'order.closed')
      .map(({ data }) => String(data.reference)),
  )

/** The listings once all products with texts are there that are no pre-orders. */
async function catalogue({ kinguin, shop }: KinguinService) {
  const sold = kinguin.ledger.products.filter(({ isPreorder }) => !isPreorder)
  await until('the catalogue', () => shop.listings().size === sold.length)
  return [...shop.listings().values()]
}

/** A person looks at what is in review, asks the dashboard, and decides. */
async function decide(
  { kinguin, duty }: KinguinService,
  since: Map<string, number>,
  decisions: Record<string, number>,
) {
  const reviews = await duty.all<Purchase>('/purchases?state=review').catch(() => [])
  for (const { id, externalOrderId } of reviews) {
    const at = since.get(id) ?? Date.now()
    since.set(id, at)
    const own = kinguin.ledger.orders.filter((order) => order.orderExternalId === externalOrderId)
    const [order] = own.filter(({ status }) => status === 'processing' || status === 'completed')
    if (!order && Date.now() - at < CERTAIN_MS) continue
    const decision = order ? { decision: 'adopt', orderId: order.orderId } : { decision: 'buy_again' }
    const { evidenceVersion } = await duty.get<{ evidenceVersion: string }>(`/purchases/${id}/evidence`)
    const asked = { ...decision, reason: 'the dashboard of the supplier was looked at' }
    const done = await duty.post(`/purchases/${id}/decision`, asked, evidenceVersion).then(
      () => true,
      (error) => {
        if (error instanceof Refused) return false
        throw error
      },
    )
    if (done) decisions[decision.decision] = (decisions[decision.decision] ?? 0) + 1
  }
  const { freeze } = await duty.get<{ freeze: { causes: { id: string }[] } | null }>('/status')
  if (freeze) await duty.post('/unfreeze', { causes: freeze.causes.map(({ id }) => id) }).catch(() => undefined)
}

/** What the ledger and the store say that is not as it was meant; empty when they tie. */
async function faultsOf({ kinguin, shop, duty, wanted }: Ended): Promise<string[]> {
  const { ledger, heard } = kinguin
  const found: string[] = []
  const isBack = new Set(ledger.refunds.map(({ orderId }) => orderId))
  const byLine = Map.groupBy(ledger.charges, ({ reference }) => lineOf(reference))
  const keys = shop.keys()
  for (const { reference, quantity, ending } of wanted) {
    const line = `${reference}/1`
    const charged = byLine.get(line) ?? []
    const standing = charged.filter(({ orderId }) => !isBack.has(orderId))
    if (standing.length !== (ending === undefined ? 1 : 0)) found.push(`${line}: ${standing.length} charges stand`)
    const isGiven = ending === undefined || ending === 'refunded later'
    const got = (keys.get(line) ?? []).toSorted()
    if (got.length !== (isGiven ? quantity : 0)) found.push(`${line} got ${got.length} keys of ${quantity}`)
    const bought = charged.flatMap(({ orderId }) => ledger.order(orderId)?.keys ?? [])
    const serials = isGiven ? bought.map(({ serial }) => serial).toSorted() : []
    if (JSON.stringify(got) !== JSON.stringify(serials)) found.push(`${line} did not get the keys that were charged`)
  }
  if (shop.duplicates().length > 0) found.push(`${shop.duplicates().length} keys came twice`)
  // A request that was refused for the rate has not run.
  const ran = heard.filter(({ method, status }) => method === 'POST' && status !== 429)
  const posts = Map.groupBy(ran, ({ body }) => String(JSON.parse(body).orderExternalId))
  for (const [reference, sent] of posts) if (sent.length > 1) found.push(`${reference} was sent ${sent.length} times`)
  const purchases = await duty.all<Purchase>('/purchases')
  const said = purchases.reduce((sum, { amount }) => sum + Math.round(Number(amount ?? 0) * 100), 0)
  const charged = ledger.charges.reduce((sum, { amount }) => sum + amount, 0)
  if (said !== charged) found.push(`the supplier charged ${charged}, and Quayside says ${said}`)
  const back = ledger.refunds.reduce((sum, { amount }) => sum + amount, 0)
  if (ledger.books.balance !== BALANCE - charged + back) found.push('the books of the mock do not close')
  return found
}

/** Of the mock, EUR cents. */
const BALANCE = 10_000_000

/** Six kinds of bad answers, among good ones. */
const BAD: OrderFault[] = [
  'lost after',
  { error: 'Error', charged: true },
  'cut',
  'limited',
  { error: 'OrderFailed', charged: false },
  'lost before',
]
const mixed = (count: number): OrderFault[] =>
  Array.from({ length: count }, (_, number) =>
    number % 2 === 0 ? 'nothing' : (BAD[(number >> 1) % BAD.length] ?? 'cut'),
  )

const ENDED_BY_HAND = { canceled: 'failed', refunded: 'failed', 'refunded later': 'fulfilled' } as const

/** The states of the lines, by what Kinguin did with their orders; and what is on record of money that came back later. */
async function statesAfter({ duty, wanted }: Ended) {
  const purchases = await duty.all<Purchase>('/purchases')
  const states = wanted.flatMap(({ reference, ending }) => {
    const own = purchases.find(({ externalOrderId }) => orderOf(externalOrderId) === reference)
    return ending === undefined ? [] : [{ ending, state: own?.state }]
  })
  return states.filter(({ ending, state }) => state !== ENDED_BY_HAND[ending])
}

/** Kinguin pays back an order whose keys were delivered, and says so by webhook alone. */
async function payBackLater({ kinguin, duty, wanted }: Ended): Promise<void> {
  for (const { reference } of wanted.filter(({ ending }) => ending === 'refunded later')) {
    const own = kinguin.ledger.orders.find(({ orderExternalId = '' }) => orderOf(orderExternalId) === reference)
    if (!own) throw new Error(`no order of ${reference}`)
    kinguin.end(own, 'refunded')
    await until('it to be on record', async () => {
      const { items } = await duty.get<{ items: { supplierOrderId: string }[] }>('/discrepancies')
      return items.some(({ supplierOrderId }) => supplierOrderId === own.orderId)
    })
  }
}

describe('Quayside and the documented Kinguin', () => {
  test('lost answers, a cancellation and refunds: each order has its keys or its money', async (context) => {
    const faults: OrderFault[] = ['lost after', 'cut']
    const endings = { 2: 'canceled', 3: 'refunded', 4: 'refunded later' } as const
    const ended = await run(context, { orders: 5, products: 20, faults, endings })
    await payBackLater(ended)
    expect(await faultsOf(ended)).toEqual([])
    expect(await statesAfter(ended)).toEqual([])
    const { ledger, hooks } = ended.kinguin
    expect({ charges: ledger.charges.length, decisions: ended.decisions, givenUp: hooks.counts.givenUp }).toEqual({
      charges: 5,
      decisions: {},
      givenUp: 0,
    })
    expect(new Set(hooks.answers.map(({ status, body }) => `${status} ${body}`))).toEqual(new Set(['204 ']))
  })
})

const runs = isNeeded('campaigns')
const needs = runs ? '' : ' (skipped: a campaign, which .ci/run runs)'

describe.runIf(runs)(`Kinguin's pictures${needs}`, () => {
  test('reach the page of the customer as pictures, and the store as its address', async ({ onTestFinished }) => {
    const service = await openKinguinService(onTestFinished, { products: 5, facts: { keyType: 'ignored' } })
    const { kinguin, shop } = service
    // There are texts, so that it is sold; "the random type of the key" is a picture.
    for (const { offers } of kinguin.ledger.products)
      for (const one of offers) Object.assign(one, { texts: 3, pictures: 30 })
    await service.start()
    const [listing] = await catalogue(service)
    expect(await service.order('1001', listing?.sku ?? '', 3)).toBe(202)
    await until('the order to be closed', () => closedOrders(service).size === 1)
    const serials = kinguin.ledger.orders[0]?.keys.map(({ serial }) => serial) ?? []
    expect(kinguin.ledger.charges).toHaveLength(1)
    const line = shop.received().find(({ type }) => type === 'line.fulfilled')
    const said = JSON.stringify(line?.data)
    expect(serials.filter((serial) => said.includes(serial))).toEqual([])
    const [address = ''] = /http:[^"]*\/k\/[^"]*/.exec(said) ?? []
    const page = await fetch(address, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', connection: 'close' },
      body: 'line=1',
    })
    const shown = [...(await page.text()).matchAll(/<img src="data:image\/(?:png|gif|jpeg);base64,([^"]*)"/g)]
    expect(shown.map(([, picture]) => picture).toSorted()).toEqual(serials.toSorted())
    expect(new Set(serials).size).toBe(3)
  })
})

describe.runIf(runs)(`a campaign against the documented Kinguin${needs}`, () => {
  test('500 products, 60 orders, lost answers and three kill -9: the ledger ties', async (context) => {
    const endings = { 8: 'canceled', 21: 'refunded', 33: 'refunded later', 50: 'canceled' } as const
    const ended = await run(context, {
      orders: 60,
      products: 500,
      faults: mixed(60),
      reads: (number) => (number % 13 === 0 ? 'cut' : number % 17 === 0 ? { error: 'Error' } : undefined),
      kills: [10, 25, 45],
      endings,
    })
    ended.kinguin.failReads(() => undefined)
    await payBackLater(ended)
    expect(await faultsOf(ended)).toEqual([])
    expect(await statesAfter(ended)).toEqual([])
    // What never ran is not repeated: a person looked into the dashboard, and bought it again.
    expect(Object.keys(ended.decisions)).toEqual(['buy_again'])
    expect(ended.decisions.buy_again).toBeGreaterThan(0)
  }, 300_000)
})
