import { z } from 'zod'
import { effectLabels, effectStates } from '../../domain/labels.ts'
import { redeliver } from '../../ordering/fulfil.ts'
import { need } from '../../storage/database.ts'
import { listOutbox, type OutboxRow, outboxById } from '../../storage/outbox.ts'
import { referencesOfOrders } from '../../storage/store-orders.ts'
import { choice, ofStore } from '../input.ts'
import { type ApiContext, ok, operation, operator, viewer } from '../operation.ts'
import { listOperation } from './list-operation.ts'
import { at, component, count, enumeration, maybeAt, view, words } from './views.ts'

const shape = component('Effect', {
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
  about: z.record(z.string(), z.unknown()).describe('What it is about: ids and notes, never keys'),
})
const withAbout = <R extends OutboxRow>(row: R) => ({ ...row, about: { ...row.payload } })
export const Effect = view(shape, withAbout<OutboxRow>)

const ListedEffect = view(
  component('ListedEffect', { ...shape.shape, reference: words.describe("The store's own number of the order") }),
  withAbout<OutboxRow & { reference: string | null }>,
)

const effectKinds = ['callback', 'alert'] as const

export function outboxOperations({ ordering }: ApiContext) {
  const { db } = ordering
  return {
    listOutbox: listOperation({
      route: 'GET /outbox',
      allowed: viewer,
      summary: 'Callbacks and alerts, queued or sent, newest first.',
      filters: {
        state: choice(effectStates, 'Only messages in this state'),
        kind: choice(effectKinds, 'Only callbacks to stores, or only alerts to operators'),
        store: ofStore,
      },
      item: ListedEffect,
      success: { 200: 'A page of the outbox' },
      db,
      read: listOutbox,
      show: async (rows) => {
        const ids = [...new Set(rows.flatMap(({ orderId }) => orderId ?? []))]
        const orders = ids.length === 0 ? [] : await db.query(referencesOfOrders(ids))
        const references = new Map(orders.map(({ id, reference }) => [id, reference]))
        return rows.map((row) => ({ ...row, reference: references.get(row.orderId ?? '') ?? null }))
      },
    }),
    redeliverEffect: operation({
      route: 'POST /outbox/:id/redeliver',
      allowed: operator,
      summary: 'Send a waiting or dead callback again at once; its attempts start over.',
      query: { state: choice(['dead'], 'Only if it has used up its attempts, as it was shown') },
      answer: Effect,
      success: { 200: 'The callback, due now' },
      failures: { 404: 'unknown id, or already done', 409: '`changed`: it is not in that state any more' },
      async handle({ caller, path, query: { state } }) {
        await redeliver(ordering, path.id, caller.actor, state)
        return ok(await need(db, outboxById(path.id), 'outbox row', path.id))
      },
    }),
  }
}
