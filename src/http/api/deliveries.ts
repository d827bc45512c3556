import { z } from 'zod'
import type { CaptureEntry } from '../../inbox/capture.ts'
import type { Traffic } from '../../inbox/receive.ts'
import { supplierSourceId } from '../../inbox/sources.ts'
import { allWebhooks, type Webhook as WebhookRow } from '../../storage/webhooks.ts'
import { webhookBody } from '../input.ts'
import { type ApiContext, type Operation, ok, operation } from '../operation.ts'
import { iso, maybeIso, page } from './views.ts'

const at = z.string().meta({ format: 'date-time', examples: ['2026-03-01T09:30:00.000Z'] })

const Webhook = z.object({
  id: z.string(),
  url: z.string(),
  events: z.array(z.string()),
  createdAt: at,
  state: z.enum(['live', 'replaced', 'retired']).meta({
    description: '`replaced`: another one took over, both are valid; `retired`: its deliveries have no effect',
  }),
  retiredAt: at.nullable(),
  received: z.int().min(0).meta({ description: 'Authentic deliveries that came through it since the service started' }),
  lastReceivedAt: at.nullable(),
})

/** @param newest the one that is not replaced */
function webhookView(row: WebhookRow, newest: string | undefined, traffic: Traffic | undefined) {
  const { id, url, events, createdAt, retiredAt } = row
  return {
    id,
    url,
    events,
    createdAt: iso(createdAt),
    retiredAt: maybeIso(retiredAt),
    state: retiredAt !== null ? 'retired' : id === newest ? 'live' : 'replaced',
    received: traffic?.count ?? 0,
    lastReceivedAt: traffic ? iso(traffic.lastAt) : null,
  } satisfies z.infer<typeof Webhook>
}

/** Our webhooks at the supplier: signing secrets come, are rotated and go, and are never shown. */
export function webhookOperations({
  ordering: { db },
  inbox,
  webhooks,
}: Pick<ApiContext, 'ordering' | 'inbox' | 'webhooks'>): Operation[] {
  const viewer = { people: 'viewer' } as const
  const admin = { people: 'admin' } as const
  const viewAll = async () => {
    const rows = await db.query(allWebhooks())
    const newest = rows.findLast(({ retiredAt }) => retiredAt === null)?.id
    const traffic = inbox.traffic()
    return rows.map((row) => webhookView(row, newest, traffic.get(supplierSourceId(row.path))))
  }
  const view = async ({ id }: WebhookRow) => {
    const shown = (await viewAll()).find((one) => one.id === id)
    if (!shown) throw new Error(`the webhook ${id} went while it was shown`)
    return shown
  }
  const creating = {
    400: 'no url, and no public address is configured',
    422: 'the supplier refused',
    503: 'it may have been made, and its secret was lost: the check replaces it',
  }

  return [
    operation({
      name: 'listWebhooks',
      method: 'get',
      path: '/webhooks',
      allowed: viewer,
      summary: 'Webhooks of ours at the supplier.',
      answer: page(Webhook),
      success: { 200: 'All of them' },
      handle: async () => ok({ items: await viewAll(), next: null }),
    }),
    operation({
      name: 'createWebhook',
      method: 'post',
      path: '/webhooks',
      allowed: admin,
      body: webhookBody,
      summary: 'Create a webhook at the supplier; its secret is kept and never shown.',
      answer: Webhook,
      success: { 201: 'Created' },
      failures: creating,
      handle: async ({ caller, body }) => ({
        status: 201,
        data: await view(await webhooks.create(body.url, caller.actor)),
      }),
    }),
    operation({
      name: 'rotateWebhook',
      method: 'post',
      path: '/webhooks/rotate',
      allowed: admin,
      body: webhookBody,
      summary: 'Take a new signing secret into use, beside the old one, which stays valid until it is retired.',
      answer: z.object({ webhook: Webhook, replaces: z.array(z.string()) }),
      success: { 201: 'Created; `replaces` are to be removed at the supplier and then retired' },
      failures: { ...creating, 409: '`no_webhook`: there is none yet' },
      async handle({ caller, body }) {
        const { webhook, replaces } = await webhooks.rotate(body.url, caller.actor)
        return { status: 201, data: { webhook: await view(webhook), replaces } }
      },
    }),
    operation({
      name: 'retireWebhook',
      method: 'post',
      path: '/webhooks/:id/retire',
      allowed: admin,
      summary: 'Take the secret of a replaced webhook out of use: what still comes is counted, and has no effect.',
      answer: Webhook,
      success: { 200: 'Retired, now or before' },
      failures: { 404: 'unknown id', 409: '`not_replaced`: no later webhook has taken over' },
      handle: async ({ caller, path }) => ok(await view(await webhooks.retire(path.id ?? '', caller.actor))),
    }),
    operation({
      name: 'checkWebhooks',
      method: 'post',
      path: '/webhooks/check',
      allowed: { people: 'operator' },
      summary: "Compare the supplier's webhooks with ours; one whose secret is not held is told and replaced.",
      answer: z.object({
        unheld: z
          .array(z.object({ id: z.string(), url: z.string(), seenAt: at, replacedBy: z.string().nullable() }))
          .meta({ description: 'They lead here under a secret that is not held: remove them at the supplier' }),
        gone: z.array(z.string()).meta({ description: 'Ids of ours that the supplier does not list any more' }),
      }),
      success: { 200: 'As of now' },
      async handle() {
        const { unheld, gone } = await webhooks.check()
        return ok({ unheld: unheld.map((one) => ({ ...one, seenAt: iso(one.seenAt) })), gone })
      },
    }),
  ]
}

const CaptureState = z.object({
  closesAt: at.meta({ description: 'Until then refused deliveries are taken' }),
  keptUntil: at.meta({ description: 'Then they are deleted' }),
  left: z.int().min(0).meta({ description: 'How many more are taken' }),
})
const entry = { id: z.string(), path: z.string(), reason: z.string(), receivedAt: at }
const CaptureList = z.object({
  open: CaptureState.nullable().meta({ description: 'The capture that goes on' }),
  items: z.array(z.object(entry)),
})
const CaptureDetail = z.object({
  ...entry,
  headers: z.record(z.string(), z.array(z.string())),
  body: z.string().meta({ description: 'The bytes as they came, in base64' }),
})

/** Refused deliveries, kept for a while for the person who fits a dialect. */
export function dialectOperations({ captures }: Pick<ApiContext, 'captures'>): Operation[] {
  const admin = { people: 'admin' } as const
  const path = '/captures'
  return [
    operation({
      name: 'startCapture',
      method: 'post',
      path,
      allowed: admin,
      answer: CaptureState,
      summary: 'Keep the next refused deliveries, at most 10 in 15 minutes, to find out how they are signed.',
      success: { 201: 'From now on; what was kept before is deleted' },
      handle: async ({ caller }) => ({ status: 201, data: stateView(await captures.start(caller.actor)) }),
    }),
    operation({
      name: 'listCaptures',
      method: 'get',
      path,
      allowed: admin,
      answer: CaptureList,
      summary: 'Refused deliveries that are kept, oldest first.',
      success: { 200: 'All of them' },
      async handle() {
        const open = captures.open()
        return ok({ open: open ? stateView(open) : null, items: (await captures.list()).map(entryView) })
      },
    }),
    operation({
      name: 'viewCapture',
      method: 'get',
      path: `${path}/:id`,
      allowed: admin,
      answer: CaptureDetail,
      summary: 'One refused delivery as it came, headers and body; the audit records it.',
      success: { 200: 'The delivery' },
      failures: { 404: 'unknown id, or deleted already' },
      async handle({ caller, path: { id = '' } }) {
        const { headers, body, ...rest } = await captures.show(id, caller.actor)
        return ok({ ...entryView(rest), headers, body })
      },
    }),
  ]
}

const stateView = (window: { closesAt: number; keptUntil: number; left: number }) => ({
  closesAt: iso(window.closesAt),
  keptUntil: iso(window.keptUntil),
  left: window.left,
})

const entryView = ({ id, path, reason, receivedAt }: CaptureEntry) => ({
  id,
  path,
  reason,
  receivedAt: iso(receivedAt),
})
