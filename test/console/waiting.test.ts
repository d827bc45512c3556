/** The customers who wait, on the first page and on one of their own. */
import { expect, test } from 'vitest'
import { peopleOf } from '../support/console-data.ts'
import { openWaiting } from '../support/waiting-world.ts'

/** What a person reads of a page. */
const readIn = (markup: string): string =>
  markup
    .replaceAll(/<\/?time[^>]*>/g, '')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')

/** The row of an order, as it is read. */
function rowOf(markup: string, number: string): string {
  const row = markup.split('<tr role="row">').find((one) => readIn(one).trimStart().startsWith(number)) ?? ''
  return readIn(row).trim()
}

test('each customer has a row with product, money, since when, the cause, and one thing that helps', async () => {
  const world = await openWaiting()
  const { text } = await peopleOf(world).page('operator', '/waiting')
  expect(readIn(text)).toContain('13 customers wait for a key, the longest since Tue 14 November, 22:13.')
  expect(readIn(text)).toContain('Eight wait for you. Five go on by themselves.')
  expect(rowOf(text, '1007-stock')).toMatch(
    /^1007-stock Main store .+ 1 of 1 key 6.37 EUR 00:16 3 min Out of stock at supplier .*next try 00:20 Try now of order 1007-stock$/,
  )
  expect(rowOf(text, '1012-away')).toContain(
    'The store does not answer the key is here; answered 500, 25.49 EUR is charged, next try 00:25 Send again',
  )
  expect(text, 'no id of a request').not.toMatch(/req_/)
  const navigation = text.slice(text.indexOf('<nav id="menu"'), text.indexOf('<main'))
  expect(readIn(navigation)).toContain('Customers waiting : 13 waiting')
})

test('a tab has the list of its cause, and the first page leads to it', async () => {
  const world = await openWaiting()
  const { page } = peopleOf(world)
  const overview = (await page('viewer', '/overview')).text
  expect(overview).toContain('<a href="/waiting?cause=balance">Balance 1</a>')
  expect(overview).toContain('<a href="/waiting">Five more lines wait</a>')
  const balance = (await page('viewer', '/waiting?cause=balance')).text
  expect(rowOf(balance, '1009-balance')).toContain('Balance too low')
  expect(balance).not.toContain('1007-stock')
  expect((await page('viewer', '/waiting?cause=you')).text).not.toContain('1007-stock')
  expect(readIn((await page('viewer', '/waiting?cause=frozen')).text)).toContain('No customer waits for this cause')
})

test('a button without "…" acts at once, and comes back to the page that it was on', async () => {
  const world = await openWaiting()
  const { page, act } = peopleOf(world)
  const { body } = await world.ask('GET', '/waiting?order=1012-away')
  const update = String(body.data.items[0]?.updateId)
  for (const at of ['/overview', '/waiting']) {
    const { text } = await page('operator', at)
    expect(text).toContain(`<form method="post" action="${at}/check">`)
  }
  const sent = await act('operator', '/waiting/redeliver', { update })
  expect([sent.status, sent.headers.location]).toEqual([303, '/waiting'])
  expect(readIn((await page('operator', '/waiting')).text)).toContain('Queued The update goes to the store now.')
  await world.settle()
  world.move(3_000)
  expect((await page('operator', '/waiting')).text).not.toContain('1012-away')
  expect((await act('viewer', '/waiting/redeliver', { update })).status).toBe(403)
  const seen = (await page('viewer', '/waiting')).text
  expect(seen.slice(seen.indexOf('<main'))).not.toContain('<form')
})

test('a button with "…" leads to its form, which is open', async () => {
  const world = await openWaiting()
  const { page } = peopleOf(world)
  const { text } = await page('operator', '/waiting')
  const leadsTo = (number: string): string => {
    const row = text.split('<tr role="row">').find((one) => readIn(one).trimStart().startsWith(number)) ?? ''
    return (/class="button" href="([^"]+)"/.exec(row)?.[1] ?? '').replaceAll('&amp;', '&')
  }
  const openForms = async (number: string) =>
    [
      ...(await page('operator', leadsTo(number).replace(/#.*/, ''))).text.matchAll(
        /<details class="act[^>]* open><summary>([^<]+)/g,
      ),
    ].map(([, summary]) => summary)
  expect(await openForms('1008-ceiling')).toEqual(['Release with a new ceiling…'])
  expect(await openForms('1010-cap')).toEqual(['Release beyond the spend caps…'])
  expect(await openForms(`${world.inShop.failed}`)).toEqual(['Retry…'])
  expect(await openForms(`${world.inShop.held}`)).toEqual(['Continue the order…'])
  expect(await openForms(`${world.inShop.added}`)).toEqual(['Buy what was added to line 3…'])
  expect(leadsTo('1009-balance')).toBe('/balance')
  expect(leadsTo('1001-review')).toMatch(/^\/reviews\/\w{26}$/)
})
