import { z } from 'zod'
import { assertAllowed } from '../../access/auth.ts'
import { createToken, revokeToken } from '../../access/tokens.ts'
import type { Backup as BackupRecord } from '../../backup/backup.ts'
import { parseDecimal } from '../../domain/money.ts'
import { purchaseStates } from '../../domain/purchase.ts'
import { Failure } from '../../errors.ts'
import { replay, reveal as revealBody } from '../../inbox/process.ts'
import { freeze, releasePurchase, retryPurchase, unfreeze } from '../../ordering/actions.ts'
import { redeliver } from '../../ordering/fulfil.ts'
import { need } from '../../storage/database.ts'
import { deliveryById, listDeliveries } from '../../storage/deliveries.ts'
import { attemptsOf, transitionsOf } from '../../storage/evidence.ts'
import { changesOfRun } from '../../storage/offers.ts'
import { listOutbox, outboxById } from '../../storage/outbox.ts'
import { listPurchases, purchaseById } from '../../storage/purchases.ts'
import { listSyncRuns, syncRunById } from '../../storage/runs.ts'
import { currentFreeze } from '../../storage/settings.ts'
import { allTokens } from '../../storage/tokens.ts'
import { choice, freezeBody, paging, releaseBody, tokenBody, unfreezeBody } from '../input.ts'
import { type ApiContext, type Operation, ok, operation } from '../operation.ts'
import { pageOfDiscrepancies, sinceWhen, statusOf } from './read-models.ts'
import * as views from './views.ts'
import { iso, NewToken, page, Token, tokenView } from './views.ts'

const deliveryStates = ['stored', 'applied', 'ignored', 'orphan', 'quarantined', 'retry', 'dead'] as const
const effectStates = ['due', 'done', 'dead'] as const
const effectKinds = ['callback', 'alert'] as const

/** Changes of one sync run that are shown: more than a person reads; the run counts all of them. */
const CHANGES_MAX = 1000

/** What people on duty look at and do: purchases, deliveries, callbacks, sync runs, the freeze. */
export function dutyOperations({
  ordering,
  stores,
  syncs,
}: Pick<ApiContext, 'ordering' | 'stores' | 'syncs'>): Operation[] {
  const { db } = ordering
  const viewer = { people: 'viewer' } as const
  const operator = { people: 'operator' } as const
  const admin = { people: 'admin' } as const

  const purchaseDetail = async (id: string) => {
    const purchase = await need(db, purchaseById(id), 'purchase', id)
    const [attempts, transitions, since] = await Promise.all([
      db.query(attemptsOf([id])),
      db.query(transitionsOf([id])),
      sinceWhen(db, [purchase]),
    ])
    return views.purchaseDetail(purchase, since(purchase), attempts, transitions)
  }
  const freezeNow = async () => {
    const freeze = await currentFreeze(db)
    return { freeze: freeze ? views.freezeView(freeze) : null }
  }
  const FreezeNow = z.object({ freeze: views.Freeze.nullable() })

  return [
    operation({
      name: 'viewStatus',
      method: 'get',
      path: '/status',
      allowed: viewer,
      answer: views.Status,
      summary: 'How the service stands: balance, freeze, counts, freshness.',
      success: { 200: 'As of now' },
      handle: async () => {
        const ids = stores.map(({ id }) => id)
        return ok(await statusOf(db, ids, ordering.supplier.unreadable()))
      },
    }),

    operation({
      name: 'listPurchases',
      method: 'get',
      path: '/purchases',
      allowed: viewer,
      summary: 'Purchases at the supplier, newest first.',
      query: { ...paging, state: choice(purchaseStates) },
      answer: views.page(views.PurchaseEntry),
      success: { 200: 'A page of purchases' },
      async handle({ query: { limit, ...filter } }) {
        const rows = await db.query(listPurchases({ ...filter, limit: limit + 1 }))
        const since = await sinceWhen(db, rows)
        return ok(
          views.pageOf(
            rows,
            limit,
            (row) => views.purchaseEntry(row, since(row)),
            ({ id }) => id,
          ),
        )
      },
    }),
    operation({
      name: 'viewPurchase',
      method: 'get',
      path: '/purchases/:id',
      allowed: viewer,
      summary: 'One purchase with every request made for it and every step it took.',
      answer: views.PurchaseDetail,
      success: { 200: 'The purchase' },
      failures: { 404: 'unknown id' },
      handle: async ({ path }) => ok(await purchaseDetail(path.id ?? '')),
    }),
    operation({
      name: 'retryPurchase',
      method: 'post',
      path: '/purchases/:id/retry',
      allowed: operator,
      summary: 'Buy again what ended without keys, as a new generation.',
      answer: views.PurchaseDetail,
      success: { 200: 'The purchase; its next generation is planned' },
      failures: { 404: 'unknown id', 409: 'it has not ended, or a later generation exists' },
      async handle({ caller, path }) {
        await retryPurchase(ordering, path.id ?? '', caller.actor)
        return ok(await purchaseDetail(path.id ?? ''))
      },
    }),
    operation({
      name: 'releasePurchase',
      method: 'post',
      path: '/purchases/:id/release',
      allowed: operator,
      summary: 'Lift the hold of a purchase, perhaps with a new ceiling for one unit, or beyond the spend caps.',
      body: releaseBody,
      answer: views.PurchaseDetail,
      success: { 200: 'The purchase; its guards run again' },
      failures: { 404: 'unknown id', 409: 'it is not held' },
      async handle({ caller, path, body: { ceiling, overrideSpendCap } }) {
        const { id, currency } = await need(db, purchaseById(path.id ?? ''), 'purchase', path.id ?? '')
        const ceilingMinor = ceiling === undefined ? undefined : parseDecimal(ceiling, currency)
        if (ceiling !== undefined && ceilingMinor === undefined) {
          const message = `must be an exact amount in ${currency}`
          throw new Failure('invalid', `ceiling: ${message}`, { fields: [{ field: 'ceiling', message }] })
        }
        await releasePurchase(ordering, id, { ceilingMinor, overrideSpendCap }, caller.actor)
        return ok(await purchaseDetail(id))
      },
    }),

    operation({
      name: 'listDeliveries',
      method: 'get',
      path: '/deliveries',
      allowed: viewer,
      summary: 'Deliveries of the supplier, newest first.',
      query: { ...paging, state: choice(deliveryStates) },
      answer: views.page(views.Delivery),
      success: { 200: 'A page of deliveries' },
      async handle({ query: { limit, ...filter } }) {
        const rows = await db.query(listDeliveries({ ...filter, limit: limit + 1 }))
        return ok(views.pageOf(rows, limit, views.deliveryView, ({ id }) => id))
      },
    }),
    operation({
      name: 'viewDelivery',
      method: 'get',
      path: '/deliveries/:id',
      allowed: viewer,
      summary: 'One delivery. An admin sees its body with reveal=true, which the audit records.',
      query: { reveal: choice(['true', 'false']) },
      answer: views.DeliveryDetail,
      success: { 200: 'The delivery' },
      failures: { 404: 'unknown id' },
      async handle({ caller, path, query }) {
        const reveal = query.reveal === 'true'
        if (reveal) assertAllowed(caller, admin)
        const delivery = views.deliveryView(await need(db, deliveryById(path.id ?? ''), 'delivery', path.id ?? ''))
        if (!reveal) return ok(delivery)
        return ok({ ...delivery, body: await revealBody(ordering, delivery.id, caller.actor) })
      },
    }),
    operation({
      name: 'replayDelivery',
      method: 'post',
      path: '/deliveries/:id/replay',
      allowed: operator,
      summary: 'Put a delivery back into the inbox; replaying one that was applied is harmless.',
      answer: views.Delivery,
      success: { 200: 'The delivery, stored again' },
      failures: { 404: 'unknown id' },
      async handle({ caller, path }) {
        await replay(ordering, path.id ?? '', caller.actor)
        return ok(views.deliveryView(await need(db, deliveryById(path.id ?? ''), 'delivery', path.id ?? '')))
      },
    }),

    operation({
      name: 'listOutbox',
      method: 'get',
      path: '/outbox',
      allowed: viewer,
      summary: 'Callbacks and alerts that are owed or were sent, newest first.',
      query: { ...paging, state: choice(effectStates), kind: choice(effectKinds) },
      answer: views.page(views.Effect),
      success: { 200: 'A page of the outbox' },
      async handle({ query: { limit, ...filter } }) {
        const rows = await db.query(listOutbox({ ...filter, limit: limit + 1 }))
        return ok(views.pageOf(rows, limit, views.effectView, ({ id }) => id))
      },
    }),
    operation({
      name: 'redeliverEffect',
      method: 'post',
      path: '/outbox/:id/redeliver',
      allowed: operator,
      summary: 'Send a waiting or dead callback again now, with all its attempts.',
      answer: views.Effect,
      success: { 200: 'The callback, due now' },
      failures: { 404: 'unknown id, or done already' },
      async handle({ caller, path }) {
        await redeliver(ordering, path.id ?? '', caller.actor)
        return ok(views.effectView(await need(db, outboxById(path.id ?? ''), 'outbox row', path.id ?? '')))
      },
    }),

    operation({
      name: 'requestSync',
      method: 'post',
      path: '/sync',
      allowed: operator,
      summary: 'Start a sync run; one that is under way is answered instead of a second.',
      answer: z.object({ run: views.SyncRun }),
      success: { 202: 'Started, or under way' },
      handle: async ({ caller }) => ({
        status: 202,
        data: { run: views.syncRunView(await syncs.start(caller.actor)) },
      }),
    }),
    operation({
      name: 'listSyncRuns',
      method: 'get',
      path: '/sync/runs',
      allowed: viewer,
      query: paging,
      summary: 'Sync runs, newest first.',
      answer: views.page(views.SyncRun),
      success: { 200: 'A page of runs' },
      async handle({ query: { limit, ...filter } }) {
        const rows = await db.query(listSyncRuns({ ...filter, limit: limit + 1 }))
        return ok(views.pageOf(rows, limit, views.syncRunView, ({ id }) => id))
      },
    }),
    operation({
      name: 'viewSyncRun',
      method: 'get',
      path: '/sync/runs/:id',
      allowed: viewer,
      summary: `One sync run with the changes that it found, at most ${CHANGES_MAX}.`,
      answer: views.SyncRunDetail,
      success: { 200: 'The run' },
      failures: { 404: 'unknown id' },
      async handle({ path }) {
        const run = await need(db, syncRunById(path.id ?? ''), 'sync run', path.id ?? '')
        return ok({ ...views.syncRunView(run), changes: await db.query(changesOfRun(run.id, CHANGES_MAX)) })
      },
    }),

    operation({
      name: 'listDiscrepancies',
      method: 'get',
      path: '/discrepancies',
      allowed: viewer,
      query: paging,
      summary: 'Differences between our purchases and the orders of the supplier, newest first.',
      answer: views.page(views.Discrepancy),
      success: { 200: 'A page of discrepancies' },
      async handle({ query: { limit, before } }) {
        const rows = await db.query(pageOfDiscrepancies({ before, limit: limit + 1 }))
        return ok(views.pageOf(rows, limit, views.discrepancyView, ({ id }) => id))
      },
    }),

    operation({
      name: 'freeze',
      method: 'post',
      path: '/freeze',
      allowed: operator,
      body: freezeBody,
      summary: 'Stop all buying. Reads go on; a second freeze is a second cause.',
      answer: FreezeNow,
      success: { 200: 'Frozen' },
      async handle({ caller, body }) {
        await freeze(ordering, body.reason, caller.actor)
        return ok(await freezeNow())
      },
    }),
    operation({
      name: 'unfreeze',
      method: 'post',
      path: '/unfreeze',
      allowed: operator,
      body: unfreezeBody,
      summary: 'Lift causes of the freeze. Buying goes on once none is left; one that came since stays.',
      answer: FreezeNow,
      success: { 200: 'Lifted; what still stands, or null' },
      failures: {
        409: 'none of these causes stands, and another does; or a restore is not reattached yet, or a new database not compared',
      },
      async handle({ caller, body }) {
        await unfreeze(ordering, caller.actor, body.causes)
        return ok(await freezeNow())
      },
    }),
  ]
}

/** Who may ask: tokens are made, listed and revoked by admins. */
export function tokenOperations({
  ordering,
  stores,
  randomBytes,
}: Pick<ApiContext, 'ordering' | 'stores' | 'randomBytes'>): Operation[] {
  const { db, now, newId } = ordering
  const context = { db, now, newId, randomBytes }
  const admin = { people: 'admin' } as const
  return [
    operation({
      name: 'listTokens',
      method: 'get',
      path: '/tokens',
      allowed: admin,
      summary: 'All tokens, revoked ones too, without their text.',
      answer: page(Token),
      success: { 200: 'All of them' },
      handle: async () => ok({ items: (await db.query(allTokens())).map(tokenView), next: null }),
    }),
    operation({
      name: 'createToken',
      method: 'post',
      path: '/tokens',
      allowed: admin,
      body: tokenBody,
      summary: 'Make a token. Its text is in this answer and never shown again.',
      answer: NewToken,
      success: { 201: 'Made' },
      async handle({ caller, body: { name, role, store = null, scopes = [], expiresInDays = null } }) {
        if (store !== null && !stores.some(({ id }) => id === store)) {
          const message = `must be one of ${stores.map(({ id }) => id).join(', ')}`
          throw new Failure('invalid', `store: ${message}`, { fields: [{ field: 'store', message }] })
        }
        const wanted = { name, role, store, scopes: [...new Set(scopes)], expiresInDays }
        const { token, row } = await createToken(context, wanted, caller.actor)
        return { status: 201, data: { ...tokenView(row), token: token.reveal() } }
      },
    }),
    operation({
      name: 'revokeToken',
      method: 'delete',
      path: '/tokens/:id',
      allowed: admin,
      summary: 'Revoke a token at once. The owner token is no row: it changes with each start.',
      answer: Token,
      success: { 200: 'Revoked' },
      failures: { 404: 'unknown id, or revoked already' },
      handle: async ({ caller, path }) => ok(tokenView(await revokeToken(context, path.id ?? '', caller.actor))),
    }),
  ]
}

const Backup = z.object({
  file: z.string().meta({ description: 'Name in the folder of the backups' }),
  bytes: z.int().min(0),
  readable: z.boolean().meta({ description: 'False for a file that is no backup of this kind' }),
  madeAt: z
    .string()
    .nullable()
    .meta({ format: 'date-time', examples: ['2026-03-01T02:20:00.000Z'] }),
  epoch: z.int().nullable().meta({ description: 'One more than the database had been restored' }),
  stores: z.array(z.string()).meta({ description: 'Permanent ids of the stores that it holds orders of' }),
  keyName: z
    .string()
    .nullable()
    .meta({ description: 'The key-encryption key that it needs', examples: ['3f9a01c2'] }),
})
const BackupList = z.object({ folder: z.string(), items: z.array(Backup), next: z.null() })
const Made = z.object({ folder: z.string(), backup: Backup })
const Rotated = z.object({
  before: z.string().meta({ description: 'Name of the key-encryption key before' }),
  after: z.string().meta({ description: 'Name of the one that the service needs from its next start on' }),
})

/** Backups, and the key that the database is sealed under. */
export function backupOperations({ backups, keys }: Pick<ApiContext, 'backups' | 'keys'>): Operation[] {
  return [
    operation({
      name: 'listBackups',
      method: 'get',
      path: '/backups',
      allowed: { people: 'viewer' },
      answer: BackupList,
      summary: 'Backups that are kept, newest first.',
      success: { 200: 'All of them' },
      handle: async () => ok({ folder: backups.folder, items: backups.list().map(backupView), next: null }),
    }),
    operation({
      name: 'makeBackup',
      method: 'post',
      path: '/backups',
      allowed: { people: 'operator' },
      answer: Made,
      summary: 'Make a backup now: copied, checked, sealed, and on the disk when this is answered.',
      success: { 201: 'Made' },
      failures: { 409: 'one is being made', 503: 'none could be made; nothing of the try is left' },
      handle: async ({ caller }) => ({
        status: 201,
        data: { folder: backups.folder, backup: backupView(await backups.make(caller.actor)) },
      }),
    }),
    operation({
      name: 'rotateKeys',
      method: 'post',
      path: '/keys/rotate',
      allowed: { people: 'admin' },
      answer: Rotated,
      summary: 'Put the database under the next key-encryption key, which the service reads from its own secrets.',
      success: { 200: 'Rotated; the service needs the new key from its next start on' },
      failures: { 409: 'there is no next key, or it is the one in use' },
      handle: async ({ caller }) => ok(await keys.rotate(caller.actor)),
    }),
  ]
}

const backupView = ({ file, bytes, header }: BackupRecord): z.infer<typeof Backup> => ({
  file,
  bytes,
  readable: header !== undefined,
  stores: header?.stores ?? [],
  madeAt: header ? iso(header.madeAt) : null,
  epoch: header?.epoch ?? null,
  keyName: header?.keyName ?? null,
})
