/** A whole Quayside for tests: real flows on real SQLite, the sandbox and a demo store over HTTP, a clock moved by hand. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { type Dialect, readDialect } from '../../src/dialect/dialect.ts'
import { createIds } from '../../src/ids.ts'
import { createLog } from '../../src/log.ts'
import type { Ordering, OrderingPolicy } from '../../src/ordering/context.ts'
import { takeOrder } from '../../src/ordering/intake.ts'
import { viewOrder } from '../../src/ordering/order-view.ts'
import { resume } from '../../src/ordering/recover.ts'
import type { RuntimeParts } from '../../src/runtime.ts'
import type { SandboxDemo } from '../../src/sandbox/panel.ts'
import { Secret } from '../../src/secret.ts'
import type { Database } from '../../src/storage/database.ts'
import { listDiscrepancies } from '../../src/storage/discrepancies.ts'
import type { Marker } from '../../src/storage/marker.ts'
import { offersByProduct, putOffer } from '../../src/storage/offers.ts'
import { listOutbox } from '../../src/storage/outbox.ts'
import { purchasesOfOrder } from '../../src/storage/purchases.ts'
import { backendStore } from '../../src/stores/backend/backend.ts'
import { openCallbackSecrets, secretText } from '../../src/stores/backend/signature.ts'
import type { Store } from '../../src/stores/store.ts'
import { createSupplier, type OrderRequest } from '../../src/supplier/client.ts'
import { openVault } from '../../src/vault/vault.ts'
import { changedAnswers, type StatedOrder } from './changed-answers.ts'
import { startCheckedSandbox } from './checked-sandbox.ts'
import { memoryDatabase, TEST_NOW } from './database.ts'
import { freePort } from './free-port.ts'
import { startShop } from './recording-store.ts'
import { lineOf, partOf } from './references.ts'
import { sellingPolicy } from './selling.ts'
import { startProcess } from './test-process.ts'

export const STORE = 'demo-ab12cd34'
/** What every app's database is sealed under. */
export const KEY_ENCRYPTION_KEY = new Secret(Buffer.alloc(32, 'kek').toString('base64'))
const SANDBOX_KEY = 'sk_test_0123456789abcdef'
const SECOND = 1_000

export const defaultDialect = (): Dialect =>
  readDialect(new URL('../../config/dialects/reseller-v1.1.json', import.meta.url))

export interface TestAppOptions {
  dialect?: Dialect
  /** What the supplier really does, where the dialect is wrong about it. */
  sandboxDialect?: Dialect
  policy?: Partial<OrderingPolicy>
  balanceMinor?: number
  database?: Database
  /** The file beside the database. */
  marker?: Marker
  /** Default: 0.5. Waits with jitter are then half their most. */
  random?: () => number
  /** The key that Quayside presents. */
  apiKey?: string
  /** Ids of stores that were removed. */
  removed?: string[]
  /** A second store beside the demo store. */
  beside?: (needs: { now: () => number; newId: () => string }) => {
    store: RuntimeParts['stores'][number]
    adapter: Store
  }
  /** Stands between Quayside and the supplier at this address. @returns its own address */
  before?: (baseUrl: string) => Promise<string>
  /** Changes what the orders of the supplier state, in place. */
  stated?: (order: StatedOrder) => void
  /** File of the sandbox, so that `supplierDown` and `supplierUp` find the same world. */
  sandboxFile?: string
  /** Where the pages of keys are said to be reached. */
  keyPagesAt?: string
  /** Where the supplier is that of a demo. */
  demo?: SandboxDemo
}

export interface OrderLine {
  sku: string
  quantity?: number
  unitPriceMinor?: number
  currency?: string
  id?: string
}

export type TestApp = Awaited<ReturnType<typeof openTestApp>>

export async function openTestApp(options: TestAppOptions = {}) {
  const { dialect = defaultDialect(), random = () => 0.5, apiKey = SANDBOX_KEY } = options
  let clock = TEST_NOW
  /** How far the wall clock of Quayside, and of the store that checks its signatures, is ahead of the time that passes. */
  let ahead = 0
  const now = () => clock + ahead
  const monotonic = () => clock
  const lines: string[] = []
  const openSandbox = (port: number) =>
    startCheckedSandbox({
      dialect: options.sandboxDialect ?? dialect,
      apiKey: SANDBOX_KEY,
      now: monotonic,
      seed: 7,
      automatic: false,
      requestsPerMinute: 100_000,
      ...(options.balanceMinor === undefined ? {} : { balanceMinor: options.balanceMinor }),
      ...(options.sandboxFile === undefined ? {} : { file: options.sandboxFile }),
      demo: options.demo,
      port,
    })
  // While it is down, no other server may take its port.
  let sandbox = await openSandbox(await freePort())
  let supplierIsUp = true
  const db = options.database ?? memoryDatabase()
  const keyEncryptionKey = KEY_ENCRYPTION_KEY
  const vault = await openVault({ database: db, keyEncryptionKey, now })
  const supplier = createSupplier({
    baseUrl: options.stated
      ? await changedAnswers(sandbox.baseUrl, options.stated)
      : ((await options.before?.(sandbox.baseUrl)) ?? sandbox.baseUrl),
    dialect,
    apiKey: new Secret(apiKey),
    now,
    monotonic,
    random: Math.random,
    sleep: () => Promise.resolve(),
  })
  const newId = createIds(now, randomBytes)
  const callbackSecrets = await openCallbackSecrets({ db, vault, now, newId })
  const shop = await startShop({ secret: secretText(first(callbackSecrets.of(STORE))), now })
  const store = backendStore({ id: STORE, callbackUrl: shop.url, secretsOf: callbackSecrets.of, now, newId })
  const beside = options.beside?.({ now, newId })
  const sent: OrderRequest[] = []
  const log = createLog({ level: 'info', write: (line) => void lines.push(line) })

  const openProcess = (owner: string) =>
    startProcess({
      db,
      vault,
      supplier,
      dialect,
      now,
      monotonic,
      newId,
      random,
      log,
      owner,
      policy: options.policy ?? {},
      ...(options.marker && { marker: options.marker }),
      ...(options.keyPagesAt !== undefined && { keyPagesAt: options.keyPagesAt }),
      stores: [{ id: STORE, policy: sellingPolicy() }, ...(beside ? [beside.store] : [])],
      storeOf: (id) => (id === STORE ? store : id === beside?.store.id ? beside.adapter : undefined),
      ...(options.removed && { storeIds: [STORE, ...options.removed] }),
      onSend: (request) => void sent.push(request),
    })
  let current = await openProcess('test')
  onTestFinished(async () => {
    await Promise.all([supplier.close(), store.close(), shop.close(), sandbox.close()])
  })

  /** Runs everything that is due now, until nothing is. */
  const settle = async (): Promise<void> => {
    for (let round = 0; round < 50; round += 1) {
      if ((await current.round()) + (supplierIsUp ? sandbox.advance() : 0) === 0) return
    }
    throw new Error('the app does not come to rest')
  }
  /** Moves the clock on in steps and runs what is due at each. */
  const pass = async (ms: number, stepMs = Math.max(SECOND, Math.floor(ms / 20))): Promise<void> => {
    for (const end = clock + ms; clock < end; ) {
      clock = Math.min(end, clock + stepMs)
      await settle()
    }
  }
  const order = async (reference: string, orderLines: OrderLine[], ordering: Ordering = current.ordering) => {
    const input = {
      reference,
      lines: orderLines.map((line, place) => ({
        id: String(place + 1),
        quantity: 1,
        unitPriceMinor: null,
        currency: 'EUR',
        ...line,
      })),
    }
    return takeOrder(ordering, STORE, input, JSON.stringify(input))
  }
  /**
   * Stores the first page of the supplier's offers, each as old as its record says, and returns those that can be bought now, with
   * stock for ten.
   */
  const offers = async () => {
    const items = sandbox.world.offers.list({}, 0, 100).items
    await db.commit(
      items.map(({ id, sku, name, priceMinor, localStock, providerStock, available, updatedAt }) =>
        putOffer({
          productId: id,
          sku,
          name,
          costMinor: priceMinor,
          currency: dialect.money.currency,
          localStock,
          providerStock,
          available,
          asOf: updatedAt,
          changedAt: now(),
        }),
      ),
    )
    const stored = await db.query(offersByProduct(items.map((item) => item.id)))
    return stored
      .filter((offer) => offer.available && (offer.localStock ?? 0) + (offer.providerStock ?? 0) >= 10)
      .sort((a, b) => (a.productId < b.productId ? -1 : 1))
  }
  /** The first of those offers. */
  const offer = async () => first(await offers())
  /** Takes an order of one line for the first offer. */
  const buy = async (reference: string, line: Omit<OrderLine, 'sku'> = {}): Promise<string> => {
    const { sku } = await offer()
    return (await order(reference, [{ sku, ...line }])).orderId
  }
  const purchases = async (orderId: string) => db.query(purchasesOfOrder(orderId))
  /** The newest generation of the only part of an order of one line. */
  const purchase = async (orderId: string) => {
    const all = await purchases(orderId)
    return first(all.toSorted((a, b) => b.generation - a.generation))
  }
  if (apiKey === SANDBOX_KEY) await current.ordering.checkBalance()
  await current.runtime.idle()
  return {
    dialect,
    shop,
    db,
    vault,
    supplier,
    store,
    callbackSecrets,
    lines,
    settle,
    pass,
    order,
    purchases,
    purchase,
    offers,
    offer,
    buy,
    now,
    /** Every POST /orders that was asked for, in order. */
    sent,
    get sandbox() {
      return sandbox
    },
    get ordering() {
      return current.ordering
    },
    get crash() {
      return current.crash
    },
    get runtime() {
      return current.runtime
    },
    round: () => current.round(),
    /** Resolves when the process dies at the point that `crash` names. */
    died: () => current.died,
    /** A second worker beside this one, on the same database. */
    openProcess,
    /** Waits until the process dies at the point that `crash` names, or has nothing left to do. */
    runUntilDeath: async (): Promise<void> => {
      await Promise.race([current.died, settle()])
      // What was on its way to the database when it died may arrive or not; here it does.
      await turn()
    },
    /** A new process on the same database, as after a restart. */
    restart: async (): Promise<void> => {
      current = await openProcess('restarted')
      await resume(current.ordering)
    },
    supplierDown: async (): Promise<void> => {
      supplierIsUp = false
      await sandbox.close()
    },
    supplierUp: async (): Promise<void> => {
      sandbox = await openSandbox(Number(new URL(sandbox.baseUrl).port))
      supplierIsUp = true
    },
    state: async (orderId: string) => (await viewOrder(current.ordering, orderId, { keys: false })).state,
    callbacks: (type: string) => shop.received().filter((callback) => callback.type === type),
    alerts: async () => (await db.query(listOutbox({ kind: 'alert', limit: 100 }))).map(({ type }) => type).sort(),
    discrepancies: async () => (await db.query(listDiscrepancies({ limit: 100 }))).map(({ kind }) => kind).sort(),
    /**
     * Asserts what the ledger and the shop say, whatever Quayside believes: how many charges were not given back, how
     * many keys the shop has, none of them twice, each issued for its line; and at most one charge per line part.
     */
    expectLedger: ({ charges, keys, perPart = 1 }: { charges: number; keys: number; perPart?: number }): void => {
      const report = sandbox.world.report()
      const net = new Map<string, number>()
      const count = (reference: string | null, by: number) => {
        const part = partOf(reference ?? '')
        net.set(part, (net.get(part) ?? 0) + by)
      }
      for (const { externalOrderId } of report.charges) count(externalOrderId, 1)
      for (const { externalOrderId } of report.refunds) count(externalOrderId, -1)
      const atShop = [...shop.keys()].flatMap(([line, texts]) => texts.map((text) => `${line} ${text}`))
      const issued = Object.entries(report.keysIssued).flatMap(([reference, texts]) =>
        texts.map((text) => `${lineOf(reference)} ${text}`),
      )
      expect({
        charges: [...net.values()].reduce((sum, each) => sum + each, 0),
        perPart: Math.max(0, ...net.values()) <= perPart,
        keys: new Set(atShop).size,
        twice: shop.duplicates(),
        foreign: atShop.filter((key) => !issued.includes(key)),
        closes: report.closes,
      }).toEqual({ charges, perPart: true, keys, twice: [], foreign: [], closes: true })
    },
    move: (ms: number) => {
      clock += ms
    },
    /** Puts the wall clock of Quayside and the store ahead, or back: no time passes, and the supplier's clock stays. */
    jump: (ms: number) => {
      ahead += ms
    },
  }
}

/** The first of a list that must not be empty. */
export function first<T>(list: readonly T[]): T {
  const [one] = list
  if (one === undefined) throw new Error('the list is empty')
  return one
}

/** A bounded wait for something that happens beside the test. */
export async function until(met: () => boolean): Promise<void> {
  for (const end = performance.now() + 20_000; !met(); ) {
    if (performance.now() > end) throw new Error('waited for too long')
    // Not turn after turn: what is waited for may need this processor.
    await sleep(1)
  }
}
