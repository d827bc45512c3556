/** What every list of the console has: a time, how many entries there are, pages back and forth, and a file of what is shown. */
import { expect, test } from 'vitest'
import { commonTimes } from '../../src/domain/figures.ts'
import { audited } from '../../src/storage/evidence.ts'
import { openApi } from '../support/api-world.ts'
import { auditOf, peopleOf } from '../support/console-data.ts'
import { STORE } from '../support/test-app.ts'

const DAY = 86_400_000

const worldOf = async () => {
  const world = await openApi()
  const offers = await world.offers()
  const people = peopleOf(world)
  const read = async (path: string) => (await people.page('viewer', path)).text
  const write = (actor: string, detail: string) =>
    world.db.commit([audited(world.access, actor, 'freeze', 'buying', detail)])
  return { ...world, ...people, read, write, sku: offers[0]?.sku ?? '' }
}

/** Where the link of a page with this text leads. */
function linkIn(markup: string, text: string): string {
  const [, to] = new RegExp(`<a(?=[^>]*? href="([^"]+)")[^>]*>${text}</a>`).exec(markup) ?? []
  if (to === undefined) throw new Error(`the page has no link "${text}"`)
  return to.replaceAll('&amp;', '&')
}

const detailsIn = (markup: string): string[] => [...markup.matchAll(/>(entry \d+)</g)].map(([, detail = '']) => detail)

test('the times of a list are days in UTC, also over the end of a month and of a year', () => {
  expect(commonTimes(Date.UTC(2026, 0, 1, 23, 59))).toEqual({
    Today: { from: '2026-01-01', to: '2026-01-02' },
    Yesterday: { from: '2025-12-31', to: '2026-01-01' },
    'Last 7 days': { from: '2025-12-26', to: '2026-01-02' },
    'This month': { from: '2026-01-01', to: '2026-02-01' },
    'Last month': { from: '2025-12-01', to: '2026-01-01' },
  })
})

test('a list is narrowed to a day by a link that can be sent to others, and says how many entries the day has', async () => {
  const { read, write, move } = await worldOf()
  for (const day of [1, 2, 3]) {
    await write('ann', `entry ${day}`)
    if (day === 2) await write('bob', 'entry 9')
    if (day < 3) move(DAY)
  }
  const all = await read('/audit?action=freeze')
  expect(all).toContain('>4 entries<')
  expect(all).toContain('From (UTC)')
  const yesterday = linkIn(all, 'Yesterday')
  expect(yesterday).toMatch(/^\/audit\?action=freeze&from=\d{4}-\d\d-\d\d&to=\d{4}-\d\d-\d\d$/)
  const text = await read(yesterday)
  expect(detailsIn(text)).toEqual(['entry 9', 'entry 2'])
  expect(text).toContain('>2 entries<')
  expect(text).toContain('aria-current="true">Yesterday</a>')
  expect(detailsIn(await read(linkIn(text, 'Today')))).toEqual(['entry 3'])
  expect(linkIn(text, 'Any time')).toBe('/audit?action=freeze')
  expect(await read('/reviews?from=2020-01-01&to=2020-01-02')).toContain('Nothing in this time')
})

test('what a colleague did yesterday is two clicks away', async () => {
  const { read, write, move } = await worldOf()
  await write('ann (console 01k)', 'entry 1')
  await write('bob (token 01m)', 'entry 2')
  move(DAY)
  await write('ann', 'entry 3')
  const audit = await read(linkIn(await read('/overview'), 'Audit log'))
  expect(audit).toMatch(/<dt>ann<\/dt>.*<dt>bob<\/dt>/s)
  const [, to = ''] = /href="([^"]+)" aria-label="Yesterday: ann"/.exec(audit) ?? []
  expect(detailsIn(await read(to.replaceAll('&amp;', '&')))).toEqual(['entry 1'])
})

test('a list goes back as exactly as it goes on, whatever arrives meanwhile', async () => {
  const { read, write } = await worldOf()
  for (let number = 100; number < 220; number += 1) await write('ann', `entry ${number}`)
  const first = await read('/audit?actor=ann')
  expect(first).not.toContain('Previous page')
  const second = await read(linkIn(first, 'Next page'))
  const third = await read(linkIn(second, 'Next page'))
  expect(detailsIn(third)).toHaveLength(20)
  expect(third).not.toContain('Next page')
  await write('ann', 'entry 220')
  const back = await read(linkIn(third, 'Previous page'))
  expect(detailsIn(back)).toEqual(detailsIn(second))
  const backAgain = await read(linkIn(back, 'Previous page'))
  expect(detailsIn(backAgain)).toEqual(detailsIn(first))
  expect(detailsIn(await read(linkIn(backAgain, 'Previous page'))), 'what has arrived since').toEqual(['entry 220'])
  expect(linkIn(third, 'First page')).toBe('/audit?actor=ann')
  expect(detailsIn(await read(linkIn(backAgain, 'Next page')))).toEqual(detailsIn(second))
})

test("this month's orders are a file of what the list shows, three clicks away, and the audit has it", async () => {
  const world = await worldOf()
  await world.order('=1+1', [{ sku: world.sku }])
  world.move(40 * DAY)
  await world.order('=2+2,"x"', [{ sku: world.sku }])
  await world.order('1003', [{ sku: world.sku }])
  const orders = await world.read(linkIn(await world.read('/overview'), 'Orders'))
  expect(orders).toContain('>3 orders<')
  const month = await world.read(linkIn(orders, 'This month'))
  const link = linkIn(month, 'Download as CSV')
  const { status, headers, text } = await world.page('viewer', link)
  expect(status).toBe(200)
  expect(headers).toMatchObject({
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': 'attachment; filename="orders.csv"',
    'cache-control': 'no-store',
  })
  expect(
    text
      .trim()
      .split('\r\n')
      .map((line) => line.split(',', 2)[1]),
  ).toEqual(['reference', '1003', `"'=2+2`])
  expect(text, 'no spreadsheet runs it').toContain(`,"'=2+2,""x""",`)
  const [entry] = (await auditOf(world)).filter(({ action }) => action === 'order.export')
  expect(entry).toMatchObject({
    actor: expect.stringMatching(/^mira /),
    detail: expect.stringMatching(/^orders from /),
  })
  const found = await world.page('viewer', `/orders.csv?q=1003&store=${STORE}&state=open`)
  expect(found.text.trim().split('\r\n')).toHaveLength(2)
  expect((await world.page('viewer', '/orders.csv?state=none')).status).toBe(400)
})

test('a time that is no time is refused, with what would be one', async () => {
  const { page } = await worldOf()
  for (const path of ['/orders?from=yesterday', '/orders?from=2026-13-01', '/syncs?to=1', '/deliveries.csv?from=x']) {
    const { status, text } = await page('viewer', path)
    expect([status, text.includes('must be an instant such as 2026-03-01T09:30:00Z')], path).toEqual([400, true])
  }
})

test('a page beyond the end of a list leads back to its beginning', async () => {
  const { read } = await worldOf()
  expect(linkIn(await read('/audit?before=0'), 'First page')).toBe('/audit')
  expect(linkIn(await read('/syncs?after=zzz'), 'First page')).toBe('/syncs')
})
