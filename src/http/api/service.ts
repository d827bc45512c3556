import { z } from 'zod'
import { createToken, revokeToken, roles, scopes } from '../../access/tokens.ts'
import type { Backup as BackupRecord } from '../../backup/backup.ts'
import type { PurchaseState } from '../../domain/purchase.ts'
import { Failure } from '../../errors.ts'
import type { Inbox } from '../../inbox/receive.ts'
import { readAlerts, type StandingAlert } from '../../observe/alerts.ts'
import { readStanding, type Standing } from '../../observe/standing.ts'
import { unfreeze } from '../../ordering/actions.ts'
import { freeze } from '../../ordering/freeze.ts'
import { redeliver } from '../../ordering/fulfil.ts'
import { pausesBuying } from '../../ordering/unreadable-answers.ts'
import { need } from '../../storage/database.ts'
import { currentFreeze } from '../../storage/freezes.ts'
import { listOutbox, type OutboxRow, outboxById } from '../../storage/outbox.ts'
import { allTokens } from '../../storage/tokens.ts'
import type { Supplier } from '../../supplier/client.ts'
import { choice, freezeBody, paging, tokenBody, unfreezeBody } from '../input.ts'
import { type ApiContext, type Operation, ok, operation } from '../operation.ts'
import { Reading } from './reconcile.ts'
import { CallbackSecretStanding, callbackSecretOf } from './stores.ts'
import { at, byId, count, counts, maybeAt, oneOf, page, pageOf, view, words } from './views.ts'

const Effect = view(
  z
    .object({
      id: z.string(),
      kind: z.string(),
      type: z.string(),
      store: words,
      orderId: words,
      state: z.string(),
      attempts: count,
      notBefore: at,
      lastError: words,
      createdAt: at,
      doneAt: maybeAt,
      about: z.record(z.string(), z.unknown()).meta({ description: 'What it is about: ids and notes, never keys' }),
    })
    .meta({ id: 'Effect' }),
  (row: OutboxRow) => ({ ...row, about: { ...row.payload } }),
)

const cause = {
  reason: z.string(),
  actor: z.string(),
  at,
  purchaseId: z
    .string()
    .nullish()
    .transform((id) => id ?? null)
    .pipe(words.meta({ description: 'The purchase that a duplicate charge was found for; null for another cause' })),
}
export const Freeze = z
  .object({
    ...cause,
    causes: z
      .array(z.object({ ...cause, id: z.string().meta({ description: 'Names it when it is lifted' }) }))
      .meta({ description: 'All of them, the oldest first; the first one is the freeze itself' }),
  })
  .meta({ id: 'Freeze' })
const FreezeNow = z.object({ freeze: Freeze.nullable() }).meta({ id: 'FreezeNow' })

const Status = view(
  z
    .object({
      balance: Reading.nullable(),
      tier: words,
      limits: z.unknown().meta({ description: 'As the supplier states them' }),
      freeze: Freeze.nullable(),
      counts: z.object({
        purchases: counts.meta({ description: 'By state' }),
        listings: counts.meta({ description: 'Of all stores, by state' }),
        held: counts.meta({ description: 'By what holds them' }),
        offers: z.object({ total: count, inStock: count }),
        deliveries: counts,
        callbacks: counts,
        alerts: counts,
        discrepancies: counts,
      }),
      stores: z
        .array(z.object({ store: z.string(), listings: counts, callbackSecret: CallbackSecretStanding }))
        .meta({ description: 'Each configured store with its listings by state' }),
      freshness: z.object({
        catalogueAt: maybeAt,
        catalogueFailure: z
          .object({ run: z.string(), at: maybeAt, error: words })
          .nullable()
          .meta({ description: 'The last sync run that ended, if it failed' }),
        balanceAt: maybeAt,
      }),
      sweep: z
        .object({ finishedAt: maybeAt, orders: count, orphans: count, foreign: count, missing: count })
        .nullable()
        .meta({ description: "The last complete comparison of the supplier's orders with our purchases" }),
      unreadable: z
        .array(
          z.object({
            request: z.string().meta({ description: 'Method and path, such as GET /orders' }),
            field: z.string().meta({ description: 'The path at which the answer cannot be read' }),
            setting: z.string().meta({ description: 'The setting of the dialect that holds the path' }),
            value: z.string().meta({ description: 'The value, shortened; never a secret' }),
            requestId: words,
            since: at,
            pausesBuying: z.boolean(),
          }),
        )
        .meta({ description: 'Kinds of supplier answers that cannot be read, each until one of its kind can' }),
      supplier: z
        .object({
          unreachableSince: maybeAt.meta({ description: 'The first request since which none was answered' }),
          error: words.meta({ description: 'How that request failed' }),
          lastAnswerAt: maybeAt,
          waiting: count.meta({ description: 'Purchases whose next step is a request to the supplier' }),
        })
        .meta({ description: 'Whether the supplier answers' }),
      refusedDeliveries: z
        .object({
          since: at.meta({ description: 'The start of the service' }),
          total: count,
          lastAt: maybeAt,
          reasons: z.record(z.string(), count).meta({
            description: 'How many for each reason, such as `mismatch` of the signature, answered 401, and `too_large`',
          }),
        })
        .meta({ description: 'Deliveries that were refused: 401 and the like. Nothing of them is stored' }),
      alerts: z
        .array(
          z.object({
            id: z.string(),
            type: z.string().meta({ description: 'Name of the alert', examples: ['freeze'] }),
            subject: words.meta({ description: 'The id of what it is about; null for the service as a whole' }),
            note: words,
            advice: z.string().meta({ description: 'What to do' }),
            command: z.string().meta({ description: 'The command to begin with', examples: ['quayside reviews'] }),
            at,
            state: z.enum(['open', 'ended']).meta({ description: 'Ended when what it reports is over' }),
          }),
        )
        .meta({
          description: 'Alerts that are open, and those of the last day that ended by themselves; newest first',
        }),
      paused: z
        .array(z.object({ store: z.string(), until: at, error: words }))
        .meta({ description: 'Stores that refused their listings; nothing is pushed to them until then' }),
    })
    .meta({ id: 'Status' }),
  ({
    standing,
    stores,
    supplier,
    refused,
    alerts,
  }: {
    standing: Standing
    stores: string[]
    supplier: Pick<Supplier, 'unreadable' | 'reach'>
    refused: ReturnType<Inbox['refused']>
    alerts: StandingAlert[]
  }) => {
    const { balance, purchases, offers, deliveries, outbox, discrepancies, listings, endedSync, outage } = standing
    const byState = (rows: Total<{ state: string }>[]) => tally(rows, ({ state }) => state)
    return {
      balance: balance ?? null,
      tier: balance?.tier ?? null,
      limits: balance?.limits ?? null,
      freeze: standing.freeze ?? null,
      counts: {
        purchases: byState(purchases),
        listings: byState(listings),
        held: tally(purchases, ({ holdReason }) => holdReason),
        offers,
        deliveries: byState(deliveries),
        callbacks: byState(outbox.filter(({ kind }) => kind === 'callback')),
        alerts: byState(outbox.filter(({ kind }) => kind === 'alert')),
        discrepancies: tally(discrepancies, ({ kind }) => kind),
      },
      stores: stores.map((store) => ({
        store,
        listings: byState(listings.filter((row) => row.store === store)),
        callbackSecret: callbackSecretOf(standing.callbackSecrets, store),
      })),
      freshness: {
        catalogueAt: standing.completeSync?.finishedAt ?? null,
        catalogueFailure:
          endedSync?.state === 'failed'
            ? { run: endedSync.id, at: endedSync.finishedAt, error: endedSync.error }
            : null,
        balanceAt: balance?.readAt ?? null,
      },
      sweep: standing.sweep ?? null,
      unreadable: supplier.unreadable().map((answer) => ({
        ...answer,
        value: answer.seen,
        requestId: answer.requestId ?? null,
        pausesBuying: pausesBuying(answer),
      })),
      supplier: {
        unreachableSince: outage?.beganAt ?? null,
        error: outage?.error ?? null,
        // A service that was just started has the balance from before.
        lastAnswerAt: supplier.reach().answered?.lastAt ?? balance?.readAt ?? null,
        waiting: purchases
          .filter(({ state, holdReason }) => waitsForSupplier.includes(state) && holdReason === null)
          .reduce((sum, { total }) => sum + total, 0),
      },
      refusedDeliveries: refusedView(refused),
      alerts: alerts.map(({ isOver, ...alert }) => ({
        ...alert,
        state: isOver ? ('ended' as const) : ('open' as const),
      })),
      paused: standing.publishing.flatMap(({ store, pausedUntil, lastError }) =>
        pausedUntil === null ? [] : [{ store, until: pausedUntil, error: lastError }],
      ),
    }
  },
)

function refusedView({ since, reasons }: ReturnType<Inbox['refused']>) {
  const kinds = [...reasons].toSorted(([, a], [, b]) => b.count - a.count)
  return {
    since,
    total: kinds.reduce((sum, [, { count }]) => sum + count, 0),
    lastAt: kinds.length === 0 ? null : Math.max(...kinds.map(([, { lastAt }]) => lastAt)),
    reasons: Object.fromEntries(kinds.map(([reason, { count }]) => [reason, count])),
  }
}

/** States in which a purchase that is not held needs the supplier next. */
const waitsForSupplier: readonly PurchaseState[] = ['planned', 'waiting', 'sending', 'unknown', 'accepted']

type Total<R> = R & { total: number }

/** Sums by name; rows without a name do not count. */
function tally<R>(rows: Total<R>[], name: (row: R) => string | null): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const row of rows) {
    const key = name(row)
    if (key !== null) sums[key] = (sums[key] ?? 0) + row.total
  }
  return sums
}

const effectStates = ['due', 'done', 'dead'] as const
const effectKinds = ['callback', 'alert'] as const

/** The service as a whole: its status, what is queued for stores and operators, and the freeze. */
export function serviceOperations({
  ordering,
  stores,
  inbox,
  backups,
}: Pick<ApiContext, 'ordering' | 'stores' | 'inbox' | 'backups'>): Operation[] {
  const { db } = ordering
  const viewer = { people: 'viewer' } as const
  const operator = { people: 'operator' } as const
  const freezeNow = async () => ({ freeze: (await currentFreeze(db)) ?? null })
  return [
    operation({
      name: 'viewStatus',
      method: 'get',
      path: '/status',
      allowed: viewer,
      answer: Status,
      summary: 'The state of the service: whether the supplier answers, balance, freeze, counts, freshness, alerts.',
      success: { 200: 'As of now' },
      async handle() {
        const { supplier, now } = ordering
        const standing = await readStanding(db)
        const service = {
          supplier,
          clockSuspect: inbox.clockSuspect(),
          lastBackupAt: () => backups.list().find(({ header }) => header)?.header?.madeAt,
        }
        const alerts = await readAlerts(db, standing, service, now())
        return ok({ standing, stores: stores.map(byId), supplier, refused: inbox.refused(), alerts })
      },
    }),
    operation({
      name: 'listOutbox',
      method: 'get',
      path: '/outbox',
      allowed: viewer,
      summary: 'Callbacks and alerts, queued or sent, newest first.',
      query: {
        ...paging,
        state: choice(effectStates, 'Only messages in this state'),
        kind: choice(effectKinds, 'Only callbacks to stores, or only alerts to operators'),
      },
      answer: page(Effect),
      success: { 200: 'A page of the outbox' },
      async handle({ query: { limit, ...filter } }) {
        const rows = await db.query(listOutbox({ ...filter, limit: limit + 1 }))
        return ok(pageOf(rows, limit, byId))
      },
    }),
    operation({
      name: 'redeliverEffect',
      method: 'post',
      path: '/outbox/:id/redeliver',
      allowed: operator,
      summary: 'Send a waiting or dead callback again at once; its attempts start over.',
      answer: Effect,
      success: { 200: 'The callback, due now' },
      failures: { 404: 'unknown id, or already done' },
      async handle({ caller, path }) {
        await redeliver(ordering, path.id ?? '', caller.actor)
        return ok(await need(db, outboxById(path.id ?? ''), 'outbox row', path.id ?? ''))
      },
    }),
    operation({
      name: 'freeze',
      method: 'post',
      path: '/freeze',
      allowed: operator,
      body: freezeBody,
      summary: 'Stop all buying. Reads continue; a second freeze is a second cause.',
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
      summary: 'Lift causes of the freeze. Buying resumes once none is left; a later cause stays.',
      answer: FreezeNow,
      success: { 200: 'Lifted; the freeze that remains, or null' },
      failures: {
        409: 'none of these causes stands and another does, or orders are not reattached yet after a restore, or a new database was not compared yet',
      },
      async handle({ caller, body }) {
        await unfreeze(ordering, caller.actor, body.causes)
        return ok(await freezeNow())
      },
    }),
  ]
}

const token = z.object({
  id: z.string(),
  name: z.string(),
  hint: z.string(),
  role: oneOf(roles),
  store: words,
  scopes: z.array(oneOf(scopes)),
  createdAt: at,
  expiresAt: maybeAt,
  revokedAt: maybeAt,
})
const Token = token.meta({ id: 'Token' })
const NewToken = token.extend({ token: z.string().meta({ description: 'Shown this once' }) }).meta({ id: 'NewToken' })

/** Tokens: admins create, list and revoke them. */
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
      handle: async () => ok({ items: await db.query(allTokens()), next: null }),
    }),
    operation({
      name: 'createToken',
      method: 'post',
      path: '/tokens',
      allowed: admin,
      body: tokenBody,
      summary: 'Create a token. Its text is in this answer and never shown again.',
      answer: NewToken,
      success: { 201: 'Created' },
      async handle({ caller, body: { name, role, store = null, scopes = [], expiresInDays = null } }) {
        if (store !== null && !stores.some(({ id }) => id === store)) {
          const message = `must be one of ${stores.map(({ id }) => id).join(', ')}`
          throw new Failure('invalid', `store: ${message}`, { fields: [{ field: 'store', message }] })
        }
        const wanted = { name, role, store, scopes: [...new Set(scopes)], expiresInDays }
        const { token, row } = await createToken(context, wanted, caller.actor)
        return { status: 201, data: { ...row, token: token.reveal() } }
      },
    }),
    operation({
      name: 'revokeToken',
      method: 'delete',
      path: '/tokens/:id',
      allowed: admin,
      summary: 'Revoke a token at once. The owner token cannot be revoked: it changes with each start.',
      answer: Token,
      success: { 200: 'Revoked' },
      failures: { 404: 'unknown id, or already revoked' },
      handle: async ({ caller, path }) => ok(await revokeToken(context, path.id ?? '', caller.actor)),
    }),
  ]
}

const Backup = view(
  z
    .object({
      file: z.string().meta({ description: 'Name in the folder of the backups' }),
      bytes: count,
      readable: z.boolean().meta({ description: 'False for a file that is no backup of this kind' }),
      madeAt: maybeAt,
      epoch: z
        .int()
        .nullable()
        .meta({ description: '1 for a database that was never restored; one more for each restore' }),
      stores: z.array(z.string()).meta({ description: 'Permanent ids of the stores that it holds orders of' }),
      keyName: words.meta({ description: 'The key-encryption key that it needs', examples: ['3f9a01c2'] }),
    })
    .meta({ id: 'Backup' }),
  ({ file, bytes, header }: BackupRecord) => ({
    file,
    bytes,
    readable: header !== undefined,
    stores: header?.stores ?? [],
    madeAt: header?.madeAt ?? null,
    epoch: header?.epoch ?? null,
    keyName: header?.keyName ?? null,
  }),
)
const BackupList = z.object({ folder: z.string(), items: z.array(Backup), next: z.null() })
const Made = z.object({ folder: z.string(), backup: Backup })
const Rotated = z.object({
  before: z.string().meta({ description: 'Name of the previous key-encryption key' }),
  after: z.string().meta({ description: 'Name of the key that the service needs from its next start on' }),
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
      summary: 'The backups, newest first.',
      success: { 200: 'All of them' },
      handle: async () => ok({ folder: backups.folder, items: backups.list(), next: null }),
    }),
    operation({
      name: 'makeBackup',
      method: 'post',
      path: '/backups',
      allowed: { people: 'operator' },
      answer: Made,
      summary: 'Make a backup now: copied, checked, encrypted, and on the disk before the answer.',
      success: { 201: 'Made' },
      failures: { 409: 'another backup is being made', 503: 'none could be made; no file is left' },
      handle: async ({ caller }) => ({
        status: 201,
        data: { folder: backups.folder, backup: await backups.make(caller.actor) },
      }),
    }),
    operation({
      name: 'rotateKeys',
      method: 'post',
      path: '/keys/rotate',
      allowed: { people: 'admin' },
      answer: Rotated,
      summary: 'Rotate to the next key-encryption key, which the service reads from its own secrets.',
      success: { 200: 'Rotated; the service needs the new key from its next start on' },
      failures: { 409: 'there is no next key, or it is the one in use' },
      handle: async ({ caller }) => ok(await keys.rotate(caller.actor)),
    }),
  ]
}
