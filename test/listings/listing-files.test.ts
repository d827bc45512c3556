import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { fileLimits } from '../../src/domain/listing-csv.ts'
import { createIds } from '../../src/ids.ts'
import { importLinks } from '../../src/listings/links-file.ts'
import { auditOf } from '../../src/storage/evidence.ts'
import { listingsOfVariants, pageOfListings, putListings } from '../../src/storage/listings.ts'
import { type Offer, putOffer } from '../../src/storage/offers.ts'
import { type ApiWorld, openApi } from '../support/api-world.ts'
import { run, temporaryFolder, widest } from '../support/cli-run.ts'
import { STORE } from '../support/test-app.ts'

const CSV = { 'content-type': 'text/csv; charset=utf-8' }
const AT = `/stores/${STORE}/listings`

/** A world with offers, two of which share the SKU `TWIN`. */
async function openShop() {
  const world = await openApi()
  const offers = (await world.offers()) as Offer[]
  const [first, second] = offers
  if (!first || !second) throw new Error('the sandbox sells nothing')
  for (const productId of ['twin-1', 'twin-2']) {
    await world.db.commit([putOffer({ ...first, productId, sku: 'TWIN', asOf: first.asOf + 1 })])
  }
  const send = (raw: string | Uint8Array<ArrayBuffer>, query = '', headers = CSV) =>
    world.ask('POST', `${AT}/import${query}`, { raw, headers })
  const rows = (...variants: string[]) => world.db.query(listingsOfVariants(STORE, variants))
  const all = () => world.db.query(pageOfListings({ store: STORE, limit: 1_000 }))
  const exported = async () => {
    const { status, headers, body } = await world.ask('GET', `${AT}/export`)
    return { status, headers, text: body as unknown as string }
  }
  return { ...world, first, second, send, rows, all, exported }
}

/** A report with nothing in it but what is given. */
const report = (fields: object) => ({
  lines: 0,
  linked: 0,
  unlinked: 0,
  ignored: 0,
  unchanged: 0,
  refused: 0,
  problems: [],
  truncated: false,
  ...fields,
})

describe('an import', () => {
  test('links, ignores and unlinks as its lines say, and is in the audit under who sent it', async () => {
    const { send, rows, first, second, db, ask, tokens, publish } = await openShop()
    await ask('POST', `${AT}/old/link`, { body: { productId: second.productId } })
    const file = [
      'Action;Variation;SKU;Variant;Product',
      `link;Europe;${first.sku};V1;`,
      `;;OURS;V2;${second.productId}`,
      'IGNORE;;;V3;',
      'unlink;;;old;',
    ].join('\r\n')
    const { status, body } = await send(`\ufeff${file}\r\n`)
    expect([status, body.data]).toEqual([200, report({ lines: 4, linked: 2, ignored: 1, unlinked: 1 })])
    const found = new Map((await rows('V1', 'V2', 'V3', 'old')).map((row) => [row.variant, row]))
    const linked = { linkedBy: 'csv', state: 'pending' }
    expect(found.get('V1')).toMatchObject({
      ...linked,
      productId: first.productId,
      sku: first.sku,
      variation: 'Europe',
    })
    expect(found.get('V2')).toMatchObject({ ...linked, productId: second.productId, sku: 'OURS', variation: null })
    expect(found.get('V3')).toMatchObject({ state: 'ignored', detail: 'said so by a file' })
    expect(found.get('old')).toMatchObject({ productId: null, linkedBy: 'sku' })
    const [entry] = await db.query(auditOf(`${STORE} V1`))
    const detail = `${first.productId}, line 2 of a file`
    expect(entry).toMatchObject({ actor: 'owner', action: 'listing.link', detail })
    await publish()
    expect((await ask('GET', `${AT}/V1`, { token: tokens.viewer })).body.data).toMatchObject({ state: 'synced' })
    // `old` was never pushed to the store: nothing is left of it without its link.
    expect((await send(`\ufeff${file}\r\n`)).body.data).toMatchObject({ lines: 4, unchanged: 3, refused: 1 })
  })

  test('refuses the lines that it cannot take, by line and column, and carries out the others', async () => {
    const { send, all, first } = await openShop()
    const file = [
      'variant,sku,product,action,Colour',
      `V1,${first.sku},,,red`,
      'V2,nowhere,,,',
      'V3,TWIN,,,',
      `V4,${first.sku},,,`,
      'V5,,,,',
      `V4,${first.sku},,,`,
      `V6,${first.sku},,buy,`,
      'V7,,twin-2,,',
      `V8,"${'x'.repeat(201)}",,,`,
    ].join('\n')
    const { body } = await send(file)
    const problem = (line: number, column: string, message: string) => ({ line, column, message })
    expect(body.data).toEqual(
      report({
        lines: 9,
        linked: 2,
        refused: 7,
        problems: [
          problem(1, 'colour', 'this column is unknown: it is left unread'),
          problem(3, 'sku', 'no product of the supplier has the SKU nowhere'),
          problem(4, 'sku', 'the SKU TWIN is of products twin-1 and twin-2: name one of them in the column product'),
          problem(5, 'variant', 'V4 is in line 7 too: which of them counts?'),
          problem(6, 'sku', 'the cell is empty, and so is product: one of them must name the offer'),
          problem(7, 'variant', 'V4 is in line 5 too: which of them counts?'),
          problem(8, 'action', 'the cell must be one of link, ignore, unlink, or empty'),
          problem(10, 'sku', 'the cell is longer than 200 characters'),
        ],
      }),
    )
    expect((await all()).map(({ variant, productId }) => [variant, productId])).toEqual([
      ['V1', first.productId],
      ['V7', 'twin-2'],
    ])
  })

  test('as a dry run tells the same and writes nothing', async () => {
    const { send, all, first, db } = await openShop()
    const file = `variant,sku,action\nV1,${first.sku},\nV2,,ignore\nV3,nowhere,\n`
    const dry = await send(file, '?dry_run=true')
    expect(dry.body.data).toMatchObject({ lines: 3, linked: 1, ignored: 1, refused: 1 })
    expect([await all(), await db.query(auditOf(`${STORE} V1`))]).toEqual([[], []])
    expect((await send(file, '?dry_run=false')).body.data).toEqual(dry.body.data)
    expect(await all()).toHaveLength(2)
  })

  test('of more lines than one commit holds takes them all, once', async () => {
    const { send, all, first } = await openShop()
    const lines = Array.from({ length: 257 }, (_, place) => `V${place},${first.sku}`)
    const file = `variant,sku\n${lines.join('\n')}`
    expect((await send(file)).body.data).toEqual(report({ lines: 257, linked: 257 }))
    expect(new Set((await all()).map(({ version }) => version))).toEqual(new Set([1]))
    expect((await send(file)).body.data).toEqual(report({ lines: 257, unchanged: 257 }))
  })

  test.each([
    ['decides again on a listing that was changed meanwhile', 1, { linked: 2, refused: 0 }],
    ['gives up on listings that never stand still, and says so', 9, { linked: 0, refused: 2 }],
  ])('%s', async (_what, changes, outcome) => {
    const { db, now, rows, send, first, second } = await openShop()
    await send(`variant,sku\nV1,${first.sku}\n`)
    let left = changes
    const commit: typeof db.commit = async (list) => {
      const [row] = await rows('V1')
      if (row && left-- > 0) await db.commit(putListings([{ ...row, version: row.version + 1 }]))
      return db.commit(list)
    }
    let woken = 0
    const linking = { db: { ...db, commit }, now, newId: createIds(now, randomBytes), wake: () => (woken += 1) }
    const file = Buffer.from(`variant,sku,product\nV1,,${second.productId}\nV2,${first.sku},\n`)
    const taken = await importLinks(linking, { store: STORE, actor: 'a test', dryRun: false }, file)
    expect(taken).toMatchObject({ lines: 2, unchanged: 0, ...outcome })
    expect([await rows('V2'), woken]).toMatchObject([{ length: outcome.linked / 2 }, outcome.linked / 2])
    expect((await rows('V1'))[0]?.productId).toBe(outcome.linked ? second.productId : first.productId)
  })

  test('lists a thousand problems and says that there are more', async () => {
    const { send, all } = await openShop()
    const lines = Array.from({ length: 1_001 }, (_, place) => `V${place},nowhere`)
    const { body } = await send(`variant,sku\n${lines.join('\n')}`)
    expect(body.data).toMatchObject({ lines: 1_001, refused: 1_001, truncated: true })
    expect(body.data.problems).toHaveLength(1_000)
    expect(await all()).toEqual([])
  })

  test.each<[string, string | Uint8Array<ArrayBuffer>, number, string]>([
    ['is empty', '', 400, 'the file is empty'],
    ['has no header', 'V1,A\n', 400, 'the column variant is missing'],
    ['breaks off in the middle of quotes', 'variant,sku\nV1,A\nV2,"B\n', 400, 'line 3 opens a quote'],
    [
      'is in another encoding',
      new Uint8Array(Buffer.from('variant,sku\nV1,\xdf\n', 'latin1')),
      400,
      'line 2 is not UTF-8',
    ],
    ['has a million columns', `variant,sku\nV1,A\nV2${',x'.repeat(1_000_000)}\n`, 413, 'more than 64 KiB in line 3'],
    [
      'has too many lines',
      `variant,sku\n${'V1,A\n'.repeat(fileLimits.linesMax + 1)}`,
      413,
      'more than 200,000 listings',
    ],
    ['is too large', `variant,sku\n${'x'.repeat(fileLimits.bytesMax)}`, 413, 'larger than 20 MiB'],
  ])('of a file that %s changes nothing', async (_what, file, status, message) => {
    const { send, all } = await openShop()
    const answer = await send(file)
    expect([answer.status, answer.body.error.message]).toEqual([status, expect.stringContaining(message)])
    expect(await all()).toEqual([])
  })

  test('of a header alone finds nothing to do', async () => {
    expect((await (await openShop()).send('variant,sku\r\n')).body.data).toEqual(report({}))
  })

  test('is for people who may, for stores that are there, and for CSV', async () => {
    const { ask, tokens, all, first } = await openShop()
    const raw = `variant,sku\nV1,${first.sku}\n`
    const status = async (at: string, request: object) =>
      (await ask('POST', at, { raw, headers: CSV, ...request })).status
    expect(await status(`${AT}/import`, { token: tokens.viewer })).toBe(403)
    expect(await status(`${AT}/import`, { token: tokens.store })).toBe(403)
    expect(await status('/stores/nowhere/listings/import', {})).toBe(404)
    for (const type of ['application/json', 'text/plain', 'text/csv; charset=utf-16', 'text/csvx']) {
      expect(await status(`${AT}/import`, { headers: { 'content-type': type } }), type).toBe(415)
    }
    expect(await status(`${AT}/import`, { headers: { ...CSV, 'content-encoding': 'gzip' } })).toBe(415)
    expect(await all()).toEqual([])
    expect(await status(`${AT}/import`, { token: tokens.operator })).toBe(200)
  })
})

/** A shop with a listing of each kind, under names that are no trouble and under some that are. */
async function openStockedShop() {
  const shop = await openShop()
  const { first, second, send, ask, db, publish } = shop
  await send(`variant,sku,product,variation\nV1,${first.sku},,Europe\n"=1+1","-OURS",${second.productId},"@a, ""b"""\n`)
  await ask('POST', `${AT}/V3/ignore`, { body: { reason: 'sold by hand' } })
  await publish()
  const [row] = await shop.rows('V1')
  if (!row) throw new Error('V1 is not there')
  const strange = {
    ...row,
    variant: "'\t=A\r\nB",
    sku: ' TWIN ',
    linkedBy: 'sku',
    productId: null,
    version: 1,
  } as const
  await db.commit(putListings([strange]))
  return shop
}

describe('an export', () => {
  test('has every listing of the store, and nothing in it is a formula', async () => {
    const { exported, ask, first, second, rows } = await openStockedShop()
    await ask('POST', `/stores/other-ef56gh78/listings/elsewhere/ignore`, { body: { reason: 'a test' } })
    const { status, headers, text } = await exported()
    expect([status, headers.get('content-type')]).toEqual([200, 'text/csv; charset=utf-8'])
    expect(headers.get('content-disposition')).toBe(`attachment; filename="listings-${STORE}.csv"`)
    const [row] = await rows('V1')
    const price = `${((row?.knownPriceMinor ?? 0) / 100).toFixed(2)},${row?.knownCurrency},${row?.knownStock}`
    expect(text).toContain('\ufeffvariant,sku,product,variation,action,name,state,reason,price,currency,stock\r\n')
    expect(text).toContain(`\r\nV1,${first.sku},${first.productId},Europe,link,`)
    expect(text).toContain(`,synced,,${price}\r\n`)
    expect(text).toContain(`\r\n'=1+1,'-OURS,${second.productId},"'@a, ""b""",link,`)
    expect(text).toContain('\r\nV3,V3,,,ignore,,ignored,ignored,,,\r\n')
    expect(text).toContain(`"''\t=A\r\nB", TWIN ,,Europe,,`)
    expect(text).not.toContain('elsewhere')
  })

  test('changes nothing when it is imported, and is the same again', async () => {
    const { exported, send, all } = await openStockedShop()
    const [before, { text }] = [await all(), await exported()]
    expect(before.length).toBeGreaterThan(3)
    expect((await send(text)).body.data).toEqual(report({ lines: before.length, unchanged: before.length }))
    expect(await all()).toEqual(before)
    expect((await exported()).text).toBe(text)
  })

  test('of more than one page goes on where the page before ended', async () => {
    const { exported, send, first } = await openShop()
    const lines = Array.from({ length: 1_001 }, (_, place) => `V${String(place).padStart(4, '0')},${first.sku}`)
    await send(`variant,sku\n${lines.join('\n')}`)
    const { text } = await exported()
    const variants = [...text.matchAll(/^V\d+/gm)].map(([variant]) => variant)
    expect(variants).toEqual(lines.map((line) => line.slice(0, 5)))
  })

  test('is for the store itself and for people', async () => {
    const { ask, tokens } = await openShop()
    const status = async (token: string, store = STORE) =>
      (await ask('GET', `/stores/${store}/listings/export`, { token })).status
    expect(await status(tokens.store)).toBe(200)
    expect(await status(tokens.viewer)).toBe(200)
    expect(await status(tokens.other)).toBe(403)
    expect(await status(tokens.viewer, 'nowhere')).toBe(404)
  })
})

async function command(world: Pick<ApiWorld, 'url' | 'tokens'>) {
  const folder = temporaryFolder()
  mkdirSync(path.join(folder, 'run'))
  const config = path.join(folder, 'quayside.json')
  writeFileSync(config, JSON.stringify({ dataDir: path.join(folder, 'run') }))
  const shared = ['--store', STORE, '--config', config, '--url', world.url, '--token', world.tokens.operator]
  return {
    shared,
    file: (text: string | Uint8Array) => {
      const name = path.join(folder, 'listings.csv')
      writeFileSync(name, text)
      return name
    },
    quayside: (...argv: string[]) => run(['listings', ...argv, ...shared], { terminal: true }),
  }
}

describe('quayside listings', () => {
  test('import tells line by line, in 80 columns, and fails when a line was refused', async () => {
    const shop = await openShop()
    const { quayside, file } = await command(shop)
    const name = file(`variant,sku\nV1,${shop.first.sku}\nV2,TWIN\n`)
    const dry = await quayside('import', name, '--dry-run')
    expect([dry.exitCode, await shop.all()]).toEqual([1, []])
    expect(dry.stdout).toContain('Nothing was changed')
    const { exitCode, stdout, stderr } = await quayside('import', name)
    expect([exitCode, stderr, widest(stdout) <= 80]).toEqual([1, '', true])
    expect(stdout).toBe(
      [
        ...['Lines      2', 'Linked     1', 'Unlinked   0', 'Ignored    0', 'Unchanged  0', 'Refused    1', ''],
        'LINE  COLUMN  WHY',
        '   3  sku     the SKU TWIN is of products twin-1 and twin-2: name one of them in',
        '              the column product',
        '',
      ].join('\n'),
    )
    const again = await quayside('import', file(`variant,sku\nV1,${shop.first.sku}\n`), '--json')
    expect([again.exitCode, JSON.parse(again.stdout)]).toEqual([0, report({ lines: 1, linked: 0, unchanged: 1 })])
  })

  test('import reads standard input', async () => {
    const shop = await openShop()
    const { shared } = await command(shop)
    const piped = `variant,sku\nV1,${shop.first.sku}\n`
    const { exitCode, stdout } = await run(['listings', 'import', '-', '--json', ...shared], { piped })
    expect([exitCode, JSON.parse(stdout)]).toEqual([0, report({ lines: 1, linked: 1 })])
    expect(await shop.rows('V1')).toMatchObject([{ productId: shop.first.productId, linkedBy: 'csv' }])
    const large = await run(['listings', 'import', '-', ...shared], { piped: 'x'.repeat(fileLimits.bytesMax + 1) })
    expect([large.exitCode, large.stderr]).toEqual([2, expect.stringContaining('larger than 20 MiB')])
  })

  test('export writes what import takes back', async () => {
    const shop = await openStockedShop()
    const { quayside, file } = await command(shop)
    const { exitCode, stdout } = await quayside('export')
    expect([exitCode, stdout]).toEqual([0, (await shop.exported()).text])
    const all = await shop.all()
    const taken = JSON.parse((await quayside('import', file(stdout), '--json')).stdout)
    expect(taken).toEqual(report({ lines: all.length, unchanged: all.length }))
    const { store, csv } = JSON.parse((await quayside('export', '--json')).stdout)
    expect([store, csv]).toEqual([STORE, stdout])
  })

  test('import names what is wrong with a file, and changes nothing', async () => {
    const shop = await openShop()
    const { quayside, file } = await command(shop)
    const name = file('V1,A\n')
    for (const [argument, message, code] of [
      [name, 'the column variant is missing', 2],
      [`${name}.not`, `there is no ${name}.not`, 4],
    ] as const) {
      const { exitCode, stdout, stderr } = await quayside('import', argument)
      expect([exitCode, stdout, stderr]).toEqual([code, '', expect.stringContaining(message)])
    }
    expect(await shop.all()).toEqual([])
  })
})

describe('the page on listings', () => {
  const page = readFileSync(new URL('../../docs/listings.md', import.meta.url), 'utf8')
  const block = (language: string, place = 0) =>
    [...page.matchAll(new RegExp(`\`\`\`${language}\\n([^\`]*)\`\`\``, 'g'))][place]?.[1] ?? ''

  test('has an example that comes out as it says', async () => {
    const shop = await openShop()
    const offers = [...page.matchAll(/^\| `(p-\d+)` \| `([^`]+)` \|$/gm)]
    expect(offers).toHaveLength(3)
    for (const [, productId = '', sku = ''] of offers) {
      await shop.db.commit([putOffer({ ...shop.first, productId, sku, name: sku, asOf: shop.first.asOf + 1 })])
    }
    const { quayside, file } = await command(shop)
    const { exitCode, stdout } = await quayside('import', file(block('csv')))
    expect([exitCode, stdout]).toEqual([1, block('text')])
    expect((await quayside('export')).stdout).toBe(`\ufeff${block('csv', 1).replaceAll('\n', '\r\n')}`)
  })
})
