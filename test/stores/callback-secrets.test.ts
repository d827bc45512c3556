/** The secret that callbacks to a store are signed with, and how it is changed without losing one. */
import { describe, expect, test } from 'vitest'
import { audit, callbackSecrets } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { backendStore } from '../../src/stores/backend/backend.ts'
import { openCallbackSecrets } from '../../src/stores/backend/signature.ts'
import { type ApiWorld, OTHER_STORE, openApi } from '../support/api-world.ts'
import { run, widest } from '../support/cli-run.ts'
import { startShop } from '../support/recording-store.ts'
import { STORE } from '../support/test-app.ts'

const DAY_MS = 86_400_000

const rotate = (world: ApiWorld, body: object = {}, token = world.tokens.admin) =>
  world.ask('POST', `/stores/${STORE}/rotate-secret`, { token, body })

const secretIn = ({ body }: Awaited<ReturnType<typeof rotate>>): string => String(body.data.secret)

/** Whether a shop that has only this secret accepts what Quayside signs now. */
async function accepts(world: ApiWorld, secret: string): Promise<boolean> {
  const { now } = world
  const shop = await startShop({ secret, now })
  const secrets = () => world.callbackSecrets.of(STORE)
  const store = backendStore({ id: STORE, callbackUrl: shop.url, secretsOf: secrets, now, newId: () => 'test' })
  const [finding] = await store.test()
  await Promise.all([store.close(), shop.close()])
  return finding?.state === 'ok'
}

describe('a new callback secret', () => {
  test('loses no callback: both secrets verify until the old one ends, then the new one alone', async () => {
    const world = await openApi()
    const orderId = await world.buy('1001')
    const rotated = await rotate(world)
    expect(rotated.status).toBe(201)
    expect(rotated.body.data).toMatchObject({
      store: STORE,
      generation: 2,
      previousUntil: new Date(world.now() + 7 * DAY_MS).toISOString(),
    })
    const secret = secretIn(rotated)
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)

    // The shop of the app still has the old one.
    await world.pass(60_000)
    expect(await world.state(orderId)).toBe('fulfilled')
    expect(world.shop.refused()).toBe(0)
    expect(await accepts(world, secret)).toBe(true)

    world.move(7 * DAY_MS - 60_000)
    expect(await accepts(world, secret)).toBe(true)
    expect(await world.store.test()).toMatchObject([{ state: 'failed', detail: expect.stringContaining('401') }])
  })

  test('is one of several signatures in one header, the newest first', async () => {
    const world = await openApi()
    const one = secretIn(await rotate(world))
    const two = secretIn(await rotate(world, { overlapHours: 1 }))
    const texts = world.callbackSecrets.of(STORE).map((secret) => `whsec_${secret.toString('base64')}`)
    expect(texts).toEqual([two, one, expect.stringMatching(/^whsec_/)])
    // Those before end with the period of the newest.
    world.move(3_600_000)
    expect(world.callbackSecrets.of(STORE)).toHaveLength(1)
    expect(world.callbackSecrets.of(OTHER_STORE)).toHaveLength(1)
  })

  test('with an overlap of 0 takes the old ones out of use at once', async () => {
    const world = await openApi()
    const first = secretIn(await rotate(world))
    const second = secretIn(await rotate(world, { overlapHours: 0 }))
    expect(await accepts(world, second)).toBe(true)
    expect(await accepts(world, first)).toBe(false)
    expect(await world.store.test()).toMatchObject([{ state: 'failed' }])
  })

  test('is the same after a restart, and is stored nowhere', async () => {
    const world = await openApi()
    const secret = secretIn(await rotate(world))
    const reopened = await openCallbackSecrets(world.ordering)
    expect(reopened.of(STORE)).toEqual(world.callbackSecrets.of(STORE))
    const rows = await world.db.query(build.select().from(callbackSecrets))
    expect(rows).toEqual([
      { store: STORE, generation: 2, createdAt: world.now(), previousUntil: world.now() + 7 * DAY_MS },
    ])
    const records = await world.db.query(build.select().from(audit))
    expect(records).toContainEqual(
      expect.objectContaining({
        action: 'store.rotate_secret',
        subject: STORE,
        actor: expect.stringMatching(/^admin/),
      }),
    )
    expect(JSON.stringify([records, world.lines])).not.toContain(secret)
  })

  test('is given again by a rotation after a restore from a backup that is older', async () => {
    const world = await openApi()
    const secret = secretIn(await rotate(world))
    await world.db.commit([{ statement: build.delete(callbackSecrets), rows: 1 }])
    const restored = await openCallbackSecrets(world.ordering)
    expect(restored.of(STORE)).toHaveLength(1)
    expect((await restored.rotate(STORE, DAY_MS, 'anna')).secret.reveal()).toBe(secret)
  })

  test('is for admins, and for a store that there is', async () => {
    const world = await openApi()
    for (const token of [world.tokens.operator, world.tokens.viewer, world.tokens.store]) {
      expect((await rotate(world, {}, token)).status).toBe(403)
    }
    expect((await world.ask('POST', '/stores/nowhere-12345678/rotate-secret', { body: {} })).status).toBe(404)
    expect((await rotate(world, { overlapHours: 721 })).body.error.fields).toMatchObject([{ field: 'overlapHours' }])
    expect(world.callbackSecrets.of(STORE)).toHaveLength(1)
  })

  test('is refused while four are valid, but for one that ends them all', async () => {
    const world = await openApi()
    for (let n = 0; n < 3; n += 1) expect((await rotate(world)).status).toBe(201)
    expect(await rotate(world)).toMatchObject({ status: 409, body: { error: { code: 'too_many_secrets' } } })
    expect((await rotate(world, { overlapHours: 0 })).status).toBe(201)
    expect(world.callbackSecrets.of(STORE)).toHaveLength(1)
  })

  test('asked for twice at once is made once', async () => {
    const world = await openApi()
    const rotations = [1, 2].map(() => world.callbackSecrets.rotate(STORE, DAY_MS, 'anna'))
    const [made, refused] = (await Promise.allSettled(rotations)).sort((one) => (one.status === 'fulfilled' ? -1 : 1))
    expect(made).toMatchObject({ status: 'fulfilled', value: { generation: 2 } })
    expect(refused).toMatchObject({ reason: { code: 'conflict', reason: 'rotated_meanwhile' } })
    expect(world.callbackSecrets.of(STORE)).toHaveLength(2)
  })

  test('is shown by status and by the list of stores, without its text', async () => {
    const world = await openApi()
    const standing = async (path: string, key: string) => {
      const { body } = await world.ask('GET', path, { token: world.tokens.viewer })
      const stores = (path === '/status' ? body.data.stores : body.data.items) as Record<string, unknown>[]
      return stores.find((store) => store[key] === STORE)?.callbackSecret
    }
    expect(await standing('/stores', 'id')).toEqual({ generation: 1, changedAt: null, previousUntil: null })
    await rotate(world, { overlapHours: 24 })
    const at = new Date(world.now()).toISOString()
    const shown = { generation: 2, changedAt: at, previousUntil: new Date(world.now() + DAY_MS).toISOString() }
    expect(await standing('/stores', 'id')).toEqual(shown)
    expect(await standing('/status', 'store')).toEqual(shown)
  })
})

describe('quayside stores', () => {
  test('list shows what a store is called, where it is, its listings and the age of its secret', async () => {
    const world = await openApi()
    const list = (...more: string[]) => {
      const argv = ['stores', 'list', '--url', world.url, '--token', world.tokens.owner, ...more]
      return run(argv, { terminal: true, now: world.now })
    }
    const [first] = JSON.parse((await list('--json')).stdout).items
    expect(first).toMatchObject({
      id: STORE,
      kind: 'backend',
      name: expect.any(String),
      address: expect.any(String),
    })
    const before = (await list()).stdout
    expect(before).toMatch(/^ID +NAME +KIND +ADDRESS +SECRET +LISTINGS\n/)
    expect(before).toMatch(new RegExp(`^${STORE} +${first.name} +backend +http\\S+ +first +none$`, 'm'))
    expect(widest(before)).toBeLessThanOrEqual(80)
    await rotate(world, { overlapHours: 24 })
    world.move(3_600_000)
    const after = (await list()).stdout
    expect(after).toMatch(new RegExp(`^${STORE} .* 1 h old +none$`, 'm'))
    expect(after.replaceAll(/\s+/g, ' ')).toMatch(
      new RegExp(`${STORE}: callbacks are signed with secret 2, and with the old one until .*Z \\(in 23 h\\)`),
    )
    expect(widest(after)).toBeLessThanOrEqual(80)
  })

  test('list shows no credentials and no query of an address', async () => {
    const world = await openApi()
    const [store] = world.api.stores
    Object.assign(store ?? {}, { address: 'https://shop:secret-1@shop.example/hooks?token=secret-2' })
    const { body } = await world.ask('GET', '/stores', { token: world.tokens.viewer })
    expect(body.data.items?.[0]?.address).toBe('https://shop.example/hooks')
  })

  /** @returns what a command writes that speaks to this service as its owner */
  const runOn = (world: ApiWorld, argv: string[]) =>
    run(argv, { env: { QUAYSIDE_URL: world.url, QUAYSIDE_TOKEN: world.tokens.owner }, now: world.now })
  const command = (world: ApiWorld, ...argv: string[]) => runOn(world, ['stores', ...argv])

  test('rotate-secret prints the new secret once, and until when the old one is valid', async () => {
    const world = await openApi()
    const done = await command(world, 'rotate-secret', STORE, '--overlap-hours', '48')
    expect(done).toMatchObject({ exitCode: 0, stderr: '' })
    const secret = /whsec_\S+/.exec(done.stdout)?.[0] ?? ''
    expect(await accepts(world, secret)).toBe(true)
    expect(done.stdout).toContain('it is not shown again')
    expect(done.stdout).toContain('in 2 days)')
  })

  test('takes the name before the dash for the store, where one store has it', async () => {
    const world = await openApi()
    expect(await command(world, 'rotate-secret', STORE.slice(0, -9))).toMatchObject({ exitCode: 0 })
    expect(world.callbackSecrets.of(STORE)).toHaveLength(2)
    const unknown = await command(world, 'rotate-secret', 'nowhere')
    expect(unknown.exitCode).toBe(4)
    expect(unknown.stderr).toContain(`there is no store nowhere; there are ${STORE}, ${OTHER_STORE}`)
  })

  test('list shows which generation is in use and until when the one before is valid', async () => {
    const world = await openApi()
    await rotate(world, { overlapHours: 48 })
    const { stdout } = await command(world, 'list')
    const [, own = '', other = ''] = stdout.split('\n')
    expect(own).toContain(STORE)
    expect(own).toMatch(/ 0 s old /)
    expect(other).toMatch(/ first /)
    expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
      new RegExp(`${STORE}: callbacks are signed with secret 2, and with the old one until .*in 2 days\\)`),
    )
    const status = await runOn(world, ['status'])
    expect(status.stdout).toMatch(new RegExp(`Old secret +of ${STORE}, valid until .*in 2 days\\)`))
  })
})
