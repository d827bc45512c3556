import { describe, expect, test } from 'vitest'
import { deliveries } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { openApi } from '../support/api-world.ts'
import { auditOf, insertDeliveries, peopleOf } from '../support/console-data.ts'
import { STORE } from '../support/test-app.ts'

const worldOf = async () => {
  const world = await openApi()
  return { ...world, ...peopleOf(world) }
}

describe('the list of deliveries', () => {
  test('says that nothing has come yet, and how something comes', async () => {
    const { page } = await worldOf()
    const { text } = await page('viewer', '/deliveries')
    expect(text).toContain('No deliveries yet')
    expect(text).toContain('quayside webhooks create')
    expect(text).toContain('Every delivery that was taken is dealt with.')
  })

  test('says first what a person should look at, and filters by state, event and time', async () => {
    const world = await worldOf()
    const [dead] = await insertDeliveries(world, [
      { state: 'dead', event: 'order.completed', lastError: 'the supplier answered 503', attempts: 10 },
      { state: 'applied', event: 'product.price_changed' },
    ])
    const all = (await world.page('viewer', '/deliveries')).text
    expect(all).toContain('A person should look at <a href="/deliveries?state=dead">1 dead letter</a>.')
    expect(all).toContain('the supplier answered 503')
    const only = (await world.page('viewer', '/deliveries?state=dead')).text
    expect(only).toContain(`/deliveries/${dead}`)
    expect(only).not.toContain('product.price_changed</a>')
    expect((await world.page('viewer', '/deliveries?event=product.price_changed')).text).not.toContain('503')
    const later = new Date(world.now() + 60_000).toISOString().slice(0, 16)
    expect((await world.page('viewer', `/deliveries?from=${later}`)).text).toContain('No delivery matches')
    expect((await world.page('viewer', `/deliveries?to=${later}`)).text).toContain(`/deliveries/${dead}`)
    expect((await world.page('viewer', '/deliveries?state=x')).status).toBe(400)
  })

  test('a delivery about a purchase leads neither to it nor to its order', async () => {
    const world = await worldOf()
    await world.buy('1001')
    await world.pass(10_000)
    const [purchase] = (await world.ask('GET', '/purchases?limit=1')).body.data.items
    const [supplierOrderId, purchaseId] = [String(purchase?.supplierOrderId), String(purchase?.id)]
    const about = { state: 'applied', event: 'order.completed', supplierOrderId, purchaseId } as const
    const [id = '', other = ''] = await insertDeliveries(world, [about, { ...about, purchaseId: null }])
    const { text } = await world.page('viewer', `/deliveries/${id}`)
    expect(text).toContain(`href="/orders/${STORE}/1001"`)
    expect(text).toContain(`href="/reviews/${purchaseId}"`)
    expect((await world.page('viewer', `/deliveries/${other}`)).text).not.toContain(`href="/orders/`)
    expect((await world.page('viewer', '/deliveries')).text).toContain(`href="/orders?q=${supplierOrderId}"`)
  })

  test('goes on to the next page with the same filters', async () => {
    const world = await worldOf()
    await insertDeliveries(
      world,
      Array.from({ length: 51 }, () => ({ state: 'dead', event: 'order.completed' })),
    )
    const { text } = await world.page('viewer', '/deliveries?state=dead')
    const [, next = ''] = /href="([^"]+)" rel="next"/.exec(text) ?? []
    expect(next).toMatch(/^\/deliveries\?state=dead&amp;before=\w{26}$/)
    expect(
      (await world.page('viewer', next.replace('&amp;', '&'))).text.match(/href="\/deliveries\/\w{26}"/g),
    ).toHaveLength(1)
  })

  test('replays those that are selected, and keeps the filters', async () => {
    const world = await worldOf()
    const ids = await insertDeliveries(
      world,
      Array.from({ length: 3 }, () => ({ state: 'dead', event: 'order.completed', attempts: 10 })),
    )
    const one = await world.act('operator', '/deliveries/replay?state=dead', { row: `a delivery\t${ids[0]}` })
    expect(one.headers.location).toBe('/deliveries?state=dead')
    expect((await world.page('operator', '/deliveries?state=dead')).text).toContain(
      'One delivery is in the inbox again.',
    )
    const states = async () =>
      (await world.db.query(build.select().from(deliveries))).map(({ id, state, attempts }) => [id, state, attempts])
    expect(await states()).toEqual([[ids[0], 'stored', 0], ...ids.slice(1).map((id) => [id, 'dead', 10])])
    await world.act('operator', '/deliveries/replay', {
      row: ids.slice(1).map((id) => `a delivery\t${id}`),
    })
    expect((await world.page('operator', '/deliveries')).text).toContain('Two deliveries are in the inbox again.')
    expect((await states()).map(([, state]) => state)).toEqual(['stored', 'stored', 'stored'])
    expect((await auditOf(world)).filter(({ action }) => action === 'delivery.replay')).toHaveLength(3)
  })

  test('asks to select some, beside the field, where none is selected', async () => {
    const world = await worldOf()
    await insertDeliveries(world, [{ state: 'dead' }])
    const answer = await world.act('operator', '/deliveries/replay?state=dead', { 'a field': '' })
    expect(answer.status).toBe(400)
    expect(answer.text).toContain('No row is selected: select some in the list above.')
    expect(answer.text).toContain('class="act" open')
    expect(await auditOf(world)).toEqual(
      expect.not.arrayContaining([expect.objectContaining({ action: 'delivery.replay' })]),
    )
  })

  test('offers a viewer no replay, and says why', async () => {
    const world = await worldOf()
    await insertDeliveries(world, [{ state: 'dead' }])
    const { text } = await world.page('viewer', '/deliveries')
    expect(text).toContain('Replay: it needs the role operator; you are viewer.')
    expect(text).not.toContain('type="checkbox"')
  })
})

describe('one delivery', () => {
  test('says why it stopped, and is replayed', async () => {
    const world = await worldOf()
    const [id = ''] = await insertDeliveries(world, [
      { state: 'dead', event: 'order.completed', lastError: '<b>503</b>', attempts: 10 },
    ])
    const { text } = await world.page('operator', `/deliveries/${id}`)
    expect(text).toContain('Why it stopped')
    expect(text).toContain('&lt;b&gt;503&lt;/b&gt;.')
    expect(text).toContain('Given up after 10 attempts')
    expect((await world.act('operator', `/deliveries/${id}/replay`, {})).headers.location).toBe(`/deliveries/${id}`)
    expect((await world.page('operator', `/deliveries/${id}`)).text).toContain('in the inbox again')
    await world.settle()
    expect((await world.page('operator', `/deliveries/${id}`)).text).not.toContain('Why it stopped')
  })

  test('shows its body to an admin once, by a step of its own that is audited', async () => {
    const world = await worldOf()
    const [id = ''] = await insertDeliveries(world, [{ state: 'applied', body: '{"note":"marker-77"}' }])
    const page = await world.page('admin', `/deliveries/${id}`)
    expect(page.text).toContain('20 bytes, sealed in the database.')
    expect(page.text).not.toContain('marker-77')
    const shown = await world.act('admin', `/deliveries/${id}/reveal`, {})
    expect(shown.status).toBe(200)
    expect(shown.text).toContain('marker-77')
    expect(shown.text).toContain('Shown this once')
    expect((await world.page('admin', `/deliveries/${id}`)).text).not.toContain('marker-77')
    expect(await auditOf(world)).toContainEqual(
      expect.objectContaining({
        action: 'delivery.reveal',
        subject: id,
        actor: expect.stringMatching(/^mira \(console /),
      }),
    )
    const refused = await world.act('operator', `/deliveries/${id}/reveal`, {})
    expect(refused.status).toBe(403)
    expect((await world.page('operator', `/deliveries/${id}`)).text).toContain(
      'Reveal the body: it needs the role admin; you are operator.',
    )
  })

  test('whose body is deleted says so, and is not replayed into a dead letter', async () => {
    const world = await worldOf()
    const [id = ''] = await insertDeliveries(world, [{ state: 'applied', body: null }])
    const { text } = await world.page('admin', `/deliveries/${id}`)
    expect(text).toContain('Deleted: bodies are kept for thirty days, those of stores for seven.')
    expect(text).toContain('Replay: the body was deleted')
    expect((await world.act('admin', `/deliveries/${id}/replay`, {})).status).toBe(409)
    expect((await world.act('admin', `/deliveries/${id}/reveal`, {})).status).toBe(409)
    const many = await world.ask('POST', '/deliveries/replay', { body: { ids: [id, 'nothing'] } })
    expect(many.body.data).toEqual({ replayed: [], left: [id, 'nothing'] })
  })

  test('that is not there is a page that says so', async () => {
    const { page } = await worldOf()
    const { status, text } = await page('viewer', '/deliveries/nothing')
    expect(status).toBe(404)
    expect(text).toContain('There is nothing here')
  })
})

describe('refused deliveries', () => {
  test('are counted by their reason, and an admin sees headers and body of those that are kept', async () => {
    const world = await worldOf()
    expect((await world.page('viewer', '/deliveries/refused')).text).toContain('Nothing was refused')
    await world.ask('POST', '/webhooks', { body: { url: world.url } })
    await world.act('admin', '/deliveries/refused/capture', {})
    const receive = world.captures.watch(world.runtime.inbox.receive)
    const body = Buffer.from('a body')
    await receive({ path: '/webhooks/supplier', headers: { 'x-probe': ['forged-1'] }, body })
    const viewer = (await world.page('viewer', '/deliveries/refused')).text
    expect(viewer).toContain('1 request was refused')
    expect(viewer).toContain('missing_signature')
    expect(viewer).toContain('need the role admin; you are viewer.')
    const { text } = await world.page('admin', '/deliveries/refused')
    const [, id = ''] = /name="id" value="(\w+)"/.exec(text) ?? []
    expect((await world.act('operator', '/deliveries/refused/reveal', { id })).status).toBe(403)
    const shown = await world.act('admin', '/deliveries/refused/reveal', { id })
    expect(shown.text).toContain('x-probe: forged-1')
    expect(shown.text).toContain('a body')
    expect(await auditOf(world)).toContainEqual(expect.objectContaining({ action: 'capture.reveal', subject: id }))
  })
})
