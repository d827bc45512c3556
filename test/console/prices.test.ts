import { describe, expect, test } from 'vitest'
import { type ApiOptions, openApi } from '../support/api-world.ts'
import type { Form } from '../support/console-client.ts'
import { offer, peopleOf } from '../support/console-data.ts'
import { STORE } from '../support/test-app.ts'

async function worldOf(options: ApiOptions = { home: 'database' }) {
  const world = await openApi(options)
  await offer(world, 'a', { name: 'Circuit Kings 25' })
  await offer(world, 'b', { name: 'Orbital Freight', costMinor: 3_500 })
  await world.publish()
  return { ...world, ...peopleOf(world) }
}

/** The fields of a form as a browser sends them. */
function formIn(text: string, action: string): Record<string, string> {
  const form = new RegExp(`<form[^>]* action="${action}"[^>]*>(.*?)</form>`, 's').exec(text)?.[1] ?? ''
  const inputs = [...form.matchAll(/<input [^>]*name="([^"]*)" value="([^"]*)"/g)].map(([, name, value]) => [
    name,
    value,
  ])
  const hidden = [...form.matchAll(/<input type="text" id="[^"]*" name="([^"]*)" value="([^"]*)"/g)]
  const chosen = [...form.matchAll(/<select [^>]*name="([^"]*)">(.*?)<\/select>/gs)].map(([, name, options = '']) => [
    name,
    /value="([^"]*)" selected/.exec(options)?.[1] ?? '',
  ])
  return Object.fromEntries([...inputs, ...hidden.map(([, name, value]) => [name, value]), ...chosen])
}
const wordsIn = (text: string): string => text.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ')

async function previewed(
  world: Awaited<ReturnType<typeof worldOf>>,
  changes: Form,
  role: 'viewer' | 'admin' = 'admin',
) {
  const { text } = await world.page(role, `/prices?store=${STORE}`)
  const answer = await world.act(role, '/prices/preview', {
    ...formIn(text, '/prices/preview'),
    whole: '1',
    ...changes,
  })
  return { ...answer, words: wordsIn(answer.text) }
}

const inStore = { 'markup.percent': '90,0 %' }

describe('the page of prices, without JavaScript,', () => {
  test('shows the rules as a ladder, and what a change of them would do before it is applied', async () => {
    const world = await worldOf()
    const { status, words } = await previewed(world, { ...inStore, 'rounding.endings': '.99, .49' })
    expect(status).toBe(200)
    expect(words).toContain('With these rules 2 prices change, and 2 of them are held.')
    expect(words).toContain('Everything else was 20 %')
    expect(words).toContain('Circuit Kings 25 markup: the cost plus 90 % 10.00 12.00 19.49 48.6 % held +62 %')
    expect(words).toContain('The average margin goes from 16.6 to')
    expect(world.inForce().stores[0]?.pricing.markup.percent, 'nothing is applied').toBe('20')
  })

  test('applies with a reason what was previewed, and undoes it while the revision is the newest', async () => {
    const world = await worldOf()
    const { text } = await previewed(world, { 'markup.percent': '21', 'spendCaps.day': '250.00' })
    const form = formIn(text, '/prices/apply')
    expect((await world.act('admin', '/prices/apply', { ...form, reason: '' })).status).toBe(400)
    expect((await world.act('operator', '/prices/apply', { ...form, reason: 'spring sale' })).status).toBe(403)
    expect((await world.act('admin', '/prices/apply', { ...form, reason: 'spring sale' })).status).toBe(303)
    expect(world.inForce().stores[0]?.pricing.markup.percent).toBe('21')
    expect(world.inForce().spendCaps.day).toBe('250.00')
    const after = await world.page('admin', '/prices')
    expect(wordsIn(after.text)).toMatch(/Applied 0 s ago by mira .*markup\.percent from 20 to 21.*spring sale/)
    expect((await world.page('operator', '/prices')).text).not.toContain('Undo')
    expect(
      (await world.act('admin', '/prices/apply', { ...form, reason: 'once more' })).status,
      'of an old revision',
    ).toBe(409)
    await world.act('admin', '/prices/undo', formIn(after.text, '/prices/undo'))
    expect(world.inForce().stores[0]?.pricing.markup.percent).toBe('20')
    expect(world.inForce().spendCaps.day).toBeNull()
    expect((await world.page('admin', '/prices')).text).not.toContain('/prices/undo')
  })

  test('a kind of prices goes on over its pages', async () => {
    const world = await worldOf()
    for (let index = 0; index < 30; index += 1) await offer(world, `n${index}`, { name: `Product ${index}` })
    const { text, words } = await previewed(world, { 'markup.percent': '21', kind: 'higher' })
    expect(words).toContain('1 to 25 of 32')
    expect(text, 'a listing that the store does not have yet').not.toContain(`/listings/${STORE}/SKU-n1"`)
    const second = await world.act('viewer', '/prices/preview', { ...formIn(text, '/prices/preview'), skip: '25' })
    expect(wordsIn(second.text)).toContain('26 to 32 of 32')
    expect(second.text).toMatch(/value="higher" aria-current="true"/)
  })

  test('adds and removes rules on each rung', async () => {
    const world = await worldOf()
    let { text } = await world.page('admin', '/prices')
    for (const kind of ['products', 'categories', 'bands']) {
      text = (
        await world.act('admin', '/prices/preview', {
          ...formIn(text, '/prices/preview'),
          ...filledIn(text),
          add: kind,
        })
      ).text
    }
    const all = { ...formIn(text, '/prices/preview'), ...filledIn(text) }
    expect(all).toMatchObject({ 'products.0.fixed': '19.99', 'categories.0.percent': '25', 'bands.0.upTo': '10' })
    const rules = await world.act('admin', '/prices/preview', { ...all, whole: '1' })
    expect(wordsIn(rules.text)).toContain('product SKU-a: a fixed price 10.00 12.00 19.99')
    const form = formIn(rules.text, '/prices/apply')
    expect((await world.act('admin', '/prices/apply', { ...form, reason: 'a ladder' })).status).toBe(303)
    expect(world.inForce().stores[0]?.pricing).toMatchObject({
      products: { 'SKU-a': { fixed: '19.99' } },
      categories: { 'Games, Europe': { percent: '25' } },
      bands: [
        { upTo: '10', percent: '30' },
        { percent: '15', flat: '0.50' },
      ],
    })
    const fresh = formIn((await world.page('admin', '/prices')).text, '/prices/preview')
    const without = await world.act('admin', '/prices/preview', { ...fresh, remove: 'products.0' })
    expect(formIn(without.text, '/prices/preview')).not.toHaveProperty('products.0.name')
    expect(wordsIn(without.text)).toContain('You changed 1 rule.')
  })

  test.each([
    ['a markup below the floor', { 'markup.percent': '2', 'margin.percent': '5' }, 'markup.percent'],
    ['bands out of order', { ...bands(['50', '9', ''], ['10', '8', ''], ['', '5', '']) }, 'bands.1.upTo'],
    ['a product that is named twice', { ...products('SKU-a', 'SKU-a') }, 'products.1.name'],
    ['a percentage that is no number', { ...products('SKU.a'), 'products.0.percent': '1,250' }, 'products.0.percent'],
    ['a cap that is no amount', { 'spendCaps.day': 'lots' }, 'spendCaps.day'],
  ])('refuses %s, says it beside the field, and keeps what was typed', async (_what, fields, field) => {
    const world = await worldOf()
    const { text } = await previewed(world, fields)
    const form = { ...formIn(text, '/prices/preview'), reason: 'a test' }
    const answer = field === 'spendCaps.day' ? await world.act('admin', '/prices/apply', form) : { text }
    expect(answer.text).toMatch(new RegExp(`name="${field.replaceAll('.', '\\.')}"[^>]*aria-invalid`))
    expect(formIn(answer.text, '/prices/preview')).toMatchObject(fields)
    expect(answer.text).not.toContain('action="/prices/apply"')
  })

  test('is for reading and trying alone where the rules are in the file, and for a viewer', async () => {
    const file = await worldOf({})
    const { words, text } = await previewed(file, inStore)
    expect(words).toContain('here you can try others, and not apply them. quayside settings adopt')
    expect(words).toContain('With these rules 2 prices change')
    expect(text).not.toContain('action="/prices/apply"')
    const form = { ...formIn(text, '/prices/preview'), reason: 'a test' }
    expect((await file.act('admin', '/prices/apply', form)).status).toBe(409)
    const viewed = await previewed(await worldOf(), inStore, 'viewer')
    expect(viewed.words).toContain('Apply: it needs the role admin; you are viewer.')
  })

  test('has rates with their age where a store sells in another currency', async () => {
    const world = await worldOf()
    const { document, revision } = (await world.ask('GET', '/settings/document')).body.data as never as {
      revision: number
      document: { stores: object[] }
    }
    const rates = [{ from: 'EUR', to: 'USD', rate: '1.0834', validFrom: '2023-11-01' }]
    const stores = document.stores.map((store, index) => (index === 0 ? { ...store, currency: 'USD' } : store))
    await world.ask('POST', '/settings/document', {
      token: world.tokens.admin,
      headers: { 'if-match': `"${revision}"` },
      body: { document: { ...document, stores, rates }, reason: 'dollars' },
    })
    const { words } = await previewed(world, { 'rates.0.rate': '1.1' })
    expect(words).toMatch(/1 EUR in USD for \d+ days was 1\.0834/)
  })
})

function bands(...rows: [upTo: string, percent: string, flat: string][]): Record<string, string> {
  return Object.fromEntries(
    rows.flatMap(([upTo, percent, flat], index) => [
      ...[
        [`bands.${index}.upTo`, upTo],
        [`bands.${index}.percent`, percent],
        [`bands.${index}.flat`, flat],
      ],
    ]),
  )
}
function products(...names: string[]): Record<string, string> {
  const rows = names.map((name, index) => [
    ...[
      [`products.${index}.name`, name],
      [`products.${index}.percent`, '5'],
    ],
    ...[
      [`products.${index}.flat`, ''],
      [`products.${index}.fixed`, ''],
    ],
  ])
  return Object.fromEntries(rows.flat())
}
/** What a person types into the rules that were added. */
function filledIn(text: string): Record<string, string> {
  const typed: Record<string, string> = {
    ...{
      'products.0.name': 'SKU-a',
      'products.0.fixed': '19.99',
      'categories.0.name': 'Games, Europe',
      'categories.0.percent': '25',
    },
    ...{ 'bands.0.upTo': '10', 'bands.0.percent': '30', 'bands.1.percent': '15', 'bands.1.flat': '0.50' },
  }
  return Object.fromEntries(Object.entries(typed).filter(([name]) => text.includes(`name="${name}"`)))
}
