import type { DryRunner } from './catalogue/dry-run.ts'
import type { SyncRunner } from './catalogue/sync.ts'
import type { Config, SellingStore } from './config/config.ts'
import { Failure } from './errors.ts'
import type { BackupFlows } from './http/api/service.ts'
import type { Flows } from './http/flows.ts'
import { type Captures, createCaptures } from './inbox/capture.ts'
import type { Inbox } from './inbox/receive.ts'
import { listingFlows } from './listing-flows.ts'
import { explainOffer } from './listings/listings.ts'
import { cancelOrder, freeze, releasePurchase, retryPurchase, unfreeze } from './ordering/actions.ts'
import { decidePurchase } from './ordering/decide.ts'
import { viewEvidence } from './ordering/evidence.ts'
import type { Fulfilment } from './ordering/fulfil.ts'
import { takeOrder } from './ordering/intake.ts'
import { viewOrder } from './ordering/order-view.ts'
import type { SweepRunner } from './reconciliation/sweep.ts'
import { StaleWrite } from './storage/database.ts'
import { deliveryById, replayDelivery } from './storage/deliveries.ts'
import { insertAudit } from './storage/evidence.ts'
import { redeliverEffect } from './storage/outbox.ts'
import type { CallbackSecrets } from './stores/backend/signature.ts'
import type { Supplier } from './supplier/client.ts'
import { webhookFlows } from './webhook-flows.ts'

export interface FlowParts {
  config: Config
  ordering: Fulfilment
  supplier: Supplier
  syncs: SyncRunner
  dryRun: DryRunner
  sweeps: SweepRunner
  inbox: Pick<Inbox, 'reload' | 'traffic'>
  signing: Pick<CallbackSecrets, 'rotate'>
  backups: BackupFlows['backups']
  keys: BackupFlows['keys']
}

/** What the API makes happen, wired to the flows that do it. */
export function createFlows({
  config,
  ordering,
  supplier,
  syncs,
  dryRun,
  sweeps,
  inbox,
  signing,
  backups,
  keys,
}: FlowParts): Flows & BackupFlows & { capture: Captures } {
  const { db, vault, now, newId, log } = ordering
  const audited = (actor: string, action: string, subject: string) =>
    insertAudit({ id: newId(), at: now(), actor, action, subject })
  const storeOf = (id: string): SellingStore => {
    const store = config.stores.find((one) => one.id === id)
    if (!store) throw new Failure('not_found', `the configuration has no store ${id}`)
    return store
  }
  return {
    backups,
    keys,
    takeOrder: (store, input, digest) => takeOrder(ordering, storeOf(store).id, input, digest),
    viewOrder: (orderId, show) => viewOrder(ordering, orderId, show),
    cancelOrder: (orderId, actor) => cancelOrder(ordering, orderId, actor),
    retryPurchase: (id, actor) => retryPurchase(ordering, id, actor),
    decidePurchase: (id, decision, by) => decidePurchase(ordering, id, decision, by),
    viewEvidence: (id, options) => viewEvidence(ordering, id, options),
    releasePurchase: (id, change, actor) => releasePurchase(ordering, id, change, actor),
    freeze: (reason, actor) => freeze(ordering, reason, actor),
    unfreeze: (actor, causes) => unfreeze(ordering, actor, causes),
    unreadableAnswers: supplier.unreadable,
    requestSync: (cause) => syncs.start(cause),
    dryRunSync: dryRun,
    requestSweep: (cause) => sweeps.start(cause),
    ...webhookFlows({ db, vault, supplier, now, newId, log, publicUrl: config.publicUrl, inbox }),
    rotateCallbackSecret: (store, overlapMs, actor) => signing.rotate(storeOf(store).id, overlapMs, actor),
    replayDelivery: async (id, actor) => {
      await found('delivery', id, () => db.commit([replayDelivery(id, now()), audited(actor, 'delivery.replay', id)]))
      ordering.wake('inbox')
    },
    revealDelivery: async (id, actor) => {
      const [row] = await db.query(deliveryById(id))
      if (!row) throw new Failure('not_found', `no delivery ${id}`)
      await db.commit([audited(actor, 'delivery.reveal', id)])
      return vault.open({ table: 'deliveries', row: row.id }, row.ciphertext, row.keyId).toString('utf8')
    },
    redeliverEffect: async (id, actor) => {
      await found('effect that could be sent again', id, () =>
        db.commit([redeliverEffect(id, now()), audited(actor, 'outbox.redeliver', id)]),
      )
      ordering.wake('outbox')
    },
    capture: createCaptures({ db, vault, now, newId, log }),
    ...listingFlows({ db, now, newId, wake: () => ordering.wake('publish') }, storeOf),
    explainPrice: (store, sku) => explainOffer(db, storeOf(store), sku, now()),
  }
}

async function found(what: string, id: string, commit: () => Promise<unknown>): Promise<void> {
  try {
    await commit()
  } catch (error) {
    if (error instanceof StaleWrite) throw new Failure('not_found', `there is no ${what} with the id ${id}`)
    throw error
  }
}
