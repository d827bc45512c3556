import { z } from 'zod'
import type { Caller } from '../../access/tokens.ts'
import { withoutSecrets } from '../../config/settings-in-force.ts'
import { Failure } from '../../errors.ts'
import { storeWebhookUrl } from '../../inbox/webhooks.ts'
import { listingsByState } from '../../observe/status.ts'
import { audited } from '../../storage/evidence.ts'
import { allPublishing, countPublications, endPause } from '../../storage/publications.ts'
import { allCallbackSecrets, allStoreReadings, type CallbackSecret, readProofs } from '../../storage/stores.ts'
import { EXAMPLE_KEYS, examples, updateTypes } from '../../stores/examples.ts'
import { type ConfiguredStore, kindOf, storeKinds } from '../../stores/kinds.ts'
import { confirmMailBody, rotateSecretBody, testStoreBody, triggerBody } from '../input.ts'
import { type ApiContext, admin, configuredStore, created, ok, operation, operator, viewer } from '../operation.ts'
import { confirmMail, orderFindings, Proven, proofFindings, proofOf, proofShape } from './store-proof.ts'
import { testStore } from './store-test.ts'
import { at, component, count, counts, finding, maybeAt, words } from './views.ts'

/** Which secret signs callbacks to a store, without the secret itself. */
export const CallbackSecretStanding = component('CallbackSecretStanding', {
  generation: z.int().min(1).describe('1: the one that `init` printed'),
  changedAt: maybeAt,
  previousUntil: maybeAt.describe('Until then the previous secret is valid too; may be in the past'),
})

/** Returns what is shown of a store's callback secret. @param rotations the rotations of all stores, the oldest first */
export function callbackSecretOf(rotations: readonly CallbackSecret[], store: string) {
  const newest = rotations.findLast((row) => row.store === store)
  return {
    generation: newest?.generation ?? 1,
    changedAt: newest?.createdAt ?? null,
    previousUntil: newest?.previousUntil ?? null,
  }
}

const StoreStanding = z.object({
  id: z.string(),
  name: z.string(),
  kind: z.enum(storeKinds.map(({ kind }) => kind)),
  kindLabel: z.string().meta({ description: 'The kind, for people', examples: storeKinds.map(({ label }) => label) }),
  address: z.string().describe('Where callbacks go, or the address of the shop; without credentials and query'),
  selling: z.enum(['on', 'paused', 'off']).describe('`paused`: it sells nothing; `off`: it is not live yet'),
  listings: counts.describe('By state'),
  publications: count.describe('Pages of changes that wait to be pushed to it'),
  pausedUntil: maybeAt.describe('It refused its listings: nothing is pushed to it until then'),
  error: words,
  shop: z
    .object({
      connectedAt: at.describe('What was paid before is not bought by itself'),
      ordersReadAt: maybeAt,
      failingSince: maybeAt.describe('Since then its orders cannot be read'),
      error: words.describe('Why they cannot'),
      productsReadAt: maybeAt,
      webhookUrl: words.describe('Where it sends its orders; null: they are polled alone'),
    })
    .nullable()
    .describe('How its orders and products are read; null for a backend, which posts them'),
  callbackSecret: CallbackSecretStanding.nullable().describe('Null for a shop, which gets no callbacks'),
  ...proofShape,
})

const RotatedSecret = z.object({
  store: z.string(),
  secret: z.string().meta({ description: 'Shown this once', examples: ['whsec_'] }),
  generation: z.int().min(2),
  previousUntil: at.describe('Until then callbacks are signed with the previous secret, too'),
})

const Triggered = z.object({
  id: z.string().describe('The `webhook-id` under which it was sent'),
  type: z.enum(updateTypes),
  outcome: z.enum(['confirmed', 'refused', 'unavailable']),
  detail: words.describe('Why it was not confirmed'),
  ms: count.describe('How long the store took, in milliseconds'),
})

const TestedStore = z.object({
  store: z.string(),
  healthy: z.boolean().describe('Nothing that was tried has failed'),
  findings: z.array(finding),
})

/**
 * Returns the store that a path names. A store token sees only its own store.
 *
 * @param whose how a refusal names the configuration: each of several processes has a configuration of its own
 * @throws Failure `forbidden`, `not_found`
 */
export function storeAt(
  stores: readonly ConfiguredStore[],
  caller: Caller,
  { store = '' }: Record<string, string>,
  whose = 'the configuration',
): string {
  if (caller.store !== null && caller.store !== store) {
    throw new Failure('forbidden', 'the token is bound to another store')
  }
  if (!stores.some(({ id }) => id === store)) throw new Failure('not_found', `${whose} has no store ${store}`)
  return store
}

/** How a refusal names the configuration when the worker performs the request: the worker's configuration decides. */
const OF_CALLER = 'the configuration of the process that calls stores'

/** The operations of stores: where each store is, how publishing to it goes, and which secret signs its callbacks. */
export function storeOperations(context: ApiContext) {
  const { ordering, callbackSecrets, stores, publicUrl } = context
  const { db } = ordering
  return {
    listStores: operation({
      route: 'GET /stores',
      allowed: viewer,
      summary: 'The stores, where each is, the state of publishing to it, and which callback secret is in use.',
      answer: z.object({ items: z.array(StoreStanding) }),
      success: { 200: 'All of them' },
      handle: async () => ok({ items: await standingsOf(context) }),
    }),
    testStore: operation({
      route: 'POST /stores/:store/test',
      needsWorker: true,
      summary:
        'Try a store: whether it lets us in, its webhook, how its orders are read, what it did not take; and walk along an order of it.',
      allowed: operator,
      body: testStoreBody,
      answer: TestedStore,
      success: { 200: 'What was found' },
      failures: { 404: 'no such store' },
      async handle({ caller, path, body: { order } }) {
        const store = storeAt(stores, caller, path, OF_CALLER)
        const adapter = ordering.storeOf(store)
        if (!adapter) throw new Failure('not_found', `${OF_CALLER} has no store ${store}`)
        const configured = configuredStore(context, store)
        const findings = [
          ...(await testStore(db, store, adapter, publicUrl)),
          ...(order === undefined ? [] : await orderFindings(ordering, configured, order)),
          ...(await proofFindings(ordering, configured, order)),
        ]
        const healthy = findings.every(({ state }) => state !== 'failed')
        if (healthy) await db.commit([endPause(store, ordering.now())])
        return ok({ store, healthy, findings })
      },
    }),
    confirmMail: operation({
      route: 'POST /stores/:store/confirm-mail',
      allowed: operator,
      summary:
        'Confirm that the mail of one order brought its customer the keys, or the link to them. That proves the store.',
      body: confirmMailBody,
      answer: z.object({ store: z.string(), proven: Proven }),
      success: { 200: 'Proven, by this or by what came before' },
      failures: { 404: 'no such store, or it has no such order', 409: '`no_keys`: no key of the order is handed over' },
      async handle({ caller, path, body: { order } }) {
        const store = storeAt(stores, caller, path)
        return ok({ store, proven: await confirmMail(ordering, store, order, caller.actor) })
      },
    }),
    triggerUpdate: operation({
      route: 'POST /stores/:store/trigger',
      needsWorker: true,
      summary: 'Send the store an example of a callback, marked `test: true`. It is sent once and stored nowhere.',
      allowed: operator,
      body: triggerBody,
      answer: Triggered,
      success: { 200: 'What the store answered' },
      failures: { 404: 'no such store', 409: '`no_callbacks`: this kind of store gets none' },
      handle: async ({ caller, path, body: { type } }) =>
        ok(await sendExample(ordering, storeAt(stores, caller, path, OF_CALLER), type, caller.actor)),
    }),
    rotateCallbackSecret: operation({
      route: 'POST /stores/:store/rotate-secret',
      needsWorker: true,
      summary: 'Take a new callback secret into use. Its text is in this answer and never shown again.',
      allowed: admin,
      body: rotateSecretBody,
      answer: RotatedSecret,
      success: { 201: 'In use; callbacks carry both signatures until the previous secret expires' },
      failures: {
        404: 'no such store',
        409: '`too_many_secrets`: four are valid already; `rotated_meanwhile`: a concurrent request was faster',
      },
      async handle({ caller, path, body: { overlapHours } }) {
        const store = storeAt(stores, caller, path, OF_CALLER)
        const made = await callbackSecrets.rotate(store, overlapHours * 3_600_000, caller.actor)
        return created({ ...made, store, secret: made.secret.reveal() })
      },
    }),
  }
}

async function standingsOf({
  ordering: { db },
  stores,
  publicUrl,
}: ApiContext): Promise<z.input<typeof StoreStanding>[]> {
  const [totals, waiting, standings, rotations, readings, proofs] = await Promise.all([
    listingsByState(db),
    db.query(countPublications()),
    db.query(allPublishing()),
    db.query(allCallbackSecrets()),
    db.query(allStoreReadings()),
    readProofs(db),
  ])
  return stores.map((store) => {
    const { id, name, kind, address, selling } = store
    const { label, shop } = kindOf({ kind })
    const isOwn = (row: { store: string }): boolean => row.store === id
    const standing = standings.find(isOwn)
    const reading = readings.find(isOwn)
    return {
      id,
      name,
      kind,
      kindLabel: label,
      address: withoutSecrets(address),
      selling,
      listings: Object.fromEntries(totals.filter(isOwn).map(({ state, total }) => [state, total])),
      publications: waiting.find(isOwn)?.total ?? 0,
      pausedUntil: standing?.pausedUntil ?? null,
      error: standing?.lastError ?? null,
      shop:
        shop === null || !reading
          ? null
          : {
              ...reading,
              error: reading.lastError,
              productsReadAt: reading.variantsReadAt,
              webhookUrl: publicUrl === null ? null : storeWebhookUrl(publicUrl, id),
            },
      callbackSecret: shop === null ? callbackSecretOf(rotations, id) : null,
      ...proofOf(store, proofs),
    }
  })
}

/** Sends an example callback. @throws Failure `conflict`, reason `no_callbacks` */
async function sendExample(
  ordering: ApiContext['ordering'],
  store: string,
  type: z.infer<typeof triggerBody>['type'],
  actor: string,
): Promise<z.input<typeof Triggered>> {
  const { db, newId, now, monotonic } = ordering
  const adapter = ordering.storeOf(store)
  if (!adapter?.sendExample) {
    throw new Failure('conflict', 'this kind of store gets no callbacks', { reason: 'no_callbacks' })
  }
  await db.commit([audited(ordering, actor, 'store.trigger', store, type)])
  const id = newId()
  const began = monotonic()
  const update = examples[type]({ store, reference: `test-${id}` })
  const keys = type === 'line.fulfilled' ? EXAMPLE_KEYS : []
  const result = await adapter.sendExample({ ...update, id, at: now(), keys })
  const detail = result.outcome === 'confirmed' ? null : result.detail
  if (detail === null) await db.commit([endPause(store, now())])
  return { id: `msg_${id}`, type, outcome: result.outcome, detail, ms: Math.round(monotonic() - began) }
}
