/** Keys that are no plain text, from the supplier to their customers, and all places where people read keys. */
import { expect, test } from 'vitest'
import { isMark } from '../../src/domain/licence-key.ts'
import { exportOrders } from '../../src/ordering/order-export.ts'
import { revealKeys } from '../../src/ordering/order-history.ts'
import { viewOrder } from '../../src/ordering/order-view.ts'
import { resendKeys } from '../../src/ordering/resend.ts'
import { revealsOfOrder, withdrawKeyPage } from '../../src/storage/key-pages.ts'
import { keysOfPurchases } from '../../src/storage/licence-keys.ts'
import type { PushedKeys } from '../../src/stores/store.ts'
import { GIF, PDF, PNG, voucherPicture } from '../support/key-contents.ts'
import type { KeyPageOptions } from '../support/key-page.ts'
import { decide } from '../support/reviews.ts'
import { first, type TestApp } from '../support/test-app.ts'
import { ALL, CARD, LINK, openTyped } from '../support/typed-keys.ts'

const MINUTE = 60_000
const stored = async ({ db, purchases }: TestApp, orderId: string) =>
  db.query(keysOfPurchases((await purchases(orderId)).map(({ id }) => id)))

test('keeps what each key is beside its sealed content', async () => {
  const { app, orderId } = await openTyped(ALL)
  await app.pass(MINUTE)
  expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled' })
  const rows = await stored(app, orderId)
  expect(rows.map(({ type }) => type)).toEqual(['pair', 'url', 'image', 'file'])
  for (const { ciphertext } of rows) expect(ciphertext.toString('latin1')).not.toContain('PNG')
})

test('shows a picture as a picture, a file as a download, a link as a link and two parts as two fields, after the click', async () => {
  const { app, open, call, orderId } = await openTyped(ALL)
  await app.pass(MINUTE)
  const closed = await call('GET')
  for (const secret of [CARD.code, CARD.pin, PNG, PDF, 'rewards.example']) expect(closed.text).not.toContain(secret)
  expect(closed.headers.get('content-security-policy')).not.toContain('img-src')
  const { text, headers } = await open()
  expect(text).toContain('<p class="small quiet">Card number</p><code translate="no">0042-CARD</code>')
  expect(text).toContain('<p class="small quiet">PIN</p><code translate="no">007</code>')
  expect(text).toContain('href="https://rewards.example/claim?a=1&amp;b=&lt;2&gt;" rel="noreferrer noopener"')
  expect(text).toContain(`<img src="data:image/png;base64,${PNG}"`)
  expect(text.split(PNG), 'the picture is nowhere else').toHaveLength(2)
  expect(text).not.toContain(PDF)
  expect(headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(headers.get('content-security-policy')).toContain('img-src data:')
  expect(await app.db.query(revealsOfOrder(orderId))).toHaveLength(4)
})

test('downloads a picture and a file under names of ours, never inside the page', async () => {
  const { app, open, url } = await openTyped(ALL)
  await app.pass(MINUTE)
  const names = [...(await open()).text.matchAll(/name="key" value="([^"]+)"/g)].map(([, name = '']) => name)
  expect(names).toHaveLength(2)
  const load = (key: string, line = '1') => fetch(url, { method: 'POST', body: new URLSearchParams({ line, key }) })
  const [picture, file] = [await load(first(names)), await load(names[1] ?? '')]
  expect(picture.headers.get('content-type')).toBe('image/png')
  expect(picture.headers.get('content-disposition')).toBe('attachment; filename="key-3.png"')
  expect(Buffer.from(await picture.arrayBuffer()).toString('base64')).toBe(PNG)
  expect(file.headers.get('content-type')).toBe('application/octet-stream')
  expect(file.headers.get('content-disposition')).toBe('attachment; filename="key-4.pdf"')
  expect(file.headers.get('x-content-type-options')).toBe('nosniff')
  expect(file.headers.get('content-security-policy')).toContain('sandbox')
  expect(file.headers.get('cache-control')).toBe('no-store')
  expect(Buffer.from(await file.arrayBuffer()).toString('base64')).toBe(PDF)
  const other = await load('no such key')
  expect(other.headers.get('content-type')).toContain('text/html')
})

test('gives no file away by its name once the page is withdrawn', async () => {
  const { app, open, url, orderId } = await openTyped(ALL)
  await app.pass(MINUTE)
  const [, name = ''] = /name="key" value="([^"]+)"/.exec((await open()).text) ?? []
  await app.db.commit([withdrawKeyPage(orderId, 'kim', app.now())])
  const answer = await fetch(url, { method: 'POST', body: new URLSearchParams({ line: '1', key: name }) })
  expect(answer.headers.get('content-type')).toContain('text/html')
  const text = await answer.text()
  expect(text).toContain('This page is closed.')
  expect(text).not.toContain(PNG)
})

test('gives a backend that takes keys the link in place of a picture', async () => {
  const { app } = await openTyped([{ kind: 'I', code: PNG }])
  await app.pass(MINUTE)
  const { keys, keysUrl } = first(app.callbacks('line.fulfilled')).data as { keys: string[]; keysUrl: string }
  expect(keysUrl).toMatch(/^https:\/\/keys\.example\/k\//)
  expect(keys).toEqual([keysUrl])
})

test('gives a shop that takes plain keys the link alone, with a mark for each key by which it knows a repeat', async () => {
  const { app } = await openTyped([{ kind: 'I', code: PNG }, CARD])
  const pushed: PushedKeys[] = []
  const fulfil = async (update: PushedKeys) => {
    pushed.push(update)
    return { outcome: 'confirmed' as const }
  }
  Object.assign(app.store, { deliver: 'keys', fulfil })
  await app.pass(MINUTE)
  expect(pushed).toMatchObject([{ by: 'link', keysUrl: expect.stringContaining('/k/') }])
  expect(pushed[0]?.keys.map(isMark)).toEqual([true, true])
  expect(pushed[0]?.otherForm?.[0], 'no form of a picture is its content').toBe(pushed[0]?.keys[0])
})

test('gives a backend an address as text, and two parts as two lines', async () => {
  const { app } = await openTyped([CARD, { kind: 'U', code: LINK }])
  await app.pass(MINUTE)
  expect(app.callbacks('line.fulfilled')[0]?.data).toMatchObject({
    keys: ['Card number: 0042-CARD\nPIN: 007', LINK],
  })
})

test('shows the people on duty and the API no content of a picture or a file, but the page of keys', async () => {
  const { app, orderId } = await openTyped(ALL)
  await app.pass(MINUTE)
  const page = expect.stringMatching(/^https:\/\/keys\.example\/k\//)
  const texts = ['Card number: 0042-CARD\nPIN: 007', LINK, page, page]
  const { lines } = await viewOrder(app.ordering, orderId, { keys: true })
  expect(lines[0]?.keys).toEqual(texts)
  expect(lines[0]?.typedKeys).toMatchObject([
    {
      type: 'pair',
      parts: [
        { label: 'Card number', text: '0042-CARD' },
        { label: 'PIN', text: '007' },
      ],
    },
    { type: 'url', text: LINK },
    { type: 'image', text: page },
    { type: 'file', text: page },
  ])
  const why = { actor: 'kim', reason: 'the customer asks' }
  const revealed = await revealKeys(app.ordering, orderId, undefined, why)
  expect(revealed[0]?.keys.map(({ key }) => key)).toEqual(texts)
  for await (const rows of await exportOrders(app.ordering, {}, why)) expect(rows[0]?.keys).toEqual(texts)
})

test('has the same plain keys in the API as ever where all are texts', async () => {
  const { app, orderId } = await openTyped([{ kind: 'T', code: 'AAAA-BBBB' }])
  await app.pass(MINUTE)
  const { lines } = await viewOrder(app.ordering, orderId, { keys: true })
  expect(lines[0]).toMatchObject({ keys: ['AAAA-BBBB'] })
  expect(lines[0]).not.toHaveProperty('typedKeys')
})

test('waits for a person, and is not lost, where no page can show a picture, and goes out once there is a publicUrl', async () => {
  const { app, orderId } = await openTyped([{ kind: 'I', code: PNG }], { keyPagesAt: undefined } as KeyPageOptions)
  await app.pass(MINUTE)
  expect(await app.purchase(orderId)).toMatchObject({ state: 'review', note: expect.stringContaining('set publicUrl') })
  expect(await app.alerts()).toEqual(['keys_not_text'])
  expect(await stored(app, orderId)).toMatchObject([{ type: 'image', handOverId: null }])
  await decide(app, orderId, { type: 'hand_over' })
  await app.pass(MINUTE)
  expect(app.callbacks('line.fulfilled'), 'a decision alone gives no key away without a page').toEqual([])
  Object.assign(app.ordering, { keysUrl: async () => 'https://keys.example/k/token' })
  await app.pass(30 * MINUTE)
  expect(app.callbacks('line.fulfilled')).toMatchObject([{ data: { keys: ['https://keys.example/k/token'] } }])
  expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled' })
})

test('is not sent again by a shop once no page can show it: a mark is no key', async () => {
  const { app, orderId } = await openTyped([{ kind: 'I', code: PNG }])
  await app.pass(MINUTE)
  const sent: unknown[] = []
  const resend = async (keys: unknown) => {
    sent.push(keys)
    return { outcome: 'confirmed' as const }
  }
  const storeOf = () => ({ ...app.store, resend })
  const again = resendKeys({ ...app.ordering, storeOf, keysUrl: undefined } as never, orderId, 'kim')
  await expect(again).rejects.toMatchObject({ reason: 'no_page', message: expect.stringContaining('set publicUrl') })
  expect(sent).toEqual([])
})

test.each([
  {
    what: 'the same picture',
    one: [{ kind: 'I', code: PNG }],
    two: [{ kind: 'I', code: `${PNG.slice(0, 40)}\n${PNG.slice(40)}` }],
  },
  { what: 'the same card with other blanks', one: [CARD], two: [{ ...CARD, code: ' 0042-CARD ' }] },
  { what: 'the same address', one: [{ kind: 'U', code: LINK }], two: [{ kind: 'U', code: `${LINK}\n` }] },
])('is seen on another line: $what', async ({ one, two }) => {
  const keys = [...one]
  const { app } = await openTyped(keys)
  await app.pass(MINUTE)
  keys.splice(0, 1, ...two)
  const orderId = await app.buy('1002')
  await app.pass(MINUTE)
  expect(await app.purchase(orderId)).toMatchObject({ state: 'review' })
  expect(await app.alerts()).toEqual(['key_seen_elsewhere'])
})

test('keeps the content of pictures and files out of logs and callbacks', async () => {
  const pictures = [PNG, voucherPicture(3)]
  const { app } = await openTyped([...pictures.map((code) => ({ kind: 'I', code })), { kind: 'F', code: GIF }])
  await app.pass(30 * MINUTE)
  const said = [...app.lines, JSON.stringify(app.shop.received())].join('\n')
  expect(said).toContain('line.fulfilled')
  for (const content of [...pictures, GIF]) expect(said).not.toContain(content.slice(30, 60))
})

test('goes on where a picture of 900 KB comes, which is longer than any text', async () => {
  const big = Buffer.concat([Buffer.from(PNG, 'base64'), Buffer.alloc(900_000, 7)]).toString('base64')
  const { app, orderId, open } = await openTyped([{ kind: 'I', code: big }])
  await app.pass(MINUTE)
  expect(await app.purchase(orderId)).toMatchObject({ state: 'fulfilled' })
  expect((await open()).text).toContain(big)
})
