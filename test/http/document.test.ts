/** What people, generators of clients and other languages read in the OpenAPI document. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { orderBody, orderExample } from '../../src/http/input.ts'
import { offersByProduct, putOffer } from '../../src/storage/offers.ts'
import { enqueueAlert } from '../../src/storage/outbox.ts'
import { apiDocument } from '../support/api-document.ts'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import { type Json, schemasOf } from '../support/contract-schema.ts'
import { first, STORE } from '../support/test-app.ts'

const document = JSON.parse(JSON.stringify(apiDocument)) as Json
const schemas = schemasOf(document)

/** Every object of the document, with where it is. */
function* objectsIn(value: unknown, at = '#'): Generator<[at: string, value: Json]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield [at, value as Json]
  for (const [name, inner] of Object.entries(value)) yield* objectsIn(inner, `${at}/${name}`)
}
const objects = [...objectsIn(document)]

describe('a pattern', () => {
  const patterns = new Set(objects.map(([, { pattern }]) => pattern).filter((one) => typeof one === 'string'))

  test('is one that Python, Go, Java and Rust compile: no class of Unicode, no look-around, no reference back', () => {
    expect(patterns.size).toBeGreaterThan(3)
    // Literals, classes of ASCII, plain groups, and how often they repeat.
    const portable =
      /^\^(?:[\w.@$]|\\x[0-9a-f]{2}|\\[.]|\[\^?(?:[\w-]|\\x[0-9a-f]{2})+\]|\((?!\?)|\)|[*+?]|\{\d+(,\d+)?\})*\$$/
    expect([...patterns].filter((one) => !portable.test(one))).toEqual([])
  })

  test('lets pass every text that the API takes, and the description has the rest of the rule in words', () => {
    const at = '#/components/schemas/TakeOrderBody'
    const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 8 })
    const order = fc.record({
      reference: text,
      lines: fc.array(fc.record({ id: text, sku: text, quantity: fc.nat(9) })),
    })
    let taken = 0
    fc.assert(
      fc.property(order, (body) => {
        if (!orderBody.safeParse(body).success) return
        taken += 1
        expect(schemas.faultsOf(at, body)).toEqual([])
      }),
      { numRuns: 5_000, seed: 1 },
    )
    expect(taken).toBeGreaterThan(200)
    for (const reference of ['Ünï-1', '注文 1001', 'x'.repeat(200), '🎁'.repeat(200)]) {
      expect(schemas.faultsOf(at, { ...orderExample, reference })).toEqual([])
    }
    for (const reference of ['', ' 1001', '1001\n', 'a\u0000b', 'x'.repeat(201)]) {
      expect(schemas.faultsOf(at, { ...orderExample, reference }), JSON.stringify(reference)).not.toEqual([])
    }
    expect(schemas.at(`${at}/properties/reference`).value.description).toMatch(/without control, invisible and/)
  })
})

test('a type is one that OpenAPI 3.0 can say, too: a single one, or null beside it; a constant is text', () => {
  const odd = objects.filter(([, { type, const: constant, enum: words }]) => {
    const several = Array.isArray(type) && (type.length !== 2 || type[1] !== 'null')
    const notText = Array.isArray(words) && words.some((word) => typeof word !== 'string' && word !== null)
    return several || notText || constant !== undefined
  })
  expect(odd.map(([at]) => at)).toEqual([])
})

test('a number in a query is a number, and a yes or no a boolean', () => {
  const parameters = objects.map(([, value]) => value).filter(({ in: place }) => place === 'query')
  const typeOf = (name: string) =>
    new Set(parameters.filter((one) => one.name === name).map(({ schema }) => (schema as Json).type))
  for (const name of ['limit', 'most']) expect([...typeOf(name)], name).toEqual(['integer'])
  for (const name of ['read', 'reveal', 'dry_run']) expect([...typeOf(name)], name).toEqual(['boolean'])
})

test('each field of an order, its callbacks, a listing and an error is described, and each parameter', () => {
  const described = [
    ...['TakeOrderBody', 'OrderLineBody', 'Order', 'OrderLine', 'OrderEntry', 'OrderLineEntry', 'TimelineEntry'],
    ...['Purchase', 'LineFulfilled', 'LineFailed', 'LineHeld', 'LineResumed', 'OrderClosed', 'ListingsChanged'],
    ...['ListingsChangedResults', 'Listing', 'Failed'],
  ]
  const isDescribed = ({ description, $ref, anyOf }: Json): boolean =>
    typeof description === 'string' ||
    (typeof $ref === 'string' && isDescribed(schemas.at($ref).value)) ||
    (Array.isArray(anyOf) && anyOf.some(isDescribed))
  const bare = objects.flatMap(([at, { properties, in: place, description }]) => {
    if (['query', 'path', 'header'].includes(String(place)) && description === undefined) return [at]
    const [, name = ''] = /^#\/components\/schemas\/(\w+)/.exec(at) ?? []
    if (!described.includes(name) || typeof properties !== 'object') return []
    const fields = Object.entries(properties as Record<string, Json>)
    // The envelope says nothing that its name does not.
    const known = ['success', 'error']
    return fields.flatMap(([field, value]) => (known.includes(field) || isDescribed(value) ? [] : [`${at}.${field}`]))
  })
  expect(bare).toEqual([])
  for (const name of described) expect(schemas.at(`#/components/schemas/${name}`).value.properties, name).toBeDefined()
})

describe('the guide at the top', () => {
  const guide = (document.info as { description: string }).description

  test('is one page on tokens, idempotency, callbacks, retries and errors', () => {
    const titles = [...guide.matchAll(/^## (.+)$/gm)].map(([, title]) => title)
    expect(titles).toEqual(['Tokens', 'Placing an order', 'Idempotency', 'Callbacks', 'Retries', 'Errors'])
    expect(guide.split('\n').length).toBeLessThan(100)
  })

  test('shows an error as it is answered, and every status that there is', async () => {
    const world = await openApi()
    const [line] = orderExample.lines
    const lines = [{ ...line, quantity: 0 }]
    const { body } = await world.ask('POST', '/orders', { token: world.tokens.store, body: { ...orderExample, lines } })
    const shown = JSON.parse(/```json\n(.*?)```/s.exec(guide)?.[1] ?? '') as typeof body
    expect({ ...shown, request_id: body.request_id }).toEqual(body)
    const statuses = objects.flatMap(([at]) => /^#\/paths\/.*\/responses\/([45]\d\d)$/.exec(at)?.[1] ?? [])
    const table = guide.slice(guide.indexOf('| status |'))
    for (const status of new Set(statuses)) expect(table, status).toMatch(new RegExp(`^\\| [^|]*\\b${status}\\b`, 'm'))
  })
})

describe('an example', () => {
  interface Ready {
    path?: string
    token?: string
    /** What only the service knows of the body. */
    known?: object
    /** What is answered to a body that is understood, where the store of this test can do no more. */
    refused?: string
  }
  /** Where an alert that is open is found. */
  async function alertOf({ ordering, db, ask }: ApiWorld): Promise<string> {
    const payload = { note: 'the shop changed it', store: STORE, reference: '1001' }
    await db.commit([enqueueAlert(ordering, { type: 'order_changed', occasion: 'example', payload })])
    const { alerts } = (await ask('GET', '/status')).body.data as unknown as { alerts: { id: string }[] }
    return `/alerts/${alerts[0]?.id}`
  }
  /** The purchase of a key that the customer has, with or without a claim about it. */
  async function delivered(world: ApiWorld, isClaimed: boolean): Promise<string> {
    await world.ask('POST', '/orders', { token: world.tokens.store, body: orderExample })
    await world.pass(10_000)
    const { id } = (await world.ask('GET', '/purchases')).body.data.items[0] ?? {}
    if (isClaimed)
      await world.ask('POST', `/purchases/${id}/claims`, { body: { ordinal: 1, note: 'it was redeemed before' } })
    return `/purchases/${id}/claims`
  }
  const ofClaim = (decision: string) => async (world: ApiWorld) => {
    await delivered(world, true)
    return { path: `/claims/1/${decision}` }
  }
  /** What an example needs to be there first. @returns where it goes */
  const ready: Record<string, (world: ApiWorld) => Promise<Ready>> = {
    takeOrder: async ({ tokens }) => ({ token: tokens.store }),
    linkListing: async () => ({ path: `/stores/${STORE}/listings/v1/link` }),
    ignoreListing: async (world) => {
      await world.publish()
      return { path: `/stores/${STORE}/listings/GAM-RAIL4/ignore` }
    },
    releaseListing: async (world) => {
      await world.publish()
      const { id } = first(world.sandbox.world.offers.list({}, 0, 100).items.filter(({ sku }) => sku === 'GAM-RAIL4'))
      const offer = first(await world.db.query(offersByProduct([id])))
      await world.db.commit([putOffer({ ...offer, costMinor: offer.costMinor * 3, asOf: offer.asOf + 1 })])
      const path = `/stores/${STORE}/listings/GAM-RAIL4`
      await world.ask('POST', `${path}/retry`)
      await world.publish()
      return { path: `${path}/release`, known: { price: (await world.ask('GET', path)).body.data.wantedPrice } }
    },
    releasePurchase: async (world) => {
      const lines = [{ id: '1', sku: 'GAM-RAIL4', quantity: 1, unitPrice: '0.01', currency: 'EUR' }]
      await world.ask('POST', '/orders', { token: world.tokens.store, body: { reference: 'dear', lines } })
      await world.pass(2_000)
      return { path: `/purchases/${(await world.ask('GET', '/purchases')).body.data.items[0]?.id}/release` }
    },
    retryPurchase: async (world) => {
      world.sandbox.faults.add({ fault: 'failed-order' })
      await world.ask('POST', '/orders', { token: world.tokens.store, body: orderExample })
      await world.pass(120_000)
      return { path: `/purchases/${(await world.ask('GET', '/purchases?state=failed')).body.data.items[0]?.id}/retry` }
    },
    raiseClaim: async (world) => ({ path: await delivered(world, false) }),
    buyClaimAgain: ofClaim('buy-again'),
    adoptClaimKey: ofClaim('adopt'),
    refuseClaim: ofClaim('refuse'),
    cancelOrder: async (world) => {
      await world.ask('POST', '/orders', { token: world.tokens.store, body: orderExample })
      return { path: `/orders/${orderExample.reference}/cancel` }
    },
    resendOrder: async (world) => {
      await world.ask('POST', '/orders', { token: world.tokens.store, body: orderExample })
      return { path: `/orders/${orderExample.reference}/resend`, refused: 'no_resend' }
    },
    decidePurchase: async (world) => {
      world.sandbox.faults.add({ fault: 'hold-open' })
      await world.ask('POST', '/orders', { token: world.tokens.store, body: orderExample })
      await world.pass(2_000)
      const id = (await world.ask('GET', '/purchases?state=accepted')).body.data.items[0]?.id
      return { path: `/purchases/${id}/decision` }
    },
    withdrawKeysPage: async (world) => {
      await world.ask('POST', '/orders', { token: world.tokens.store, body: orderExample })
      return { path: `/orders/${orderExample.reference}/keys-page/withdraw`, refused: 'no_page' }
    },
    revealKeys: async (world) => {
      await world.ask('POST', '/orders', { token: world.tokens.store, body: orderExample })
      await world.pass(10_000)
      return { path: `/orders/${orderExample.reference}/keys` }
    },
    acknowledgeAlert: async (world) => ({ path: `${await alertOf(world)}/acknowledge` }),
    muteAlert: async (world) => ({ path: `${await alertOf(world)}/mute` }),
    unmuteAlert: async (world) => ({ path: `${await alertOf(world)}/unmute` }),
    // No channel is configured here.
    testAlertChannels: async () => ({ refused: 'not_found' }),
    addStore: async () => ({ refused: 'settings_in_file' }),
    trySupplier: async () => ({ refused: 'set_up_done' }),
    countProducts: async () => ({ path: `/stores/${STORE}/products/count` }),
    startSelling: async () => ({ refused: 'invalid' }),
    freeze: async () => ({}),
    unfreeze: async (world) => {
      await world.ask('POST', '/freeze', { body: { reason: 'a look first' } })
      const { causes } = (await world.ask('GET', '/status')).body.data.freeze as { causes: { id: string }[] }
      return { known: { causes: causes.map(({ id }) => id) } }
    },
    testStore: async () => ({ path: `/stores/${STORE}/test` }),
    confirmMail: async (world) => {
      await world.ask('POST', '/orders', { token: world.tokens.store, body: orderExample })
      await world.pass(10_000)
      return { path: `/stores/${STORE}/confirm-mail` }
    },
    triggerUpdate: async () => ({ path: `/stores/${STORE}/trigger` }),
    rotateCallbackSecret: async () => ({ path: `/stores/${STORE}/rotate-secret` }),
    applySettings: async () => ({ refused: 'invalid' }),
    changeSetting: async () => ({ refused: 'invalid' }),
    setSelling: async () => ({ path: `/stores/${STORE}/selling`, refused: 'settings_in_file' }),
    changeCredentials: async () => ({ path: `/stores/${STORE}/credentials`, refused: 'not_found' }),
    removeStore: async () => ({ path: `/stores/${STORE}/remove`, refused: 'settings_in_file' }),
    rotateApiKey: async () => ({ refused: 'settings_in_file' }),
    putAlertChannel: async () => ({ path: '/alert-channels/duty', refused: 'settings_in_file' }),
    removeAlertChannel: async () => ({ path: '/alert-channels/duty/remove', refused: 'not_found' }),
    previewPrices: async () => ({ path: `/stores/${STORE}/price-preview` }),
    createToken: async () => ({}),
    removePerson: async (world) => {
      await world.ask('POST', '/console/links', { body: { name: 'anna', role: 'viewer' } })
      return {}
    },
    createWebhook: async () => ({}),
    addWebhook: async () => ({}),
    testWebhook: async (world) => {
      await world.ask('POST', '/webhooks', { body: { url: 'https://quayside.example' } })
      return {}
    },
    rotateWebhook: async (world) => {
      await world.ask('POST', '/webhooks', { body: { url: 'https://quayside.example' } })
      return {}
    },
  }
  const bodies = objects.flatMap(([at, { operationId, requestBody }]) => {
    const content = (requestBody as { content: Record<string, { schema: { $ref: string } }> } | undefined)?.content
    const schema = content?.['application/json']?.schema
    if (!schema || !at.startsWith('#/paths/')) return []
    const path = at.replace(/^#\/paths\//, '').replace(/\/post$/, '')
    return { name: String(operationId), path, examples: (schemas.at(schema.$ref).value.examples ?? []) as object[] }
  })

  test.each(bodies)('of the body of $name works against the sandbox', async ({ name, path, examples }) => {
    expect(examples).not.toEqual([])
    for (const example of examples) {
      const world = await openApi()
      await world.offers()
      const { known, refused, token = world.tokens.owner, ...at } = (await ready[name]?.(world)) ?? {}
      const target = at.path ?? path
      const evidence = await world.ask('GET', target.replace(/decision$/, 'evidence'))
      const headers = { 'if-match': `"${evidence.body.data?.evidenceVersion}"` }
      const answer = await world.ask('POST', target, { token, body: { ...example, ...known }, headers })
      if (refused) expect(answer.body.error.code).toBe(refused)
      else expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
    }
  })

  test('of an order brings its licence keys', async () => {
    const world = await openApi()
    await world.offers()
    const token = world.tokens.store
    expect((await world.ask('POST', '/orders', { token, body: orderExample })).status).toBe(202)
    await world.pass(10_000)
    expect(world.shop.keys().get('1001/1')).toHaveLength(2)
    expect((await world.ask('POST', '/orders', { token, body: orderExample })).body.data.state).toBe('fulfilled')
  })
})
