import type { Context } from '../../context.ts'
import { listingNotices, reasonText } from '../../domain/labels.ts'
import type { ListingState } from '../../domain/listing.ts'
import { storeSourceId } from '../../inbox/sources.ts'
import { storeWebhookUrl } from '../../inbox/webhooks.ts'
import { listingsByState } from '../../observe/status.ts'
import { first } from '../../storage/database.ts'
import { anyDelivery } from '../../storage/deliveries.ts'
import { pageOfListings } from '../../storage/listings.ts'
import { lastCompleteSync } from '../../storage/runs.ts'
import { listStoreOrders } from '../../storage/store-orders.ts'
import { storeReadingOf } from '../../storage/stores.ts'
import { doubtful, failed, sound } from '../../stores/findings.ts'
import type { Store, StoreFinding } from '../../stores/store.ts'

type Db = Context['db']

/** Tests a store. Adds what is known of the store here: its webhook, its listings, and how its orders are read. */
export async function testStore(
  db: Db,
  store: string,
  adapter: Pick<Store, 'test' | 'provision' | 'variants' | 'ordersSince'>,
  publicUrl: string | null,
): Promise<StoreFinding[]> {
  const tried = await adapter.test()
  // Where the connection failed, the webhook is not tested.
  const isOpen = !tried.some(({ check, state }) => check === 'connection' && state === 'failed')
  return [
    ...tried,
    ...(adapter.provision && isOpen ? [await webhookFinding(db, adapter.provision, { store, publicUrl })] : []),
    ...(adapter.ordersSince ? [await ordersFinding(db, store)] : []),
    ...(await listingFindings(db, store, adapter.variants !== undefined)),
  ]
}

/** Makes the store's webhook if it is missing, and reports how the webhook is. The service makes it too, every 15 minutes. */
async function webhookFinding(
  db: Db,
  provision: NonNullable<Store['provision']>,
  { store, publicUrl }: { store: string; publicUrl: string | null },
): Promise<StoreFinding> {
  if (publicUrl === null) return sound('webhook', 'none, as there is no publicUrl: polling alone')
  const url = storeWebhookUrl(publicUrl, store)
  const made = await provision(url)
  if (made.outcome !== 'confirmed') {
    const fix = 'Orders are polled meanwhile. The webhook is made by itself once the shop allows it.'
    return failed('webhook', made.detail, fix)
  }
  const hasSent = (await db.query(anyDelivery(storeSourceId(store)))).length > 0
  const isSilent = !hasSent && (await db.query(listStoreOrders({ store, limit: 1 }))).length > 0
  const detail = made.detail ?? (isSilent ? 'orders came by polling, and never a delivery by it' : undefined)
  if (detail === undefined) return sound('webhook', `it sends its orders to ${url}`)
  return doubtful('webhook', detail, `Look whether the shop reaches ${url}: it switches a webhook off after failures.`)
}

const instant = (at: number): string => new Date(at).toISOString()

async function ordersFinding(db: Db, store: string): Promise<StoreFinding> {
  const reading = await first(db, storeReadingOf(store))
  if (reading?.failingSince) {
    const detail = `they were not read since ${instant(reading.failingSince)}: ${reading.lastError}`
    return failed('orders', detail, 'Correct what the shop does not allow; they are read again by themselves.')
  }
  if (!reading?.ordersReadAt) return doubtful('orders', 'they were not read yet', 'Wait for a minute, then test again.')
  const from = instant(reading.connectedAt)
  return sound('orders', `last read ${instant(reading.ordersReadAt)}; those paid since ${from} are bought`)
}

/** The most reasons that are shown for each state of the store's listings. */
const REASONS_SHOWN = 3

async function listingFindings(db: Db, store: string, readsVariants: boolean): Promise<StoreFinding[]> {
  const totals = (await listingsByState(db)).filter((row) => row.store === store)
  const reading = await first(db, storeReadingOf(store))
  const unread = (detail: string) => [doubtful('listings', detail, 'Wait for the first sync, then test again.')]
  if (readsVariants && !reading?.variantsReadAt) return unread('the products of the shop were not all read yet')
  if (totals.length === 0 && !(await first(db, lastCompleteSync()))) {
    return unread("the supplier's catalogue was not read yet")
  }
  const counts = totals.map(({ state, total }) => `${total} ${state}`).join(', ')
  const none = 'none: no product of the store has the SKU of an offer'
  return [
    sound('listings', counts === '' ? none : counts),
    ...(await reasonsOf(db, store, 'failed')),
    ...(await reasonsOf(db, store, 'held')),
    ...(await reasonsOf(db, store, 'synced', listingNotices)),
  ]
}

async function reasonsOf(db: Db, store: string, state: ListingState, reasons?: readonly string[]) {
  const rows = await db.query(pageOfListings({ store, state, reasons, limit: REASONS_SHOWN }))
  return rows.map(({ variant, sku, reason, detail }) =>
    doubtful(
      'listings',
      `${sku} (${variant}) is ${state}: ${detail ?? (reason ? reasonText(reason) : 'no reason is known')}`,
      state === 'synced'
        ? `Change it in the shop, then: quayside listings retry ${variant} --store ${store}.`
        : `See quayside listings list --state ${state} --store ${store}.`,
    ),
  )
}
