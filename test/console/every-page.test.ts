/** Every page and part of the console, walked by its links and filters: each leads somewhere, and reads its rows by an index. */
import { expect, test } from 'vitest'
import { consolePages } from '../../src/console/pages.ts'
import { routesOf } from '../../src/console/router.ts'
import { signedIn, visit } from '../support/console-client.ts'
import { insertDeliveries } from '../support/console-data.ts'
import { openDay } from '../support/console-day.ts'
import { walkConsole } from '../support/console-walk.ts'
import { tracedDatabase } from '../support/database.ts'
import { STORE } from '../support/test-app.ts'

const routes = routesOf(consolePages)
/** What is typed into each text field: what several rows have, and what none has. */
const searches = ['1001', 'SKU-a', 'nothing-has-this-name']

test('every link, part and filter of every page leads to one, and links lead to every page', async () => {
  const world = await openDay()
  const address = world.pages.address() ?? ''
  for (const role of ['viewer', 'admin'] as const) {
    const cookie = await signedIn(world, role)
    const lost: string[] = []
    const stops = await walkConsole({
      routes,
      searches,
      read: async ({ to, from }) => {
        const asked = await visit(address, to, { cookie })
        // A search with a single hit leads to it.
        const { status, text } =
          asked.status === 303 ? await visit(address, String(asked.headers.location), { cookie }) : asked
        if (status !== 200) lost.push(`${from} leads to ${to}: ${status}`)
        return status === 200 ? text : ''
      },
    })
    expect(lost, role).toEqual([])
    const reached = new Set(stops.map(({ route }) => route?.path))
    const wanted = routes.filter((route) => route.method === 'get' && (role === 'admin' || route.role === 'viewer'))
    expect(wanted.map(({ path }) => path).filter((path) => !reached.has(path))).toEqual([])
  }
})

/** What a person reads: no addresses, and no identifiers that are shown as such. */
const readIn = (markup: string): string =>
  markup.replaceAll(/<(\w+)[^>]* class="id"[^>]*>[^<]*<\/\1>|<(pre|code)\b.*?<\/\2>|<[^>]*>/gs, ' ')

test('listings, orders and deliveries name their store by its id', async () => {
  const world = await openDay({ storeNames: { [STORE]: 'North Games' } })
  await insertDeliveries(world, [{ state: 'applied', source: `stores/${STORE}`, event: 'order.created' }])
  const address = world.pages.address() ?? ''
  const cookie = await signedIn(world, 'admin')
  const named: string[] = []
  const nameless: string[] = []
  await walkConsole({
    // A file has the ids, as a program reads them.
    routes: routes.filter(({ path }) => path !== '/audit' && !path.endsWith('.csv')),
    searches,
    examples: 3,
    read: async ({ to, route }) => {
      if (!route) return ''
      const { text } = await visit(address, to, { cookie })
      if (text.includes('North Games')) named.push(route.path)
      if (readIn(text).includes(STORE)) nameless.push(to)
      return text
    },
  })
  expect(nameless).toEqual([])
  expect(named).toEqual(
    expect.arrayContaining([
      '/dead-letters',
      '/deliveries',
      '/deliveries/:id',
      '/held-prices',
      '/listings',
      '/listings/:store/:variant',
      '/orders/:store/:reference',
      '/orders/:store/:reference/parts/log',
      '/settings',
    ]),
  )
})

/** Tables that stay small: settings, people, what a person started. All others grow with what is sold. */
const SMALL =
  /^(settings|data_keys|webhooks|captures|callback_secrets|tokens|console_links|console_sessions|balance_accounts|publishing|publications|store_readings|alert_channels|late_orders|unattached_orders)$/

/** Counts that read an index of the catalogue or of differences whole: it has few rows beside the orders. */
const countedWhole = ['offers_sold', 'listings_state', 'listings_waiting', 'discrepancies_once']

test('every statement of every page finds its rows by an index', async () => {
  const { database, connection, trace } = tracedDatabase()
  const world = await openDay({ database })
  const address = world.pages.address() ?? ''
  const cookie = await signedIn(world, 'admin')
  trace.length = 0
  await walkConsole({
    routes,
    searches,
    examples: 2,
    read: async (stop) => (stop.route ? (await visit(address, stop.to, { cookie })).text : ''),
  })
  const texts = new Set(trace.filter((text) => /^(select|with)\b/i.test(text)))
  expect(texts.size).toBeGreaterThan(20)
  const tables = new Set(
    connection.prepare<[], string>("select name from sqlite_schema where type = 'table'").pluck().all(),
  )
  const slow = [...texts].flatMap((text) =>
    connection
      .prepare<[], { detail: string }>(`explain query plan ${text}`)
      .all()
      .filter(({ detail }) => {
        const [, table = '', index] = /^SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?/.exec(detail) ?? []
        if (!tables.has(table) || SMALL.test(table)) return false
        // A list walks its index from one end until a page is full.
        return index === undefined || !(/ limit /.test(text) || countedWhole.includes(index))
      })
      .map(({ detail }) => `${detail}: ${text}`),
  )
  expect(slow).toEqual([])
})
