import { describe, expect, test } from 'vitest'
import { errorCodes } from '../../src/http/answers.ts'
import { apiOperations, apiRouter } from '../../src/http/api/api.ts'
import { offersByProduct, putOffer } from '../../src/storage/offers.ts'
import { enqueueAlert } from '../../src/storage/outbox.ts'
import type { Store } from '../../src/stores/store.ts'
import { type Answer, type ApiWorld, type Ask, OTHER_STORE, openApi } from '../support/api-world.ts'
import { signedIn } from '../support/console-client.ts'
import { answerSchema, faultsOf, type OpenApi, operationOf } from '../support/openapi-check.ts'
import { orderRead } from '../support/order-read.ts'
import { STORE } from '../support/test-app.ts'

async function documentOf(world: ApiWorld): Promise<OpenApi> {
  const answer = await fetch(`${world.url}/api/v1/openapi.json`)
  expect(answer.status).toBe(200)
  return (await answer.json()) as OpenApi
}

/** Everything that the document must hold for: each operation once with success, and each kind of failure. */
type TourAsk = (method: string, path: string, request?: Ask) => Promise<Answer>

async function tour(world: ApiWorld, ask: TourAsk) {
  const { store, viewer } = world.tokens
  const offers = await world.offers()
  const order = (reference: string, sku: string | undefined, unitPrice = '999.00') => ({
    reference,
    lines: [
      { id: '1', sku, quantity: 1, unitPrice, currency: 'EUR' },
      { id: '2', sku: 'NOT-OURS', quantity: 1 },
    ],
  })
  await ask('GET', '/set-up')
  await ask('POST', '/webhooks', { body: { url: world.url } })
  await ask('POST', '/orders', { token: store, body: order('done', offers[0]?.sku) })
  await ask('POST', '/orders', { token: store, body: order('done', offers[0]?.sku) })
  await ask('POST', '/orders', { token: store, body: order('done', offers[1]?.sku) })
  await ask('POST', '/orders', { token: store, body: order('none', 'NOT-OURS') })
  await world.pass(10_000)
  await world.sandbox.deliverDue()
  await ask('POST', '/orders', { token: store, body: order('dear', offers[1]?.sku, '0.01') })
  await ask('POST', '/orders', { token: store, body: order('gone', offers[1]?.sku) })
  await ask('POST', '/orders/gone/cancel', { token: store })
  await world.pass(2_000)
  for (const reference of ['done', 'dear', 'gone', 'nowhere'])
    await ask('GET', `/orders/${reference}`, { token: store })
  await world.unwatched(ask('GET', '/events'))
  await ask('POST', `/stores/${STORE}/test`)
  await ask('POST', `/stores/${STORE}/test`, { body: { order: 'done' } })
  await ask('POST', `/stores/${STORE}/confirm-mail`, { body: { order: 'done' } })
  await ask('POST', `/stores/${STORE}/trigger`, { body: { type: 'line.fulfilled' } })
  await ask('POST', '/orders/done/resend')
  await ask('POST', '/orders/done/take')
  const { storeOf } = world.ordering
  const shopOf: typeof storeOf = (id) => {
    const backend = storeOf(id)
    const one = { variant: null, sku: offers[0]?.sku ?? '', unitPrice: '999.00', currency: 'EUR' }
    const paidAt = world.now()
    const shop: Partial<Store> = {
      resend: async () => ({ outcome: 'confirmed' }),
      order: async (reference) => ({
        outcome: 'order',
        order: orderRead({ reference, paidAt, lines: [{ ...one, id: '1', quantity: 2 }] }),
      }),
    }
    return backend && { ...backend, ...shop }
  }
  world.ordering.storeOf = shopOf
  await ask('POST', '/orders/done/release')
  await ask('POST', '/orders/done/resend')
  world.ordering.storeOf = storeOf
  for (const list of ['/orders', '/purchases', '/deliveries', '/outbox', '/webhooks', '/discrepancies', '/tokens']) {
    await ask('GET', `${list}`)
  }
  const idOf = async (path: string) => String((await ask('GET', path)).body.data.items[0]?.id)
  const held = (await ask('GET', '/purchases?state=planned')).body.data.items[0]?.id
  await ask('GET', `/purchases/${held}`)
  await ask('GET', '/waiting?cause=ceiling')
  await ask('GET', '/search?q=1')
  await ask('POST', `/purchases/${held}/release`, { body: { ceiling: '500.00' } })
  await ask('POST', `/purchases/${held}/check`)
  await ask('POST', `/purchases/${held}/retry`)
  await ask('POST', `/purchases/${await idOf('/purchases?state=cancelled')}/retry`)
  await ask('POST', `/purchases/${held}/release`, { token: viewer })
  const evidenceOf = async (purchase: unknown) => {
    const { evidenceVersion } = (await ask('GET', `/purchases/${purchase}/evidence`)).body.data
    return { 'if-match': `"${evidenceVersion}"` }
  }
  const close = { decision: 'close', reason: 'not needed any more' }
  await ask('POST', `/purchases/${held}/decision`, { body: close, headers: await evidenceOf(held) })
  await ask('POST', `/purchases/${held}/decision`, { body: close, headers: { 'if-match': '"review-0"' } })
  await ask('POST', `/purchases/${held}/decision`, { body: close })
  world.sandbox.faults.add({ fault: 'hold-open' })
  await ask('POST', '/orders', { token: store, body: order('open', offers[3]?.sku, '60.00') })
  await world.pass(2_000)
  const accepted = (await ask('GET', '/purchases?state=accepted')).body.data.items[0]
  await ask('GET', `/purchases/${accepted?.id}/evidence?read=true`)
  await ask('GET', `/purchases/${accepted?.id}/evidence?read=true`, { token: viewer })
  const headers = await evidenceOf(accepted?.id)
  const adopt = {
    decision: 'adopt',
    orderId: accepted?.supplierOrderId,
    reason: 'it is the one',
  }
  await ask('POST', `/purchases/${accepted?.id}/decision`, { body: adopt, headers })
  await ask('POST', `/purchases/${accepted?.id}/decision`, { body: { ...adopt, orderId: 'a b' }, headers })
  const delivery = await idOf('/deliveries')
  for (const query of ['state=open', 'state=failed', 'search=open', 'search=nothing&state=open', 'state=none'])
    await ask('GET', `/orders?${query}`)
  for (const query of ['hold=any', 'hold=ceiling', 'hold=any&state=planned']) await ask('GET', `/purchases?${query}`)
  await ask('GET', '/orders/open/history')
  await ask('GET', '/orders/open/history', { token: store })
  await ask('POST', '/orders/open/keys', { body: { reason: 'a look' } })
  await ask('POST', '/orders/open/keys', { body: { reason: 'a look' }, token: viewer })
  await ask('GET', `/deliveries/${delivery}`)
  await ask('GET', `/deliveries/${delivery}?reveal=true`)
  await ask('GET', `/deliveries/${delivery}?reveal=true`, { token: viewer })
  await ask('POST', `/deliveries/${delivery}/replay`)
  await ask('POST', `/deliveries/nowhere/replay`)
  await ask('POST', '/deliveries/replay', { body: { ids: [delivery] } })
  world.shop.answerNext(500, 3)
  await ask('POST', '/orders', { token: store, body: order('late', offers[2]?.sku, '60.00') })
  await world.pass(4_000)
  await ask('POST', '/orders/late/keys', { body: { reason: 'a look' } })
  world.ordering.storeOf = shopOf
  await ask('POST', '/orders/done/take?line=1')
  await ask('POST', '/orders/done/take?line=1')
  world.ordering.storeOf = storeOf
  await ask('POST', `/outbox/${await idOf('/outbox?state=due&kind=callback')}/redeliver`)
  await ask('POST', `/outbox/${await idOf('/outbox?state=done')}/redeliver`)
  await tourOfClaims(world, ask)
  // A key in place of one that does not work needs the page.
  await ask('POST', '/orders/done/keys-page/withdraw', { body: { reason: 'charged back' } })
  const { id } = (await ask('POST', '/sync')).body.data.run as { id: string }
  await ask('POST', '/sync/dry-run?most=20')
  await ask('GET', '/sync/runs')
  await ask('GET', `/sync/runs/${id}`)
  await ask('GET', `/sync/runs/${id}/changes?field=cost`)
  await ask('POST', '/sync/dry-runs')
  await ask('GET', '/sync/dry-runs')
  await ask('POST', '/sync/dry-runs/stop')
  const sweep = (await ask('POST', '/sweeps')).body.data.sweep as { id: string }
  await ask('GET', '/sweeps')
  while ((await ask('GET', `/sweeps/${sweep.id}`)).body.data.state === 'running');
  await ask('GET', '/sweeps/nowhere')
  await ask('GET', '/balance')
  await ask('POST', '/freeze', { body: { reason: 'a look first' } })
  await ask('GET', '/status')
  await ask('POST', '/unfreeze', { body: { causes: ['nowhere'] } })
  const { causes } = (await ask('GET', '/status')).body.data.freeze as { causes: { id: string }[] }
  await ask('POST', '/unfreeze', { body: { causes: causes.map((cause) => cause.id) } })
  await ask('GET', '/listings', { token: store })
  await ask('GET', `/listings/${encodeURIComponent(offers[0]?.sku ?? '')}`, { token: store })
  await ask('GET', '/listings/nowhere', { token: store })
  await ask('GET', `/stores/${STORE}/prices/${encodeURIComponent(offers[0]?.sku ?? '')}`)
  await ask('GET', `/stores/${STORE}/prices/nowhere`)
  await ask('POST', `/stores/${STORE}/price-preview`, { body: { pricing: { markup: { percent: '18' } } } })
  await listingsTour(world, ask, offers[0]?.productId ?? '')
  const csv = { 'content-type': 'text/csv' }
  await ask('POST', `/stores/${STORE}/listings/import`, { raw: 'variant,sku\nv9,nowhere\nv9,nowhere\n', headers: csv })
  await ask('POST', `/stores/${STORE}/listings/import?dry_run=true`, { raw: 'x', headers: csv })
  await ask('GET', `/stores/${STORE}/listings/export`)
  for (const path of ['/exports/orders', '/exports/deliveries']) {
    for (const format of ['csv', 'jsonl']) {
      await ask('GET', `${path}?format=${format}`)
      await ask('POST', `${path}?format=${format}`, { body: { reason: 'a look' } })
    }
    await ask('POST', path, { token: viewer, body: { reason: 'a look' } })
  }
  const wanted = { name: 'till', role: 'store', store: STORE, scopes: ['orders'], expiresInDays: 30 }
  const token = (await ask('POST', '/tokens', { body: wanted })).body.data
  for (const group of ['none', 'store', 'product', 'nothing']) {
    await ask('GET', `/money?group=${group}&by=week`)
    await ask('GET', `/exports/money?group=${group}`)
  }
  for (const period of ['day', 'month', 'year']) await ask('GET', `/activity?period=${period}`)
  await ask('POST', '/console/links', { body: { name: 'anna', role: 'viewer', hours: 24 } })
  await ask('GET', '/console/people')
  await ask('POST', '/console/people/remove', { body: { name: 'anna', reason: 'works elsewhere' } })
  await ask('POST', '/console/people/remove', { body: { name: 'anna' } })
  await ask('DELETE', `/tokens/${token.id}`)
  await ask('DELETE', `/tokens/${token.id}`)
  await ask('POST', `/stores/${STORE}/rotate-secret`, { body: { overlapHours: 24 } })
  await ask('POST', '/stores/nowhere/rotate-secret')
  await ask('POST', '/captures')
  const refused = world.captures.watch(() => Promise.resolve({ outcome: 'stale' }))
  await refused({ path: '/webhooks/supplier', headers: {}, body: Buffer.from('{}') })
  while ((await ask('GET', '/captures')).body.data.items.length === 0);
  await ask('GET', `/captures/${await idOf('/captures')}`)
  const first = await idOf('/webhooks')
  await ask('POST', `/webhooks/${first}/retire`)
  await ask('POST', '/webhooks/add', { body: { url: world.url, secret: 'whsec_0123456789abcdef0123456789' } })
  await ask('POST', '/webhooks/rotate', { body: { url: world.url } })
  await ask('POST', `/webhooks/${first}/retire`)
  await ask('POST', '/webhooks/nowhere/retire')
  await ask('POST', '/webhooks/check')
  await ask('POST', '/webhooks/test', { body: { url: world.url } })
  await ask('POST', '/backups')
  await ask('GET', '/backups')
  await ask('POST', '/keys/rotate')
  await ask('GET', '/status', { token: null })
  await ask('GET', '/status?x=1')
  await ask('POST', '/freeze', { raw: 'x', headers: { 'content-type': 'text/plain' } })
  await ask('POST', '/freeze', { raw: `"${'x'.repeat(300_000)}"` })
}

/** What people do with listings; a price that jumps is held for them. */
async function listingsTour(world: ApiWorld, ask: TourAsk, productId: string): Promise<void> {
  const [at, one] = [`/stores/${STORE}`, `/stores/${STORE}/listings/v1`]
  await ask('POST', `${one}/link`, { body: { productId, sku: 'OURS', variation: 'Europe' } })
  await ask('POST', `${one}/link`, { body: { offerSku: 'nowhere' } })
  await ask('POST', `${one}/link`, { body: {} })
  await world.publish()
  const [offer] = await world.db.query(offersByProduct([productId]))
  if (!offer) throw new Error('the offer is not there')
  await world.db.commit([putOffer({ ...offer, costMinor: offer.costMinor * 3, asOf: offer.asOf + 1 })])
  await ask('POST', `${one}/retry`)
  await world.publish()
  await ask('GET', one)
  await ask('GET', one, { token: world.tokens.other })
  await ask('GET', `${at}/listings?state=held`)
  await ask('GET', `${at}/listings?search=OU`)
  await ask('GET', '/held-prices')
  await ask('GET', `${at}/listings?limit=2`, { token: world.tokens.store })
  const { wantedPrice: price } = (await world.ask('GET', one)).body.data
  await ask('POST', `${one}/release`, { body: { price: '0.01', reason: 'another one was shown' } })
  await ask('POST', `${one}/release`, { body: { price, reason: 'the supplier confirmed it' } })
  await world.publish()
  await ask('POST', `${one}/release`, { body: { price, reason: 'again' } })
  await ask('GET', one)
  await ask('POST', `${one}/ignore`, { body: { reason: 'sold by hand' } })
  await ask('POST', `${one}/retry`)
  await ask('POST', `${one}/unignore`)
  await ask('POST', `${one}/unignore`)
  await ask('POST', `${one}/unlink`)
  await ask('POST', `${one}/unlink`, { token: world.tokens.viewer })
  await ask('GET', `${at}/listing-problems`)
  await ask('GET', '/stores')
  await ask('GET', '/stores/nowhere/listings')
  await tourOfPeople(world, ask)
}

/** Three claims about keys that customers have, each ended in its own way. */
async function tourOfClaims({ pass }: ApiWorld, ask: TourAsk): Promise<void> {
  const { items } = (await ask('GET', '/purchases?state=fulfilled')).body.data
  const at = `/purchases/${items[0]?.id}/claims`
  const body = { note: 'it was redeemed before' }
  await ask('POST', at, { body })
  await ask('POST', at, { body })
  await ask('POST', at, { body: { ...body, ordinal: 99 } })
  await ask('GET', '/claims?state=open')
  await ask('GET', '/claims/1')
  await ask('GET', '/claims/one')
  await ask('POST', '/claims/1/refuse', { body: { reason: 'it works' } })
  await ask('POST', '/claims/1/refuse', { body: { reason: 'it works' } })
  await ask('POST', at, { body })
  await ask('POST', '/claims/2/buy-again', { body: {} })
  await pass(10_000)
  const { replacedBy } = (await ask('GET', '/claims/2')).body.data as unknown as { replacedBy: string }
  await ask('POST', `/purchases/${replacedBy}/claims`, { body })
  await ask('POST', '/claims/3/adopt', { body: { key: ' ' } })
  await ask('POST', '/claims/3/adopt', { body: { key: 'ANOT-HERK-EY' } })
}

async function tourOfAlerts({ ordering, db }: ApiWorld, ask: TourAsk): Promise<void> {
  const payload = { note: 'changed', store: STORE, reference: '1' }
  await db.commit([enqueueAlert(ordering, { type: 'order_changed', occasion: 'tour', payload })])
  const { alerts } = (await ask('GET', '/status')).body.data as unknown as { alerts: { id: string; type: string }[] }
  const at = `/alerts/${alerts.find(({ type }) => type === 'order_changed')?.id}`
  await ask('POST', `${at}/acknowledge`, { body: { reason: 'asked' } })
  await ask('POST', `${at}/mute`, { body: { hours: 8 } })
  await ask('POST', `${at}/unmute`, {})
  await ask('GET', '/alerts?state=open')
  await ask('GET', '/alerts/channels')
  await ask('POST', '/alerts/test', {})
}

/** Settings in the database: a try, a revision, its undoing, and a conflict. */
async function tourOfSettings(ask: TourAsk): Promise<void> {
  const { document } = (await ask('GET', '/settings/document')).body.data as unknown as { document: object }
  await ask('POST', '/settings/try', { body: { document } })
  const body = { document: { ...document, syncCron: '0 * * * *' }, reason: 'the tour' }
  await ask('POST', '/settings/document', { body, headers: { 'if-match': '"1"' } })
  await ask('POST', '/settings/document', { body, headers: { 'if-match': '"1"' } })
  await ask('POST', '/settings/undo', { headers: { 'if-match': '"2"' } })
  const reason = 'the tour'
  const change = { name: 'syncCron', value: '0 * * * *', reason }
  await ask('POST', '/settings/change', { body: change, headers: { 'if-match': '"3"' } })
  await ask('POST', `/stores/${STORE}/selling`, { body: { selling: 'paused', reason } })
  await ask('POST', `/stores/${STORE}/selling`, { body: { selling: 'on', reason } })
  await ask('POST', `/stores/${STORE}/credentials`, { body: { key: 'a', secret: 'b', reason } })
  await ask('POST', '/supplier/api-key', { body: { apiKey: 'sk_test_0123456789abcdef', reason } })
  const channel = { kind: 'webhook', address: 'https://alerts.example/', reason }
  await ask('POST', `/stores/${STORE}/products/count`, { body: { listings: {} } })
  await ask('POST', '/alert-channels/duty', { body: channel })
  await ask('POST', '/alert-channels/duty/remove', { body: { reason } })
  await ask('POST', '/stores/nowhere/remove', { body: { reason } })
  await ask('POST', `/stores/${OTHER_STORE}/remove`, { body: { reason } })
}

/** Settings, the audit, and who is signed in. */
async function tourOfPeople(world: ApiWorld, ask: TourAsk): Promise<void> {
  await tourOfAlerts(world, ask)
  await ask('GET', '/settings')
  await ask('GET', '/settings/document')
  await ask('GET', '/settings/revisions')
  await tourOfSettings(ask)
  await ask('GET', '/audit?limit=2&count=true')
  await ask('GET', '/audit/actors')
  await ask('GET', '/audit?actor=owner&action=freeze&subject=buying')
  await signedIn(world, 'viewer')
  const sessions = await ask('GET', '/console/sessions')
  const [session] = sessions.body.data.items
  await ask('DELETE', `/console/sessions/${session?.id}`)
  await ask('DELETE', `/console/sessions/${session?.id}`)
}

test('a refusal of the supplier has a code of ours, never the word of the supplier', async () => {
  const world = await openApi()
  const url = `https://quayside.test/${'x'.repeat(3_000)}`
  const { status, body } = await world.ask('POST', '/webhooks', { body: { url } })
  expect({ status, code: body.error.code }).toEqual({ status: 422, code: 'supplier_rejected' })
  expect(body.error.message).toMatch(/^the supplier rejected the request: invalid_/)
})

describe('the OpenAPI document', () => {
  test('lists every code of an error, with what it means', async () => {
    const document = await documentOf(await openApi())
    const { enum: codes = [], description = '' } = document.components.schemas.ErrorCode ?? {}
    expect(codes).toEqual(Object.keys(errorCodes))
    for (const code of codes) expect(description).toMatch(new RegExp(`^- \`${code}\`: [a-z]`, 'm'))
  })

  test('names every route of the API, and no other', async () => {
    const world = await openApi()
    const document = await documentOf(world)
    const described = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method} ${path.replace(/\{(\w+)\}/g, ':$1')}`),
    )
    const routed = apiRouter(apiOperations(world.api), () => Promise.reject(new Error('no token'))).stack.flatMap(
      ({ route }) => {
        const methods = route?.stack.map((layer) => layer.method).filter((method) => method !== undefined) ?? []
        return methods.map((method) => `${method} ${route?.path}`)
      },
    )
    expect(described.sort()).toEqual(routed.sort())
  })

  test('describes what the API answers, in success and in failure', async () => {
    const world = await openApi({ keyPagesAt: 'https://quayside.example', home: 'database' })
    const document = await documentOf(world)
    const succeeded = new Set<string>()
    const statuses = new Set<number>()
    await tour(world, async (method, path, request) => {
      const answer = await world.ask(method, path, request)
      const operation = operationOf(document, method, path)
      const [type] = (answer.headers.get('content-type') ?? '').split(';')
      const schema = operation && answerSchema(document, operation, answer.status, type)
      const what = `${method} ${path} -> ${answer.status} ${JSON.stringify(answer.body)}`
      expect(schema, what).toBeDefined()
      // Of lines of JSON each is one.
      const bodies: unknown[] = Array.isArray(answer.body) ? answer.body : [answer.body]
      if (schema) expect(bodies.flatMap((body) => faultsOf(document, schema, body)).slice(0, 5), what).toEqual([])
      if (operation && answer.status < 300) succeeded.add(operation.operationId)
      statuses.add(answer.status)
      return answer
    })
    const all = Object.values(document.paths).flatMap((one) => Object.values(one).map(({ operationId }) => operationId))
    // The stores of this test are backends, which have no credentials. A set-up is done in a browser, see set-up.browser.test.ts.
    const elsewhere = ['viewOpenApi', 'changeCredentials', 'trySupplier', 'foundInstallation', 'addStore']
    const ofSetUp = ['startSelling']
    expect([...succeeded, ...elsewhere, ...ofSetUp].sort()).toEqual(all.sort())
    expect([...statuses].sort()).toEqual([200, 201, 202, 400, 401, 403, 404, 409, 412, 413, 415, 422])
  })

  test('describes the callbacks that a store gets', async () => {
    const world = await openApi({ keyPagesAt: 'https://quayside.example' })
    const document = await documentOf(world)
    await tour(world, world.ask)
    await world.pass(60_000)
    const types = new Set<string>()
    for (const { type, timestamp, data } of world.shop.received().filter((one) => one.type !== 'test')) {
      const schema = document.webhooks[type]?.post.requestBody.content['application/json'].schema
      expect(schema, type).toBeDefined()
      if (schema) expect(faultsOf(document, schema, { type, timestamp, data }), JSON.stringify(data)).toEqual([])
      types.add(type)
    }
    expect([...types].sort()).toEqual([
      'line.failed',
      'line.fulfilled',
      'line.held',
      'line.resumed',
      'listings.changed',
      'order.closed',
    ])
  })

  test('points nowhere that is not there', async () => {
    const world = await openApi()
    const text = JSON.stringify(await documentOf(world))
    const document = JSON.parse(text) as Record<string, Record<string, Record<string, unknown>>>
    for (const [, group, name] of text.matchAll(/"\$ref":"#\/components\/(\w+)\/([^"]+)"/g)) {
      expect(document.components?.[String(group)]?.[String(name)], `${group}/${name}`).toBeDefined()
    }
    expect(text).not.toContain('$defs')
  })
})
