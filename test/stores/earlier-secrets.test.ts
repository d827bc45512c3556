/** The secret that a Shopify shop had before a rotation: how long deliveries may be signed with it. */
import { createHmac } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { Secret } from '../../src/secret.ts'
import { earlierSecretsSince } from '../../src/stores/shop-secrets.ts'
import { shopifyStore } from '../../src/stores/shopify/shopify.ts'
import { memoryDatabase, TEST_NOW } from '../support/database.ts'

const HOUR_MS = 3_600_000

function installation() {
  const db = memoryDatabase()
  const clock = { now: TEST_NOW }
  const body = Buffer.from('{"id":1}')
  /** Starts the service with these secrets. @returns whether a delivery that is signed with this one counts */
  const start = async (secret: string, previousSecret?: string) => {
    const credentials = {
      key: new Secret('a1b2c3d4'),
      secret: new Secret(secret),
      ...(previousSecret === undefined ? {} : { previousSecret: new Secret(previousSecret) }),
    }
    const now = () => clock.now
    const since = await earlierSecretsSince({ db, now }, [{ id: 'north', credentials }])
    const store = shopifyStore({
      url: 'https://north.myshopify.com',
      apiVersion: '2026-07',
      credentials,
      rotatedAt: since.get('north'),
      settings: {
        name: 'North',
        create: null,
        ownsSalePrice: false,
        location: null,
        otherLocations: 'warn',
        holdAtRisk: null,
        retryTag: 'quayside-retry',
        buyTestOrders: false,
        currency: 'EUR',
        metafieldNamespace: null,
      },
      now,
    })
    onTestFinished(() => store.close())
    return (signedWith: string) => {
      const signature = createHmac('sha256', signedWith).update(body).digest('base64')
      return store.verify?.({ headers: { 'x-shopify-hmac-sha256': [signature] }, body }).outcome
    }
  }
  return { clock, start }
}

test('the hour of the secret before a rotation does not begin again at each start of the process', async () => {
  const { clock, start } = installation()
  const first = await start('shpss_new', 'shpss_old')
  expect(first('shpss_old')).toBe('authentic')
  clock.now += HOUR_MS - 1
  expect((await start('shpss_new', 'shpss_old'))('shpss_old')).toBe('authentic')
  clock.now += 1
  const later = await start('shpss_new', 'shpss_old')
  expect(later('shpss_old')).toBe('not_authentic')
  expect(later('shpss_new')).toBe('authentic')
})

test('the hour begins with each rotation', async () => {
  const { clock, start } = installation()
  await start('shpss_2', 'shpss_1')
  clock.now += 2 * HOUR_MS
  await start('shpss_2')
  const verifies = await start('shpss_3', 'shpss_2')
  expect([verifies('shpss_3'), verifies('shpss_2'), verifies('shpss_1')]).toEqual([
    'authentic',
    'authentic',
    'not_authentic',
  ])
})

test('the hour begins again where one rotation follows the other at once', async () => {
  const { clock, start } = installation()
  await start('shpss_2', 'shpss_1')
  clock.now += HOUR_MS - 1
  await start('shpss_3', 'shpss_2')
  clock.now += HOUR_MS - 1
  const verifies = await start('shpss_3', 'shpss_2')
  expect([verifies('shpss_2'), verifies('shpss_1')]).toEqual(['authentic', 'not_authentic'])
})
