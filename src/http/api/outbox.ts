import { z } from 'zod'
import { effectLabels, effectStates } from '../../domain/labels.ts'
import { redeliver } from '../../ordering/fulfil.ts'
import { need } from '../../storage/database.ts'
import { listOutbox, type OutboxRow, outboxById } from '../../storage/outbox.ts'
import { referencesOfOrders } from '../../storage/store-orders.ts'
import { choice, paging } from '../input.ts'
import { type ApiContext, ok, operation } from '../operation.ts'
import { at, byId, count, enumeration, maybeAt, page, pageOf, view, words } from './views.ts'

const shape = z
  .object({
    id: z.string(),
    kind: z.string(),
    type: z.string(),
    store: words,
    orderId: words,
    state: enumeration('EffectState', effectLabels),
    attempts: count,
    notBefore: at,
    lastError: words,
    createdAt: at,
    doneAt: maybeAt,
    about: z.record(z.string(), z.unknown()).meta({ description: 'What it is about: ids and notes, never keys' }),
  })
  .meta({ id: 'Effect' })
const withAbout = <R extends OutboxRow>(row: R) => ({ ...row, about: { ...row.payload } })
export const Effect = view(shape, withAbout<OutboxRow>)

const ListedEffect = view(
  shape
    .extend({ reference: words.meta({ description: "The store's own number of the order" }) })
    .meta({ id: 'ListedEffect' }),
  withAbout<OutboxRow & { reference: string | null }>,
)
export type EffectView = z.output<typeof ListedEffect>

const effectKinds = ['callback', 'alert'] as const

/** What is queued for stores and operators. */
export function outboxOperations({ ordering }: Pick<ApiContext, 'ordering'>) {
  const { db } = ordering
  return [
    operation({
      name: 'listOutbox',
      method: 'get',
      path: '/outbox',
      allowed: { people: 'viewer' },
      summary: 'Callbacks and alerts, queued or sent, newest first.',
      query: {
        ...paging,
        state: choice(effectStates, 'Only messages in this state'),
        kind: choice(effectKinds, 'Only callbacks to stores, or only alerts to operators'),
      },
      answer: page(ListedEffect),
      success: { 200: 'A page of the outbox' },
      async handle({ query: { limit, ...filter } }) {
        const rows = await db.query(listOutbox({ ...filter, limit: limit + 1 }))
        const ids = [...new Set(rows.flatMap(({ orderId }) => orderId ?? []))]
        const orders = ids.length === 0 ? [] : await db.query(referencesOfOrders(ids))
        const references = new Map(orders.map(({ id, reference }) => [id, reference]))
        const listed = rows.map((row) => ({ ...row, reference: references.get(row.orderId ?? '') ?? null }))
        return ok(pageOf(listed, limit, byId))
      },
    }),
    operation({
      name: 'redeliverEffect',
      method: 'post',
      path: '/outbox/:id/redeliver',
      allowed: { people: 'operator' },
      summary: 'Send a waiting or dead callback again at once; its attempts start over.',
      answer: Effect,
      success: { 200: 'The callback, due now' },
      failures: { 404: 'unknown id, or already done' },
      async handle({ caller, path }) {
        await redeliver(ordering, path.id ?? '', caller.actor)
        return ok(await need(db, outboxById(path.id ?? ''), 'outbox row', path.id ?? ''))
      },
    }),
  ]
}
