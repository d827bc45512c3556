/** What the story of `npm run demo` needs of a store, and the usual one. A store keeps its own record, which is the judge. */
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SetUp } from '../../src/installation.ts'
import type { Sandbox } from '../../src/sandbox/server.ts'
import { startShop } from '../support/recording-store.ts'
import { pagesOf, readPage } from './customer.ts'
import { escaped, linksIn, textOf } from './html.ts'

/** What a store of the story is opened with. */
export interface StoryPlace {
  /** Permanent id of the store. */
  id: string
  folder: string
  storePort: number
  sandbox: Sandbox
  /** Calls the API of the service. */
  api: (method: string, route: string, bearer: string, body?: object) => Promise<Record<string, unknown>>
}

/** A store of the story, as its customers and its merchant see it. */
export interface StoryStore {
  about: string
  /** What the configuration says of it, where it is not as usual. */
  settings: object
  /** Connects it, before the service runs. */
  connect: (setUp: SetUp) => Promise<void>
  /** SKUs of two products with stock for ten; undefined while it does not sell them. */
  sells: () => Promise<[string, string] | undefined>
  /** A customer buys. @returns the reference of the order */
  buy: (lines: { sku: string; quantity: number }[]) => Promise<string>
  isClosed: (reference: string) => boolean
  /** The mails that the customer of an order has, as HTML. */
  mails: (reference: string) => string[]
  /** Whether the keys are in the mails, beside the link. */
  printsKeys: boolean
  /** How many deliveries of the store itself were the same as an earlier one; absent: none is. */
  repeats?: () => number
  /** How many orders it has whole. */
  fulfilled: () => number
  /** Licence keys that it took, or their marks where its customers get the link alone. */
  keys: () => string[]
  /** Those that a customer got twice, or that two lines got. */
  duplicates: () => unknown[]
  close: () => Promise<void>
}

export const STOCK_MIN = 10

/**
 * The keys that the customer of an order sees: those on the page that a link in the mail opens, after a click on each line. Where
 * the mail has the keys as well, only those count that both have.
 */
export async function seenIn(store: StoryStore, reference: string): Promise<string[]> {
  const mails = store.mails(reference)
  const words = mails.flatMap((html) => textOf(html).split(/\s+/))
  const pages = await Promise.all(pagesOf(mails.flatMap(linksIn)).map(readWhole))
  const shown = pages.flatMap(({ lines }) => [...lines.values()].flat())
  return store.printsKeys ? shown.filter((key) => words.includes(key)) : shown
}

/** The mail may be quicker than the answer of the shop that sent it: then the customer looks again, as the page says. */
async function readWhole(link: string) {
  for (let looks = 1; ; looks += 1) {
    const page = await readPage(link)
    if (!page.isWaiting || looks === LOOKS_MAX) return page
    await sleep(100)
  }
}
const LOOKS_MAX = 100

/** A backend that posts orders and takes callbacks. */
export async function backendOfStory({ id, folder, storePort, api }: StoryPlace): Promise<StoryStore> {
  let shop: Awaited<ReturnType<typeof startShop>> | undefined
  let token = ''
  let orders = 1000
  const received = (type: string) => (shop?.received() ?? []).filter((callback) => callback.type === type)
  return {
    about: 'a demo store waits for keys',
    settings: {},
    connect: async (setUp) => {
      token = (await setUp.createStoreToken(id, 'demo')).reveal()
      const secret = (await setUp.callbackSecret(id)).reveal()
      shop = await startShop({ secret, port: storePort, file: path.join(folder, 'store.jsonl') })
    },
    sells: async () => {
      const { items } = (await api('GET', '/listings?limit=100', token)) as {
        items: { sku: string; stock: number | null; available: boolean }[]
      }
      const [one, other] = items.filter(({ available, stock }) => available && (stock ?? 0) >= STOCK_MIN)
      return one && other && [one.sku, other.sku]
    },
    buy: async (lines) => {
      orders += 1
      const reference = String(orders)
      await api('POST', '/orders', token, {
        reference,
        lines: lines.map((line, index) => ({ id: `${index + 1}`, ...line })),
      })
      return reference
    },
    isClosed: (reference) => received('order.closed').some(({ data }) => data.reference === reference),
    // Its developer writes the mail, by what the callbacks bring.
    mails: (reference) => {
      const lines = [...(shop?.keys() ?? [])].filter(([line]) => line.startsWith(`${reference}/`))
      const keys = lines.flatMap(([, ofLine]) => ofLine.map((key) => `<p>${escaped(key)}</p>`)).join('\n')
      const closed = received('order.closed').filter(({ data }) => data.reference === reference)
      return closed.map(({ data }) => `${keys}\n<p><a href="${data.keysUrl}">Your order ${reference}</a></p>`)
    },
    printsKeys: true,
    fulfilled: () => received('order.closed').filter(({ data }) => data.state === 'fulfilled').length,
    keys: () => [...(shop?.keys().values() ?? [])].flat(),
    duplicates: () => shop?.duplicates() ?? [],
    close: async () => shop?.close(),
  }
}
