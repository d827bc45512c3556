import { z } from 'zod'
import { assertAllowed } from '../../access/tokens.ts'
import { deliveryLabels, deliveryStates } from '../../domain/labels.ts'
import { bodyDeleted, replay, reveal as revealBody } from '../../inbox/process.ts'
import { supplierSourceId } from '../../inbox/sources.ts'
import { testOutcomes } from '../../inbox/webhooks.ts'
import { need } from '../../storage/database.ts'
import { deliveryById, listDeliveries } from '../../storage/deliveries.ts'
import { allWebhooks, type Webhook as WebhookRow } from '../../storage/webhooks.ts'
import { plainLength } from '../../vault/vault.ts'
import { addedWebhookBody, choice, eventName, queryFlag, replayBody, testedWebhookBody, webhookBody } from '../input.ts'
import { type ApiContext, admin, created, ok, operation, operator, viewer } from '../operation.ts'
import { listOperation, page } from './list-operation.ts'
import { at, component, count, enumeration, finding, maybeAt, words } from './views.ts'

const State = enumeration('DeliveryState', deliveryLabels)

export const Delivery = component('Delivery', {
  id: z.string(),
  source: z.string(),
  deliveryId: z.string(),
  state: State,
  event: words,
  supplierOrderId: words,
  purchaseId: words,
  signedAt: at,
  receivedAt: at,
  attempts: count,
  notBefore: at,
  lastError: words,
  finishedAt: maybeAt,
})
const DeliveryDetail = component('DeliveryDetail', {
  ...Delivery.shape,
  bytes: count
    .nullable()
    .describe('Length of the body; null: it was deleted after thirty days, that of a store after seven'),
  body: z.string().optional().describe('As received; only with reveal=true'),
})
const Replayed = z.object({
  replayed: z.array(z.string()).describe('Ids of the deliveries that are stored again'),
  left: z.array(z.string()).describe('Ids of the others: they or their bodies are deleted'),
})

export function deliveryOperations({ ordering }: ApiContext) {
  const { db } = ordering
  const found = (id = '') => need(db, deliveryById(id), 'delivery', id)
  return {
    listDeliveries: listOperation({
      route: 'GET /deliveries',
      allowed: viewer,
      summary: 'Deliveries of the supplier, newest first.',
      filters: { state: choice(deliveryStates, 'Only deliveries in this state'), event: eventName },
      item: Delivery,
      success: { 200: 'A page of deliveries' },
      db,
      read: listDeliveries,
    }),
    viewDelivery: operation({
      route: 'GET /deliveries/:id',
      allowed: viewer,
      summary: 'One delivery. An admin sees its body with reveal=true, which the audit records.',
      query: { reveal: queryFlag('Show the body; for admins') },
      answer: DeliveryDetail,
      success: { 200: 'The delivery' },
      failures: { 404: 'unknown id', 409: '`body_deleted`: there is no body to reveal any more' },
      async handle({ caller, path, query: { reveal } }) {
        if (reveal) assertAllowed(caller, admin)
        const row = await found(path.id)
        const delivery = { ...row, bytes: row.ciphertext.length === 0 ? null : plainLength(row.ciphertext) }
        if (!reveal) return ok(delivery)
        return ok({ ...delivery, body: await revealBody(ordering, delivery.id, caller.actor) })
      },
    }),
    replayDelivery: operation({
      route: 'POST /deliveries/:id/replay',
      allowed: operator,
      summary: 'Put a delivery back into the inbox; replaying one that was applied is harmless.',
      answer: Delivery,
      success: { 200: 'The delivery, stored again' },
      failures: { 404: 'unknown id', 409: '`body_deleted`: it cannot be read again' },
      async handle({ caller, path }) {
        const { id } = await found(path.id)
        if ((await replay(ordering, [id], caller.actor)).length === 0) throw bodyDeleted()
        return ok(await found(id))
      },
    }),
    replayDeliveries: operation({
      route: 'POST /deliveries/replay',
      allowed: operator,
      body: replayBody,
      summary: 'Put many deliveries back into the inbox at once; replaying one that was applied is harmless.',
      answer: Replayed,
      success: { 200: 'Which are stored again, and which are not' },
      async handle({ caller, body: { ids } }) {
        const replayed = await replay(ordering, ids, caller.actor)
        return ok({ replayed, left: ids.filter((id) => !replayed.includes(id)) })
      },
    }),
  }
}

const Webhook = component('Webhook', {
  id: z.string(),
  url: z.string(),
  events: z.array(z.string()),
  createdAt: at,
  state: z
    .enum(['live', 'replaced', 'retired'])
    .describe('`replaced`: another one took over, both are valid; `retired`: its deliveries have no effect'),
  retiredAt: maybeAt,
  received: count.describe('Authentic deliveries that came through it since the service started'),
  lastReceivedAt: maybeAt,
})

/** The operations of our webhooks at the supplier. Signing secrets are created, rotated and retired, and never shown. */
export function webhookOperations({ ordering: { db }, inbox, webhooks }: ApiContext) {
  const viewAll = async () => {
    const rows = await db.query(allWebhooks())
    const newest = rows.findLast(({ retiredAt }) => retiredAt === null)
    const traffic = inbox.traffic()
    return rows.map((row) => {
      const state = row.retiredAt !== null ? 'retired' : row === newest ? 'live' : 'replaced'
      const { count = 0, lastAt = null } = traffic.get(supplierSourceId(row.path)) ?? {}
      return { ...row, state, received: count, lastReceivedAt: lastAt } as const
    })
  }
  const view = async ({ id }: Pick<WebhookRow, 'id'>) => {
    const shown = (await viewAll()).find((one) => one.id === id)
    if (!shown) throw new Error(`the webhook ${id} went while it was shown`)
    return shown
  }
  const change = { needsWorker: true, allowed: admin } as const
  const creating = {
    400: 'no url, and no public address is configured',
    422: 'the supplier refused',
    503: 'it may exist, and its secret was lost: the check replaces it',
  }
  const byHand = "`made_by_hand`: they are made in the supplier's dashboard, then added"

  return {
    listWebhooks: operation({
      route: 'GET /webhooks',
      allowed: viewer,
      summary: 'Webhooks of ours at the supplier.',
      answer: page(Webhook),
      success: { 200: 'All of them' },
      handle: async () => ok({ items: await viewAll(), next: null }),
    }),
    createWebhook: operation({
      route: 'POST /webhooks',
      ...change,
      body: webhookBody,
      summary: 'Create a webhook at the supplier; its secret is kept and never shown.',
      answer: Webhook,
      success: { 201: 'Created' },
      failures: { ...creating, 409: byHand },
      handle: async ({ caller, body }) => created(await view(await webhooks.create(body.url, caller.actor))),
    }),
    addWebhook: operation({
      route: 'POST /webhooks/add',
      ...change,
      body: addedWebhookBody,
      summary: "Keep the secret of a webhook that was made in the supplier's dashboard; it is never shown.",
      answer: Webhook,
      success: { 201: 'Added, now or before; its address is the one to enter in the dashboard' },
      failures: { 400: 'a secret that cannot be used, or no url and no public address' },
      handle: async ({ caller, body }) => created(await view(await webhooks.add(body, caller.actor))),
    }),
    rotateWebhook: operation({
      route: 'POST /webhooks/rotate',
      ...change,
      body: webhookBody,
      summary: 'Take a new signing secret into use, while the old one stays valid until it is retired.',
      answer: z.object({ webhook: Webhook, replaces: z.array(z.string()) }),
      success: { 201: 'Created; remove those in `replaces` at the supplier, then retire them' },
      failures: { ...creating, 409: `\`no_webhook\`: there is none yet; ${byHand}` },
      async handle({ caller, body }) {
        const { webhook, replaces } = await webhooks.rotate(body.url, caller.actor)
        return created({ webhook: await view(webhook), replaces })
      },
    }),
    retireWebhook: operation({
      route: 'POST /webhooks/:id/retire',
      ...change,
      summary: 'Take the secret of a replaced webhook out of use: later deliveries are counted and have no effect.',
      answer: Webhook,
      success: { 200: 'Retired, now or before' },
      failures: { 404: 'unknown id', 409: '`not_replaced`: no later webhook has taken over' },
      handle: async ({ caller, path }) => ok(await view(await webhooks.retire(path.id, caller.actor))),
    }),
    checkWebhooks: operation({
      route: 'POST /webhooks/check',
      needsWorker: true,
      allowed: operator,
      summary: "Compare the supplier's webhooks with ours; one whose secret is missing here is reported and replaced.",
      answer: z.object({
        unheld: z
          .array(z.object({ id: z.string(), url: z.string(), seenAt: at, replacedBy: z.string().nullable() }))
          .describe('They lead here with a secret that is missing here: remove them at the supplier'),
        gone: z.array(z.string()).describe('Ids of ours that the supplier no longer lists'),
      }),
      success: { 200: 'As of now' },
      handle: async () => ok(await webhooks.check()),
    }),
    testWebhook: operation({
      route: 'POST /webhooks/test',
      allowed: operator,
      body: testedWebhookBody,
      summary:
        'Send a delivery, signed with the secret that is held, to the public address of a webhook. It has no effect and is stored nowhere.',
      answer: z.object({
        webhook: z.string(),
        url: z.string().describe('Where it was sent'),
        healthy: z.boolean().describe('It arrived here and was verified'),
        outcome: z.enum(testOutcomes),
        status: z.int().nullable().describe('Of the HTTP answer; null: there was none'),
        findings: z.array(finding),
      }),
      success: { 200: 'What became of it' },
      failures: { 400: creating[400], 404: 'unknown id', 409: '`no_webhook`: there is none, or it is retired' },
      handle: async ({ caller, body }) => ok(await webhooks.test(body, caller.actor)),
    }),
  }
}

const CaptureState = component('CaptureState', {
  closesAt: at.describe('Until then refused deliveries are kept'),
  keptUntil: at.describe('Then they are deleted'),
  left: count.describe('How many more are kept'),
})
const entry = { id: z.string(), path: z.string(), reason: z.string(), receivedAt: at }
const CaptureList = z.object({
  open: CaptureState.nullable().describe('The capture that is open'),
  items: z.array(z.object(entry)),
})
const CaptureDetail = z.object({
  ...entry,
  headers: z.record(z.string(), z.array(z.string())),
  body: z.string().describe('The bytes as received, in base64'),
  signature: z.record(z.string(), z.unknown()).nullable().describe('How it verifies under a held secret'),
})

/** The operations of refused deliveries, which are kept for a while so that people can fit a dialect. */
export function dialectOperations({ captures }: ApiContext) {
  return {
    startCapture: operation({
      route: 'POST /captures',
      allowed: admin,
      answer: CaptureState,
      summary: 'Keep the next refused deliveries, at most 10 in 15 minutes, to see how they are signed.',
      success: { 201: 'Started; deliveries kept before are deleted' },
      handle: async ({ caller }) => created(await captures.start(caller.actor)),
    }),
    listCaptures: operation({
      route: 'GET /captures',
      allowed: admin,
      answer: CaptureList,
      summary: 'The kept deliveries, oldest first.',
      success: { 200: 'All of them' },
      handle: async () => ok({ open: captures.open() ?? null, items: await captures.list() }),
    }),
    viewCapture: operation({
      route: 'GET /captures/:id',
      allowed: admin,
      answer: CaptureDetail,
      summary: 'One refused delivery as received, and how it is signed; the audit records the view.',
      success: { 200: 'The delivery' },
      failures: { 404: 'unknown id, or deleted already' },
      handle: async ({ caller, path: { id } }) => ok(await captures.show(id, caller.actor)),
    }),
  }
}
