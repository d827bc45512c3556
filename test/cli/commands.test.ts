import { chmodSync, readFileSync, rmSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { connectionOf } from '../../src/cli/client.ts'
import { exitCodes } from '../../src/cli/exit-codes.ts'
import { type Answers, Refusal, run, startService, temporaryFolder, widest, writePlace } from '../support/cli-run.ts'
import { refusedOrigin, startHttp } from '../support/supplier-server.ts'

const id = '01k3m5x7z9abcdefghjkmnpqrs'
const at = '2026-08-02T14:03:11.000Z'
const long = 'the store answered 500 three times in a row and then did not answer at all for more than a minute'

const purchase = {
  id,
  part: 1,
  generation: 1,
  state: 'waiting',
  holdReason: 'out_of_stock',
  note: long,
  notBefore: at,
  quantity: 2,
  ceiling: '1234.56',
  amount: null,
  currency: 'EUR',
  supplierOrderId: null,
  changedAt: at,
  externalOrderId: 'q1.shop-4f7k2m9q.1001.1.1.1',
  failureCode: null,
  failureMessage: null,
  orderId: id,
}
const order = {
  store: 'a-store-with-a-rather-long-name-4f7k2m9q',
  reference: '1001',
  state: 'open',
  receivedAt: at,
  cancelRequestedAt: null,
  closedAt: null,
  lines: [
    {
      id: '1',
      sku: 'SKU-1',
      name: `${long} ${long}`,
      quantity: 2,
      state: 'held',
      delivered: 0,
      purchases: [purchase],
      keysOpened: [{ purchaseId: id, ordinal: 1, at, times: 2, network: '203.0.113.0/24' }],
    },
  ],
  keysPage: { madeAt: at, withdrawnAt: at },
  timeline: [{ at, what: 'order taken', detail: long }],
}
const cause = { reason: long, actor: 'quayside', at, purchaseId: id }
const evidence = {
  purchase: { ...purchase, state: 'review', note: long, since: at, cancelRequestedAt: at },
  order: { store: order.store, reference: '1001', line: '1' },
  keys: { stored: 3, left: 1, elsewhere: [id, id] },
  orders: [
    {
      id: 'b88534ec-c68e-4acc-947d-6244d3d39e6d',
      own: true,
      generation: null,
      takenBy: id,
      unread: null,
      reading: {
        statusWord: 'completed',
        keys: 3,
        amount: '12.34',
        currency: 'EUR',
        quantity: 2,
        differs: ['quantity'],
      },
    },
    {
      id: '9343e14d-8625-47b8-9083-824168b82d5d',
      own: false,
      generation: null,
      takenBy: null,
      reading: null,
      unread: long,
    },
  ],
  generations: [{ id, generation: 2, state: 'cancelled' }],
  choices: [
    { decision: 'adopt', does: long, refusal: null },
    { decision: 'hand_over', does: long, refusal: long },
  ],
  freeze: { ...cause, causes: [{ ...cause, id: '9f86d081' }] },
  evidenceVersion: 'review-9f86d081884c',
  attempts: [
    { kind: 'look_up', stage: 'answered', at, status: 500, class: 'A', requestId: `${id}${id}`, detail: long },
  ],
  discrepancies: [{ kind: 'double_charge', supplierOrderId: `${id}${id}`, detail: long, foundAt: at }],
  transitions: [
    { at, input: 'found', row: 'none', before: 'review', after: 'review', times: 9, lastAt: at, detail: long },
  ],
  audit: [{ at, actor: 'operator (01k3m5x7z9abcdefghjkmnpqrs)', action: 'purchase.adopt', detail: long }],
}
const delivery = {
  id,
  source: 'supplier',
  deliveryId: `dlv_${id}${id}`,
  state: 'dead',
  event: 'product.price_changed',
  supplierOrderId: id,
  purchaseId: id,
  signedAt: at,
  receivedAt: at,
  attempts: 10,
  notBefore: at,
  lastError: long,
  finishedAt: at,
}
const effect = {
  id,
  kind: 'callback',
  type: 'line.fulfilled',
  store: order.store,
  orderId: id,
  state: 'dead',
  attempts: 10,
  notBefore: at,
  lastError: long,
  createdAt: at,
  doneAt: null,
  about: {},
}
const syncRun = {
  id,
  cause: 'operator anna',
  state: 'complete',
  startedAt: at,
  finishedAt: at,
  pages: 100,
  pagesTotal: 100,
  offersSeen: 1_234_567,
  offersNew: 12_345,
  offersChanged: 123_456,
  offersUnreadable: 0,
  offersGone: 1_234,
  error: null,
  requestId: null,
}
const sweep = {
  id,
  cause: 'operator anna',
  state: 'complete',
  from: at,
  startedAt: at,
  finishedAt: at,
  pages: 12_345,
  orders: 1_234_567,
  matched: 1_222_222,
  refreshed: 1,
  orphans: 12_345,
  foreign: 0,
  missing: 1,
  notListed: 2,
  errors: 3,
  unreadable: 4,
  error: long,
}
const account = {
  currency: 'EUR',
  startedAt: at,
  start: '1234567.89',
  charges: '1234567.89',
  refunds: '0.00',
  credits: '12.00',
  unexplained: '0.00',
  expected: '12.00',
  pending: '-1.00',
  owedBack: '0.00',
  explainedAt: at,
  judgedAt: at,
}
const token = {
  id,
  name: 'the backend of the shop in the cellar',
  hint: 'qs_s_Ab12',
  role: 'store',
  store: order.store,
  scopes: ['orders'],
  createdAt: at,
  expiresAt: at,
  revokedAt: null,
}
const userFreeze = { reason: long, actor: 'anna', at, purchaseId: null }
const page = (item: object) => () => ({ items: [item], next: id })
const answers: Answers = {
  'GET /status': () => ({
    balance: { amount: '2500.00', currency: 'EUR', readAt: at },
    tier: 'gold',
    limits: { quantityMax: 100 },
    freeze: {
      ...cause,
      causes: [
        { ...cause, id: '9f86d081' },
        { ...cause, id: '9f86d082', purchaseId: null },
      ],
    },
    counts: {
      purchases: { review: 1, fulfilled: 1_234_567, unknown: 3 },
      held: {},
      offers: { total: 61, inStock: 56 },
      deliveries: { dead: 2 },
      callbacks: {},
      alerts: {},
      discrepancies: {},
    },
    supplier: { unreachableSince: at, error: long, lastAnswerAt: at, waiting: 1_234_567 },
    alerts: Array.from({ length: 12 }, (_, place) => ({
      id,
      type: 'absent_and_not_safe',
      subject: id,
      note: long,
      advice: 'ask the supplier, with the request ids',
      command: `quayside reviews show ${id}`,
      at,
      state: place === 0 ? 'ended' : 'open',
    })),
    refusedDeliveries: {
      since: at,
      total: 1_234_567,
      lastAt: at,
      reasons: { mismatch: 1_234_566, missing_signature: 1 },
    },
    freshness: { catalogueAt: at, balanceAt: at },
    sweep: { finishedAt: at, orders: 1_234_567, orphans: 12_345, foreign: 0, missing: 1 },
  }),
  'GET /orders': page({ id, ...order }),
  'GET /orders/1001': () => order,
  'POST /orders/1001/cancel': () => order,
  'POST /orders/1001/keys-page/withdraw': () => order,
  'GET /purchases': page(purchase),
  [`GET /purchases/${id}`]: () => ({
    ...purchase,
    attempts: [{ kind: 'place', stage: 'answered', number: 1, at, status: 409, code: 'out_of_stock', requestId: id }],
    outages: [{ beganAt: at, endedAt: null, error: long }],
    transitions: [{ at, input: 'due', row: 'planned', before: 'planned', after: 'waiting', actor: null, detail: long }],
  }),
  [`GET /purchases/${id}/evidence`]: () => evidence,
  [`POST /purchases/${id}/decision`]: () => evidence,
  [`POST /purchases/${id}/retry`]: () => purchase,
  [`POST /purchases/${id}/release`]: () => purchase,
  'GET /deliveries': page(delivery),
  [`GET /deliveries/${id}`]: () => ({ ...delivery, body: '{"event":"x"}' }),
  [`POST /deliveries/${id}/replay`]: () => delivery,
  'GET /outbox': page(effect),
  [`POST /outbox/${id}/redeliver`]: () => effect,
  'GET /webhooks': page({
    id,
    url: `https://shop.example/${long.replaceAll(' ', '/')}`,
    events: ['a', 'b'],
    createdAt: at,
  }),
  'POST /webhooks/rotate': () => ({ webhook: { id, url: `https://shop.example/${long}` }, replaces: [id, id] }),
  [`POST /webhooks/${id}/retire`]: () => ({ id, state: 'retired' }),
  'POST /webhooks/check': () => ({
    unheld: [{ id, url: 'https://shop.example/webhooks/supplier', seenAt: at, replacedBy: null }],
    gone: [id],
  }),
  'POST /webhooks/test': () => ({
    healthy: true,
    findings: [{ check: 'delivery', state: 'ok', detail: `${long} took the delivery`, fix: null }],
  }),
  'POST /webhooks': () => ({ id, url: 'https://shop.example/webhooks/supplier', events: [], createdAt: at }),
  'GET /stores': () => ({
    items: [
      {
        id: 'shop-4f7k2m9q',
        listings: { synced: 1_234_567 },
        publications: 0,
        pausedUntil: at,
        error: long,
        callbackSecret: { generation: 12, changedAt: at, previousUntil: '2099-08-02T14:03:11.000Z' },
        needsProof: true,
        proven: null,
      },
    ],
  }),
  'POST /stores/shop-4f7k2m9q/confirm-mail': () => ({ store: 'shop-4f7k2m9q', proven: { at, by: 'mail' } }),
  'POST /stores/shop-4f7k2m9q/rotate-secret': () => ({
    store: 'shop-4f7k2m9q',
    secret: `whsec_${'x'.repeat(43)}=`,
    generation: 13,
    previousUntil: '2099-08-02T14:03:11.000Z',
  }),
  'GET /tokens': page(token),
  'POST /tokens': () => ({ ...token, token: 'qs_s_text' }),
  [`DELETE /tokens/${id}`]: () => token,
  'GET /discrepancies': page({ id, kind: 'missing', subject: id, supplierOrderId: id, detail: long, foundAt: at }),
  'GET /sync/runs': page(syncRun),
  [`GET /sync/runs/${id}`]: () => ({
    ...syncRun,
    changes: [{ productId: id, sku: 'GAM-RAIL4', name: long, field: 'name', before: long, after: `${long}!` }],
  }),
  'POST /sync': () => ({ run: { ...syncRun, state: 'running' } }),
  'POST /sweeps': () => ({ sweep: { ...sweep, state: 'running', finishedAt: null, error: null } }),
  'GET /sweeps': page(sweep),
  [`GET /sweeps/${id}`]: () => sweep,
  'GET /balance': () => ({
    balance: { amount: '12.00', currency: 'EUR', readAt: at },
    account,
    next: id,
    items: [{ id, kind: 'unexplained', amount: '-1234567.89', at }],
  }),
  'GET /stores/shop-4f7k2m9q/prices/SKU-1': () => ({
    store: 'shop-4f7k2m9q',
    sku: 'SKU-1',
    productId: id,
    name: long,
    category: long,
    outcome: 'priced',
    price: '1234567.89',
    compareAt: null,
    floor: '1.00',
    currency: 'EUR',
    reason: null,
    steps: [{ step: 'rule', amount: '1234567.89', currency: 'EUR', detail: long }],
    listings: [],
    takenBy: null,
    passes: false,
    stock: { stock: null, available: true, steps: [{ step: 'source', units: null, detail: long }] },
  }),
  'POST /freeze': () => ({ freeze: { ...userFreeze, causes: [{ ...userFreeze, id: '9f86d081' }] } }),
  'POST /unfreeze': () => ({ freeze: null }),
}

const commands = [
  ...['status', 'orders list', 'orders show 1001', 'orders cancel 1001', 'purchases list', `purchases show ${id}`],
  ...[`purchases retry ${id}`, `purchases release ${id} --ceiling 12.34`, 'deliveries list', `deliveries show ${id}`],
  ...[`deliveries show ${id} --reveal`, `deliveries replay ${id}`, 'outbox list', `outbox redeliver ${id}`],
  ...['orders withdraw-keys 1001 --reason charged', 'stores confirm shop-4f7k2m9q --order 1001'],
  ...['stores list', 'stores rotate-secret shop-4f7k2m9q --overlap-hours 0'],
  ...[
    'webhooks list',
    'webhooks create',
    'webhooks rotate',
    `webhooks retire ${id}`,
    'webhooks check',
    'webhooks test',
  ],
  ...['tokens list', 'tokens create --name a --role viewer', `tokens revoke ${id}`],
  ...['reviews', `reviews show ${id}`, `reviews decide ${id} --evidence review-9f86d081884c --close --reason refunded`],
  ...['discrepancies list', 'sync', 'sync runs', `sync show ${id}`, 'freeze', 'unfreeze 9f86d081'],
  ...['sweep', 'sweep list', 'sweep show', `sweep show ${id}`, 'balance'],
  'price explain SKU-1 --store shop-4f7k2m9q',
]

it('stores list said that the next try of a store was 0 s ago', async () => {
  const store = { id: 'shop-4f7k2m9q', callbackSecret: null, pausedUntil: at, error: 'it is away', listings: {} }
  const { config } = await startService({ 'GET /stores': () => ({ items: [store] }) })
  const list = async (now: string) => {
    const { stdout } = await run(['stores', 'list', '--config', config], { now: () => Date.parse(now), columns: 200 })
    return stdout.replaceAll(/\s+/g, ' ')
  }
  expect(await list(at)).toContain('it takes no listings, next try at once: it is away')
  expect(await list('2026-08-02T14:03:01.000Z')).toContain('next try 2026-08-02 14:03:11Z (in 10 s): it is away')
})

describe('every command', () => {
  it.each(commands)('%s fits a terminal of 80 columns', async (command) => {
    const { config } = await startService(answers)
    const result = await run([...command.split(' '), '--config', config], { terminal: true })
    expect(result).toMatchObject({ exitCode: 0, stderr: '' })
    expect(widest(result.stdout)).toBeLessThanOrEqual(80)
  })

  it.each(['status', 'freeze', 'orders show 1001', 'stores rotate-secret shop-4f7k2m9q'])(
    '%s has sentences in a pipe as in a terminal, where only a table is wider',
    async (command) => {
      const { config } = await startService(answers)
      const sentencesOf = async (terminal: boolean) => {
        const argv = [...command.split(' '), '--config', config]
        const { stdout } = await run(argv, { terminal, now: () => Date.parse(at) })
        return command.startsWith('orders') ? stdout.split('\n').filter((line) => /^ {2}|^$/.test(line)) : stdout
      }
      expect(await sentencesOf(false)).toEqual(await sentencesOf(true))
    },
  )

  it.each(commands)('%s --json prints what the service answered, and nothing else', async (command) => {
    const { config } = await startService(answers)
    const { stdout, exitCode } = await run([...command.split(' '), '--config', config, '--json'], { terminal: true })
    expect(exitCode).toBe(0)
    expect(JSON.parse(stdout)).toBeTypeOf('object')
  })

  it.each([
    ...commands.map((command) => command.split(' ').filter((word) => /^[a-z]+(-[a-z]+)*$/.test(word))),
    ['init'],
    ['doctor'],
  ])('%s %s has help that fits 80 columns', async (...words) => {
    const { stdout, exitCode } = await run([...words.slice(0, 2), '--help'])
    expect(exitCode).toBe(0)
    expect(stdout).toContain('--json')
    expect(widest(stdout)).toBeLessThanOrEqual(80)
  })
})

it('an address with a password was shown with it', async () => {
  const { stderr, exitCode } = await run(['status', '--url', 'http://anna:hunter22@127.0.0.1:8080'], { columns: 200 })
  expect(exitCode).toBe(2)
  expect(stderr).toContain('not an address of a service: http://…@127.0.0.1:8080; give one such as')
})

describe('a guess at a command', () => {
  it.each([
    ['logs -f', 'there is no `logs`: `npx quayside tail`'],
    ['stores rm shop-4f7k2m9q', 'there is no `stores rm`: run `npx quayside stores remove`'],
    ['orders get 1001', 'there is no `orders get`: run `npx quayside orders show`'],
    ['purchases info 12', 'there is no `purchases info`: run `npx quayside purchases show`'],
    ['listings ls', 'there is no `listings ls`: run `npx quayside listings list`'],
    ['start', 'there is no `start`: run `npx quayside serve`'],
    ['trigger listings.changed', '`listings.changed` has no example: `npx quayside listings retry'],
  ])('%s said no more than that it is unknown', async (typed, sentence) => {
    const { stderr, exitCode } = await run(typed.split(' '), { columns: 200 })
    expect(exitCode).toBe(2)
    expect(stderr.replaceAll(/\s+/g, ' ')).toContain(`quayside: ${sentence}`)
    const asJson = await run([...typed.split(' '), '--json'])
    expect(JSON.parse(asJson.stderr).error.message).toContain(sentence)
  })

  it('orders list --state was no option', async () => {
    const { config, heard } = await startService({ 'GET /orders': () => ({ items: [], next: null }) })
    expect(await run(['orders', 'list', '--state', 'open', '--config', config])).toMatchObject({ exitCode: 0 })
    expect(heard.map(({ url }) => url)).toEqual(['/api/v1/orders?state=open'])
  })

  it('stores test asked for an id also where there is one store', async () => {
    const ids = ['shop-4f7k2m9q']
    const { config, heard } = await startService({
      'GET /stores': () => ({ items: ids.map((one) => ({ id: one })) }),
      'POST /stores/shop-4f7k2m9q/test': () => ({ healthy: true, findings: [] }),
    })
    const tested = () => run(['stores', 'test', '--config', config], { columns: 200 })
    expect(await tested()).toMatchObject({ exitCode: 0, stderr: '' })
    expect(heard.at(-1)?.url).toBe('/api/v1/stores/shop-4f7k2m9q/test')
    ids.push('other-7k2m9q4f')
    const refused = await tested()
    expect(refused.exitCode).toBe(2)
    expect(refused.stderr).toContain('which store? There are shop-4f7k2m9q, other-7k2m9q4f')
  })
})

describe('the help', () => {
  it('of every command that a help names fits 80 columns', async () => {
    const [wide, seen]: [string[], string[]] = [[], []]
    const walk = async (words: string[]): Promise<void> => {
      const { stdout } = await run([...words, '--help'])
      seen.push(words.join(' '))
      wide.push(...stdout.split('\n').filter((line) => line.length > 80))
      // Options and examples follow the usage; the commands are what stands indented under the other titles.
      const parts = stdout.split('\n\n').filter((part) => /^[A-Z][a-z -]+:\n {2}[a-z]/.test(part))
      const listed = parts.filter((part) => !/^(Arguments:|Examples?:|Faults of|Options of)/.test(part))
      const names = listed.flatMap((part) => [...part.matchAll(/^ {2}([a-z][a-z-]*)/gm)].map(([, name]) => `${name}`))
      for (const name of names.filter((one) => one !== 'help')) await walk([...words, name])
    }
    await walk([])
    expect(wide).toEqual([])
    expect(seen).toEqual(
      expect.arrayContaining(['serve', 'sandbox', 'database create', 'dialect check', 'dialect capture list']),
    )
  })

  it('printed examples that begin otherwise than the next steps', async () => {
    for (const words of [[], ['orders', 'show'], ['webhooks', 'retire'], ['database', 'create'], ['sandbox']]) {
      const { stdout } = await run([...words, '--help'])
      expect(stdout).toContain('npx quayside ')
      expect(stdout).not.toMatch(/(^ {2}|`)quayside /m)
    }
  })

  it('of tail promised one JSON document', async () => {
    const { stdout } = await run(['tail', '--help'])
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain('--json print one JSON object a line')
    expect(stdout).not.toContain('document')
  })
})

describe('status', () => {
  const statusWith = async (stores: object[]) => {
    const counts = { listings: { held: 12_346, failed: 1 }, deliveries: { dead: 1 } }
    const { config } = await startService({ 'GET /status': () => ({ freeze: null, counts, stores }) })
    const { stdout } = await run(['status', '--config', config], { terminal: true })
    expect(widest(stdout)).toBeLessThanOrEqual(80)
    return stdout.slice(stdout.indexOf('For a person:'))
  }
  const stores = [
    { store: 'shop-4f7k2m9q', listings: { held: 1, failed: 0 } },
    { store: 'other-7k2m9q4f', listings: { held: 12_345, failed: 1, synced: 7 } },
  ]

  it('names the store in each command that needs one, where there are several', async () => {
    expect(await statusWith(stores)).toBe(`For a person:
  1 listing held: npx quayside listings list --state held --store shop-4f7k2m9q
  12,345 listings held:
    npx quayside listings list --state held --store other-7k2m9q4f
  1 listing not taken:
    npx quayside listings list --state failed --store other-7k2m9q4f
  1 dead delivery: npx quayside deliveries list --state dead
`)
  })

  it('says which shop is not proven, and by which command it is', async () => {
    const shop = { ...stores[0], listings: {}, needsProof: true }
    const proven = { at, by: 'page' }
    const text = await statusWith([
      { ...shop, proven: null },
      { ...shop, store: 'other-7k2m9q4f', proven },
    ])
    expect(text).toBe(`For a person:
  1 dead delivery: npx quayside deliveries list --state dead
  shop-4f7k2m9q is not proven: it is not known that its customers get at their
    keys:
    npx quayside stores test shop-4f7k2m9q --order <its number>
`)
  })

  it('lists a paid order that is held too long under what waits for a person', async () => {
    const held = { id, type: 'order_held', subject: '62', severity: 'critical', state: 'open', at, note: 'it waits' }
    const alerts = [{ ...held, advice: 'see what it waits for', command: 'quayside orders show 62' }]
    const { config } = await startService({ 'GET /status': () => ({ freeze: null, counts: {}, alerts }) })
    const { stdout } = await run(['status', '--config', config], { terminal: true })
    expect(stdout).toContain('For a person:\n  1 paid order waits too long: npx quayside purchases list --hold any\n')
  })

  it('says that the last reading of the catalogue failed, when and why, in one line of 80 columns', async () => {
    const error = 'the supplier cannot be reached: ECONNREFUSED, and it was tried three times, as always'
    const freshness = { catalogueAt: null, catalogueFailure: { run: id, at, error }, balanceAt: null }
    const { config } = await startService({ 'GET /status': () => ({ freeze: null, counts: {}, freshness }) })
    const { stdout } = await run(['status', '--config', config], {
      terminal: true,
      now: () => Date.parse(at) + 120_000,
    })
    expect(widest(stdout)).toBeLessThanOrEqual(80)
    expect(stdout).toMatch(/^Catalogue +not read yet\n +FAILED 20[-0-9]+ [:0-9]+Z \(2 min ago\): the supplier .*…$/m)
    expect(stdout).toContain(`For a person:\n  catalogue not read: npx quayside sync show ${id}\n`)
  })

  it('names a channel that takes no alerts, the cause, and what tries it again, within 80 columns', async () => {
    const error = 'the server answered 503 and asked for another try after the hour of its upkeep'
    const alertChannels = [{ channel: 'duty', failingSince: at, error }]
    const { config } = await startService({ 'GET /status': () => ({ freeze: null, counts: {}, alertChannels }) })
    const now = () => Date.parse(at) + 120_000
    const { stdout } = await run(['status', '--config', config], { terminal: true, now })
    expect(widest(stdout)).toBeLessThanOrEqual(80)
    const due = stdout.slice(stdout.indexOf('For a person')).replaceAll(/\n {4}/g, ' ')
    expect(due).toMatch(
      /^ {2}alerts are not sent by duty since .* ago\): the server .* upkeep: npx quayside alerts test$/m,
    )
  })

  it('counted alerts, and named none of them', async () => {
    const alert = { id, note: null, subject: null, advice: 'wait; if it lasts, ask the supplier', at }
    const alerts = [
      {
        ...alert,
        type: 'supplier_unreachable',
        note: 'it cannot be reached',
        command: 'quayside doctor',
        state: 'open',
      },
      {
        ...alert,
        type: 'keys_short',
        subject: id,
        advice: 'decide',
        command: `quayside reviews show ${id}`,
        state: 'open',
      },
      { ...alert, type: 'all_stale', command: 'quayside doctor', state: 'ended' },
    ]
    const { config } = await startService({ 'GET /status': () => ({ freeze: null, counts: {}, alerts }) })
    const now = () => Date.parse(at) + 120_000
    const { stdout } = await run(['status', '--config', config], { terminal: true, now })
    expect(widest(stdout)).toBeLessThanOrEqual(80)
    expect(stdout).toMatch(/^Alerts +2 open, 1 ended$/m)
    expect(stdout.slice(stdout.indexOf('Open alerts'))).toBe(`Open alerts:
  supplier unreachable, raised 2 min ago
    it cannot be reached
    wait; if it lasts, ask the supplier: npx quayside doctor
  too few keys, 01k3m5x7z9abcdefghjkmnpqrs, raised 2 min ago
    decide: npx quayside reviews show 01k3m5x7z9abcdefghjkmnpqrs

Alerts that ended by themselves:
  all deliveries are stale, raised 2 min ago
`)
  })

  it('said nothing of refused deliveries', async () => {
    const refusedDeliveries = { since: at, total: 3, lastAt: at, reasons: { mismatch: 2, too_large: 1 } }
    const { config } = await startService({ 'GET /status': () => ({ freeze: null, counts: {}, refusedDeliveries }) })
    const now = () => Date.parse(at) + 120_000
    const { stdout } = await run(['status', '--config', config], { terminal: true, now })
    expect(stdout).toContain(`Refused        3 deliveries since the start, 2026-08-02 14:03:11Z (2 min ago):
               2 mismatch, 1 too large; last 2026-08-02 14:03:11Z (2 min ago)
`)
  })

  it('said nothing of a supplier that is down', async () => {
    const now = () => Date.parse(at) + 120_000
    const supplierLines = async (supplier: object) => {
      const { config } = await startService({ 'GET /status': () => ({ freeze: null, counts: {}, supplier }) })
      const { stdout } = await run(['status', '--config', config], { terminal: true, now })
      expect(widest(stdout)).toBeLessThanOrEqual(80)
      return stdout.slice(stdout.indexOf('Supplier'), stdout.indexOf('Balance'))
    }
    const well = { unreachableSince: null, error: null, lastAnswerAt: at, waiting: 3 }
    expect(await supplierLines(well)).toBe('Supplier       last answer 2026-08-02 14:03:11Z (2 min ago)\n')
    expect(
      await supplierLines({ ...well, unreachableSince: at, error: 'cannot be reached: ECONNREFUSED' }),
    ).toBe(`Supplier       DOWN since 2026-08-02 14:03:11Z (2 min ago): cannot be reached:
               ECONNREFUSED
               last answer 2026-08-02 14:03:11Z (2 min ago); 3 purchases wait
`)
    expect(await supplierLines({ ...well, lastAnswerAt: null })).toContain('no answer yet')
  })

  it('says which answers of the supplier cannot be read, and that buying is paused for them', async () => {
    const unreadable = [
      {
        request: 'GET /orders',
        field: 'amount',
        setting: 'order.quantity',
        value: '"4.79"',
        requestId: 'r1',
        since: '2026-01-02T03:04:05Z',
        pausesBuying: true,
      },
    ]
    const { config } = await startService({ 'GET /status': () => ({ freeze: null, counts: {}, unreadable }) })
    const { stdout } = await run(['status', '--config', config], { terminal: true })
    expect(widest(stdout)).toBeLessThanOrEqual(80)
    expect(stdout).toMatch(/^Buying +paused: answers of the supplier cannot be read$/m)
    expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /For a person: the answer to GET \/orders cannot be read, first .*: amount \(order\.quantity of the dialect\) has "4\.79" there; nothing new is bought until one is read: fix the dialect, then restart/,
    )
  })

  it('wraps the causes of a freeze and the stores that take nothing, in a pipe too', async () => {
    const freeze = { actor: 'restore', at, reason: `${long}; reattached: ${long}`, purchaseId: null }
    const paused = [{ store: 'shop-4f7k2m9q', until: at, error: long }]
    const { config } = await startService({ 'GET /status': () => ({ freeze, counts: {}, paused }) })
    for (const terminal of [true, false]) {
      const { stdout } = await run(['status', '--config', config], { terminal })
      expect(widest(stdout)).toBeLessThanOrEqual(80)
      expect(stdout).toContain('\n    when that is settled otherwise: npx quayside unfreeze\n')
    }
  })

  it('keeps the command short where there is one store', async () => {
    expect(await statusWith(stores.slice(0, 1))).toContain(
      '  1 listing held: npx quayside listings list --state held\n',
    )
  })
})

describe('a request', () => {
  it('carries the owner token, the filters and the body', async () => {
    const { config, heard } = await startService(answers)
    await run(['purchases', 'list', '--state', 'review', '--limit', '5', '--config', config])
    await run(['purchases', 'release', id, '--ceiling', '12.34', '--config', config])
    await run(['purchases', 'release', id, '--override-spend-cap', '--config', config])
    await run(['freeze', '--reason', 'prices look wrong', '--config', config])
    expect(heard.map(({ url }) => url)).toEqual([
      '/api/v1/purchases?limit=5&state=review',
      `/api/v1/purchases/${id}/release`,
      `/api/v1/purchases/${id}/release`,
      '/api/v1/freeze',
    ])
    expect(heard.map(({ body }) => body)).toEqual([
      '',
      '{"ceiling":"12.34"}',
      '{"overrideSpendCap":true}',
      '{"reason":"prices look wrong"}',
    ])
    expect(heard.map(({ headers }) => headers.authorization)).toEqual(Array(4).fill('Bearer qs_a_owner'))
  })

  it('takes a token from --token before QUAYSIDE_TOKEN before the owner token', async () => {
    const { config, heard } = await startService(answers)
    const env = { QUAYSIDE_TOKEN: 'qs_o_env' }
    await run(['status', '--config', config, '--token', 'qs_v_flag'], { env })
    await run(['status', '--config', config], { env })
    expect(heard.map(({ headers }) => headers.authorization)).toEqual(['Bearer qs_v_flag', 'Bearer qs_o_env'])
  })

  it('never carries the owner token to another machine', () => {
    const { config } = writePlace('http://127.0.0.1:8080')
    expect(connectionOf({ config, url: 'https://quayside.example' }, {}).token).toBeUndefined()
    expect(connectionOf({ config, url: 'http://127.0.0.1.evil.example:8080' }, {}).token).toBeUndefined()
    expect(connectionOf({ config, url: 'http://localhost:8080' }, {}).token?.reveal()).toBe('qs_a_owner')
    expect(connectionOf({ config: writePlace('http://10.0.0.5:8080').config }, {}).token).toBeUndefined()
  })

  it.each(['status', 'doctor', 'orders show 1001', 'tail', 'freeze', 'reviews', 'price explain SKU-1 --store a'])(
    'carried the owner token to another installation: %s',
    async (command) => {
      const { config } = writePlace('http://127.0.0.1:1')
      const other = await startService(answers)
      const argv = [...command.split(' '), '--config', config]
      await run([...argv, '--url', other.origin])
      await run(argv, { env: { QUAYSIDE_URL: other.origin } })
      expect(other.heard.map(({ headers }) => headers.authorization)).toEqual([undefined, undefined])
      await run([...argv, '--url', other.origin, '--token', 'qs_o_other'])
      expect(other.heard[2]?.headers.authorization).toBe('Bearer qs_o_other')
    },
  )

  it('with the owner token alone is refused by another installation, with what to give', async () => {
    const { config, tokenFile } = writePlace('http://127.0.0.1:1')
    const other = await startService({ 'GET /status': () => refuseToken() })
    const { exitCode, stderr } = await run(['status', '--config', config, '--url', other.origin])
    expect(exitCode).toBe(5)
    expect(stderr.replaceAll(/\s+/g, ' ')).toBe(
      `quayside: no token, or one that is unknown, revoked or expired (unauthenticated, request req-7) No token was sent: the owner token goes only to this configuration's own address on loopback. Give a token of ${other.origin} by --token or QUAYSIDE_TOKEN; that of this configuration is in ${tokenFile}. More: docs/troubleshooting.md#unauthenticated `,
    )
  })

  it('with a token that is refused said twice that it is unknown, revoked or expired', async () => {
    const { config } = await startService({ 'GET /status': () => refuseToken() })
    const { stderr } = await run(['status', '--config', config])
    expect(stderr.match(/revoked/g)).toHaveLength(1)
    expect(stderr).toContain('\nGive another by --token or QUAYSIDE_TOKEN.\n')
  })

  it('is not made with an owner token that others can read', async () => {
    const { config, tokenFile, heard } = await startService(answers)
    chmodSync(tokenFile, 0o640)
    const { exitCode, stderr } = await run(['status', '--config', config])
    expect(exitCode).toBe(5)
    expect(stderr).toContain(`chmod 600 ${tokenFile}`)
    expect(heard).toEqual([])
  })

  it('keeps a reference in one piece of the path', async () => {
    const { config, heard } = await startService(answers)
    await run(['orders', 'show', '../tokens?x#y/ä', '--config', config])
    expect(heard[0]?.url).toBe('/api/v1/orders/..%2Ftokens%3Fx%23y%2F%C3%A4')
    expect((await run(['orders', 'show', '..', '--config', config])).exitCode).toBe(2)
  })
})

/** As the service refuses it. */
const refuseToken = () => {
  throw new Refusal(401, 'unauthenticated', 'no token, or one that is unknown, revoked or expired')
}

it('a service of another version, whose answer lacks a field, is said to be one', async () => {
  const { config } = await startService({ 'GET /orders/1001': () => ({ reference: '1001', state: 'open' }) })
  const { exitCode, stderr } = await run(['orders', 'show', '1001', '--config', config])
  expect(exitCode).toBe(1)
  expect(stderr.replaceAll(/\s+/g, ' ')).toMatch(/answers cannot be shown: .* Is it of another version\? Restart it\. /)
  expect(stderr).not.toContain('this should not happen')
})

describe('what is not there', () => {
  it.each([
    ['orders show 99999', 'orders list'],
    [`purchases retry ${id}`, 'purchases list'],
    [`reviews show ${id}`, 'reviews'],
    [`sync show ${id}`, 'sync runs'],
    [`dialect capture show ${id}`, 'dialect capture list'],
    ['price explain SKU-1 --store shop-4f7k2m9q', 'listings list'],
  ])('was answered without a command that can be pasted: %s', async (command, next) => {
    const { config } = await startService({})
    const { exitCode, stderr } = await run([...command.split(' '), '--config', config])
    expect(exitCode).toBe(4)
    expect(stderr).toContain(`\nSee what there is: npx quayside ${next}\n`)
  })
})

it('a word that an option does not take ran past 80 columns in one line', async () => {
  const { exitCode, stderr } = await run(['serve', '--role', 'wrok'])
  expect(exitCode).toBe(2)
  expect(stderr).toMatch(/^quayside: option '--role <role>' argument 'wrok' is invalid\. Give/)
  expect(stderr.replaceAll(/\s+/g, ' ')).toContain('Give one of all, web, worker.')
  expect(widest(stderr)).toBeLessThanOrEqual(80)
})

describe('an exit code', () => {
  const refusals: [number, string, number][] = [
    [400, 'invalid', 2],
    [401, 'unauthenticated', 5],
    [403, 'forbidden', 5],
    [404, 'not_found', 4],
    [409, 'reference_reused', 5],
    [422, 'rejected', 5],
    [500, 'internal', 1],
    [503, 'unavailable', 1],
  ]
  it.each(refusals)('for HTTP %i %s is %i', async (status, code, expected) => {
    const fields = [{ field: 'limit', message: 'must be small' }]
    const { config } = await startService({
      'GET /status': () => {
        throw new Refusal(status, code, 'cannot do that', fields)
      },
    })
    const { exitCode, stdout, stderr } = await run(['status', '--config', config])
    expect({ exitCode, stdout }).toEqual({ exitCode: expected, stdout: '' })
    expect(stderr).toContain(`cannot do that (${code}, request req-7)`)
    expect(stderr).toContain('limit: must be small')
    const json = await run(['status', '--json', '--config', config])
    expect(json).toMatchObject({ exitCode: expected, stdout: '' })
    expect(JSON.parse(json.stderr)).toEqual({
      success: false,
      error: { code, message: expect.stringMatching(/^cannot do that(\n|$)/), fields },
      request_id: 'req-7',
    })
  })

  it('is 3 when nothing listens, with the command that starts it', async () => {
    const { config, tokenFile } = writePlace(await refusedOrigin())
    rmSync(tokenFile)
    const { exitCode, stdout, stderr } = await run(['status', '--config', config])
    expect({ exitCode, stdout }).toEqual({ exitCode: 3, stdout: '' })
    expect(stderr).toMatch(/not running at http:\/\/127\.0\.0\.1:\d+ \(ECONNREFUSED\)/)
    expect(stderr).toContain('npx quayside serve')
  })

  it.each([
    [401, 'unauthenticated'],
    [403, 'forbidden'],
    [404, 'not_found'],
    [503, 'unavailable'],
    [undefined, 'not running'],
  ])('comes with no line of a fault wider than 80 columns: %s %s', async (status, code) => {
    const refuse = () => {
      throw new Refusal(status ?? 500, code, 'no order has this reference, and none of another store either', [
        { field: 'reference', message: long },
      ])
    }
    const service = await startService({ 'GET /status': refuse })
    const url = status === undefined ? await refusedOrigin() : service.origin
    const { stderr } = await run(['status', '--config', service.config, '--url', url])
    expect(stderr).toMatch(/^quayside: /)
    expect(widest(stderr)).toBeLessThanOrEqual(80)
    expect(stderr).toMatch(/\n {2}\S/)
  })

  it('is 1 when something else answers there, and 2 for an address that is none of a service', async () => {
    const stranger = await startHttp((_heard, response) => response.end('<html>'))
    onTestFinished(() => stranger.close())
    const { config } = writePlace(stranger.origin)
    expect(await run(['status', '--config', config])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('is not Quayside (HTTP 200)'),
    })
    expect((await run(['status', '--config', config, '--url', `${stranger.origin}/elsewhere`])).exitCode).toBe(2)
  })

  it.each([
    ['frob'],
    ['orders show'],
    ['status --bogus'],
    ['tokens create --name a'],
    ['serve --port x'],
    ['orders'],
    [''],
  ])('is 2 for `quayside %s`', async (command) => {
    const { exitCode, stdout, stderr } = await run(command.split(' ').filter(Boolean))
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toMatch(/--help/)
  })

  it.each([
    ['status --bogus', 2, 'invalid', "unknown option '--bogus'"],
    ['tokens create --role viewer', 2, 'invalid', "required option '--name <name>' not specified"],
    ['purchases list --config none.json', 4, 'not_found', /^there is no none.json: /],
    ['restore none.backup', 4, 'not_found', /^there is no configuration/],
    ['frob', 2, 'invalid', "unknown command 'frob'"],
    ['init --yes', 2, 'invalid', /some answers are missing/],
  ])(
    'with --json comes with one JSON document that says why: `quayside %s`',
    async (command, exitCode, code, message) => {
      // A demo that was started in this folder plays no part.
      const answer = await run([...command.split(' '), '--json'], { env: { QUAYSIDE_DATA_DIR: temporaryFolder() } })
      expect(answer).toMatchObject({ exitCode, stdout: '' })
      expect(JSON.parse(answer.stderr)).toMatchObject({
        success: false,
        error: { code, message: expect.stringMatching(message) },
        request_id: null,
      })
    },
  )

  it('3 with --json says that nothing listens, under a name of its own', async () => {
    const { config } = writePlace(await refusedOrigin())
    const { exitCode, stderr } = await run(['status', '--json', '--config', config])
    expect({ exitCode, ...JSON.parse(stderr).error }).toMatchObject({ exitCode: 3, code: 'service_not_running' })
  })

  it('is listed in the help and in docs/operations.md, each with one meaning', async () => {
    const { stdout } = await run(['--help'])
    const listed = [...(stdout.split('Exit codes:\n')[1] ?? '').matchAll(/^ {2}(\d+) +(.+)$/gm)].map(
      ([, ...row]) => row,
    )
    expect(listed.map(([code]) => Number(code))).toEqual(Object.values(exitCodes))
    const rows = readFileSync('docs/operations.md', 'utf8').matchAll(/^\| (\d+) \| (.+) \|$/gm)
    expect([...rows].map(([, ...row]) => row)).toEqual(listed)
  })

  it('is 0 for help and version', async () => {
    expect(await run(['--version'])).toEqual({ exitCode: 0, stdout: `${manifest.version}\n`, stderr: '' })
    expect((await run(['--help'])).exitCode).toBe(0)
  })
})
