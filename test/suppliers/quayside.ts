/** A whole Quayside before a made-up supplier: real flows on real SQLite, HTTP over sockets, a clock moved by hand. */
import { randomBytes } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { runSync, startSync } from '../../src/catalogue/sync.ts'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { createIds } from '../../src/ids.ts'
import { createLog } from '../../src/log.ts'
import { openKey } from '../../src/ordering/advance.ts'
import { takeOrder } from '../../src/ordering/intake.ts'
import { viewOrder } from '../../src/ordering/order-view.ts'
import { resume } from '../../src/ordering/recover.ts'
import { Secret } from '../../src/secret.ts'
import { listOffers } from '../../src/storage/offers.ts'
import { listOutbox } from '../../src/storage/outbox.ts'
import { licenceKeys, purchases } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { backendStore } from '../../src/stores/backend/backend.ts'
import { openCallbackSecrets, secretText } from '../../src/stores/backend/signature.ts'
import { createSupplier } from '../../src/supplier/client.ts'
import { openVault } from '../../src/vault/vault.ts'
import { memoryDatabase, TEST_NOW } from '../support/database.ts'
import { startShop } from '../support/recording-store.ts'
import { sellingPolicy } from '../support/selling.ts'
import { first, KEY_ENCRYPTION_KEY, STORE } from '../support/test-app.ts'
import { startProcess } from '../support/test-process.ts'
import { type Card, type Habits, type Product, productsOf, startDouble, sum } from './double.ts'

const SECOND = 1_000
/** Where customers open keys that are no text. */
const KEYS_PAGES = 'https://keys.example'
const MINUTE = 60 * SECOND

export type Stranger = Awaited<ReturnType<typeof openStranger>>

/** Starts a supplier with these habits, and a Quayside that speaks to it by this dialect and has read its catalogue. */
export async function openStranger(habits: Habits, dialect: Dialect, products: Product[] = productsOf(30)) {
  let clock = TEST_NOW
  const now = () => clock
  const double = await startDouble(habits, products, now)
  const db = memoryDatabase()
  const vault = await openVault({ database: db, keyEncryptionKey: KEY_ENCRYPTION_KEY, now })
  const supplier = createSupplier({
    baseUrl: double.baseUrl,
    dialect,
    apiKey: new Secret(habits.apiKey),
    now,
    random: () => 0.5,
    sleep: async (ms) => {
      clock += ms
    },
  })
  const newId = createIds(now, randomBytes)
  const callbackSecrets = await openCallbackSecrets({ db, vault, now, newId })
  const shop = await startShop({ secret: secretText(first(callbackSecrets.of(STORE))), now })
  const store = backendStore({ id: STORE, callbackUrl: shop.url, secretsOf: callbackSecrets.of, now, newId })
  const lines: string[] = []
  const openProcess = (owner: string) =>
    startProcess({
      db,
      vault,
      supplier,
      dialect,
      now,
      monotonic: now,
      newId,
      random: () => 0.5,
      log: createLog({ level: 'info', write: (line) => void lines.push(line) }),
      owner,
      policy: {},
      keyPagesAt: KEYS_PAGES,
      stores: [{ id: STORE, policy: sellingPolicy() }],
      storeOf: (id) => (id === STORE ? store : undefined),
      onSend: () => {},
    })
  let current = await openProcess('test')
  onTestFinished(async () => {
    await Promise.all([supplier.close(), store.close(), shop.close(), double.close()])
  })
  const sync = async () => {
    const { runId } = await startSync(current.runtime.catalogue, 'test')
    return runSync(current.runtime.catalogue, runId)
  }
  const settle = async (): Promise<void> => {
    for (let round = 0; round < 50; round += 1) if ((await current.round()) === 0) return
    throw new Error('it does not come to rest')
  }
  const all = () => db.query(build.select().from(purchases).orderBy(purchases.id))
  const alerts = async () =>
    (await db.query(listOutbox({ kind: 'alert', limit: 1_000 }))).map(({ type, payload }) => ({
      type,
      note: String((payload as { note?: unknown }).note ?? ''),
    }))
  const run = await sync()
  await current.ordering.checkBalance().catch(() => undefined)
  await current.runtime.idle()
  return {
    double,
    world: double.world,
    supplier,
    dialect,
    db,
    shop,
    lines,
    /** The first sync run, with its error. */
    run,
    sync,
    now,
    settle,
    alerts,
    purchases: all,
    offers: () => db.query(listOffers({ limit: 1_000 })),
    /**
     * Moves the clock on in steps, and runs what is due at each.
     *
     * @returns false where the process dies meanwhile, at the point that `crash` names
     */
    pass: async (ms: number): Promise<boolean> => {
      for (const end = clock + ms; clock < end; ) {
        clock = Math.min(end, clock + Math.max(MINUTE / 2, ms / 20))
        const lives = await Promise.race([current.died.then(() => false), settle().then(() => true)])
        await turn()
        if (!lives) return false
      }
      return true
    },
    /** @throws Failure where the order is not taken */
    order: async (reference: string, sku: string, quantity = 1) => {
      const input = { reference, lines: [{ id: '1', sku, quantity, unitPriceMinor: null, currency: 'EUR' }] }
      return takeOrder(current.ordering, STORE, input, JSON.stringify(input))
    },
    state: async (orderId: string) => (await viewOrder(current.ordering, orderId, { keys: false })).state,
    /** A new process on the same database, as after a kill. */
    restart: async () => {
      current = await openProcess('restarted')
      await resume(current.ordering)
    },
    /** What people read by now: alerts, and what waits for them with the reason. */
    said: async (): Promise<string[]> => {
      const waiting = (await all()).filter(({ state, holdReason }) => state === 'review' || holdReason !== null)
      return [...(await alerts()).map(({ note }) => note), ...waiting.map(({ note }) => note ?? '')].filter(
        (text) => text !== '',
      )
    },
    /**
     * Asserts that the supplier's books and ours agree: each charge belongs to one purchase, which knows what it cost, and none came twice;
     * each key that we have was sold for its purchase, as what it is; the shop has as many, none of them twice.
     *
     * @param keyOf what a card is to us: its type and its text
     */
    expectTie: async (
      { charges, keys }: { charges: number; keys: number },
      keyOf: (card: Card) => [type: string, text: string] = ({ type, text }) => [type, text],
    ): Promise<void> => {
      const { ledger } = double.world
      const known = (await all()).filter(({ supplierOrderId }) => supplierOrderId !== null)
      const net = ledger.charges.filter(({ order }) => !ledger.refunds.some((refund) => refund.order === order))
      const ours = await db.query(build.select().from(licenceKeys))
      const referenceOf = (id: string) => known.find((one) => one.id === id)?.externalOrderId
      const stored = ours.map((key) => `${referenceOf(key.purchaseId)} ${key.type} ${openKey(current.ordering, key)}`)
      const issued = ledger.issued.map(({ reference, card }) => [reference, ...keyOf(card)].join(' '))
      expect({
        charges: net.length,
        references: new Set(net.map(({ reference }) => reference)).size,
        booked: known.map((one) => `${one.externalOrderId} ${one.amountMinor}`).toSorted(),
        foreign: stored.filter((key) => !issued.includes(key)),
        keys: new Set(stored).size,
        atShop: sum([...shop.keys().values()].map((texts) => texts.length)),
        twice: shop.duplicates().filter(({ key }) => !key.startsWith(KEYS_PAGES)),
      }).toEqual({
        charges,
        references: charges,
        booked: net.map((one) => `${one.reference} ${one.amountMinor}`).toSorted(),
        foreign: [],
        keys,
        atShop: keys,
        twice: [],
      })
    },
    get crash() {
      return current.crash
    },
  }
}
