/** The judge of a WooCommerce shop must be able to find what it is there for. */
import { expect, test } from 'vitest'
import { createWooCommerceShop } from '../../shops/woocommerce-shop.ts'
import { faultsIn } from './woocommerce-verdict.ts'

const KEY = 'AAAA-1111'
const EMAIL = 'one@shop.test'
const NOTE = `Licence key: GAME\n<code>${KEY}</code>`

/** A customer has paid for one unit of one product, and has its key: all is as it must be. */
function booksOfOneOrder() {
  const shop = createWooCommerceShop()
  const sell = (sku: string) => shop.addProduct({ sku, name: sku, regular_price: '10.00', virtual: true })
  const order = shop.buy({ lines: [{ product: sell('GAME').id }], email: EMAIL })
  const [line] = order.lines
  if (!line) throw new Error('the order has no line')
  const referenceOf = (part: number, id = line.id) => `q1.shop.${order.id}.${id}.${part}.1`
  const charge = (part: number) => ({
    kind: 'charge' as const,
    orderId: `ord_${part}`,
    externalOrderId: referenceOf(part),
    idempotencyKey: null,
    amountMinor: 500,
    at: 0,
  })
  const keysMeta = { id: 1, key: '_quayside_keys', value: JSON.stringify([KEY]) }
  line.meta.push({ id: 2, key: 'Licence key', value: KEY }, keysMeta)
  order.meta.push({ id: 3, key: '_quayside_completed', value: '1' })
  shop.setStatus(order.id, 'completed')
  const mails = shop.mails()
  const keysIssued: Record<string, string[]> = { [referenceOf(1)]: [KEY] }
  const books = {
    shop: { orders: shop.orders, products: shop.products, mails: () => mails },
    ledger: { charges: [charge(1)], refunds: [] as ReturnType<typeof charge>[], keysIssued, closes: true },
    skus: ['GAME'],
    others: ['SHIRT'],
    quantityMax: 2,
    printsKeys: true,
    opened: undefined as Parameters<typeof faultsIn>[0]['opened'],
    changed: new Set<string>(),
    completedByHand: new Set<string>(),
    doubtful: new Set<string>(),
  }
  return {
    books,
    order,
    line,
    charge,
    keysMeta,
    sell,
    /** Another order of the same, or of another product. */
    buy: (payment: 'paid' | 'pending', product = line.productId) =>
      shop.setStatus(shop.buy({ lines: [{ product }], payment }).id, payment === 'paid' ? 'completed' : 'pending'),
    note: (text: string) =>
      order.notes.push({ id: 1, author: '', note: text, isForCustomer: text.includes('key'), createdAt: 0 }),
    /** A note for the customer, and its mail, which prints the lines of the order too. */
    noteMailed: (note: string, to = EMAIL, at = order.completedAt ?? 0) => {
      order.notes.push({ id: mails.length, author: '', note, isForCustomer: true, createdAt: 0 })
      const printed = `Licence key: ${KEY}`
      const parts = { text: `${note}\n${printed}`, words: [note], lines: [printed] }
      mails.push({ order: order.id, kind: 'customer_note', to, at, ...parts })
    },
  }
}
type Story = ReturnType<typeof booksOfOneOrder>

/** The merchant completed the order himself. */
const byMerchant = ({ order }: Story) => order.meta.splice(0)

const wrong: [string, string[], (story: Story) => unknown][] = [
  ['a key that no mail brought', ['given by 0 mails'], ({ books }) => books.shop.mails().splice(0)],
  ['a key by two mails', ['given by 2 mails'], ({ noteMailed }) => noteMailed(NOTE)],
  [
    'a key by two mails, where the merchant completed an order of which every answer came',
    ['given by 2 mails'],
    (story) => [byMerchant(story), story.noteMailed(NOTE)],
  ],
  [
    'a key by two mails, where Quayside completed an order of which an answer was lost',
    ['given by 2 mails'],
    ({ books, noteMailed }) => [books.doubtful.add(KEY), noteMailed(NOTE)],
  ],
  [
    'a key by two mails, where the merchant completed an order of which another key was being written when an answer was lost',
    ['given by 2 mails'],
    (story) => [byMerchant(story), story.books.doubtful.add('BBBB-1111'), story.noteMailed(NOTE)],
  ],
  [
    'a key by three mails, whatever was lost',
    ['given by 3 mails'],
    (story) => [
      byMerchant(story),
      story.books.doubtful.add(KEY),
      story.noteMailed(`First: ${NOTE}`),
      story.noteMailed(`Again: ${NOTE}`),
    ],
  ],
  [
    'a key that stands in the mail of another note before it is given',
    ['came by another mail before'],
    ({ books, noteMailed }) => [books.shop.mails().splice(0), noteMailed('other'), noteMailed(NOTE)],
  ],
  [
    'a key that stands in the mail of another note before its merchant completed the order, whatever was lost',
    ['came by another mail before'],
    (story) => [
      byMerchant(story),
      story.books.doubtful.add(KEY),
      story.books.shop.mails().splice(0),
      story.noteMailed('other', EMAIL, 0),
      story.noteMailed(NOTE),
    ],
  ],
  [
    'a key for another customer',
    ['went to another customer'],
    ({ books, noteMailed }) => [books.shop.mails().splice(0), noteMailed(NOTE, 'two@shop.test')],
  ],
  ['a line without its key', ['has 0 keys, not 1', 'has other keys'], ({ keysMeta }) => (keysMeta.value = '[]')],
  ['a key of another line', ['has other keys'], ({ keysMeta }) => (keysMeta.value = '["BBBB-2222"]')],
  [
    'a unit above the quantity',
    ['has 2 keys, not 1', 'has other keys'],
    ({ keysMeta }) => (keysMeta.value = JSON.stringify([KEY, KEY])),
  ],
  ['a note for the customer twice', ['has a note twice'], ({ note }) => [note('key'), note('key')]],
  ['a remark of Quayside twice', ['has a note twice'], ({ note }) => [note('[quayside 1]'), note('[quayside 1]')]],
  ['an order that stays open', ['is still processing'], ({ order }) => (order.status = 'processing')],
  [
    'a part that was charged twice',
    ['was charged 2 times'],
    ({ books, charge }) => books.ledger.charges.push(charge(1)),
  ],
  [
    'a part that was never paid',
    ['was bought and never paid'],
    ({ books, charge }) => books.ledger.charges.push(charge(2)),
  ],
  ['a paid part that was not bought', ['was paid and never bought'], ({ books }) => books.ledger.charges.splice(0)],
  [
    'an order that was bought before it was paid',
    ['bought and never paid', 'has 1 keys, not 0'],
    ({ order }) => (order.paidAt = null),
  ],
  ['a paid order that was overlooked', ['was paid and never bought', 'has 0 keys, not 1'], ({ buy }) => buy('paid')],
  ['a refund', ['was refunded'], ({ books, charge }) => books.ledger.refunds.push(charge(1))],
  ['sums that do not close', ['sums do not close'], ({ books }) => (books.ledger.closes = false)],
  ['a product that is missing', ['0 products with the SKU PEN'], ({ books }) => books.skus.push('PEN')],
  [
    'a product without a price',
    ['GAME has no price'],
    ({ books }) => {
      for (const product of books.shop.products.values()) product.regularPrice = ''
    },
  ],
  ['a product without an offer', ['PEN is a product of no offer'], ({ sell }) => sell('PEN')],
  [
    'a product twice',
    ['2 products with the SKU GAME'],
    ({ books, sell }) => ((books.shop.products.get(sell('OTHER').id) ?? { sku: '' }).sku = 'GAME'),
  ],
]

test('books in which all is right have no fault: an order waits for its money, one has no licence keys', () => {
  const { books, buy, sell } = booksOfOneOrder()
  buy('pending')
  buy('paid', sell('SHIRT').id)
  expect(faultsIn(books)).toEqual([])
})

test('a key is given a second time where the merchant completed an order of which an answer was lost', () => {
  const story = booksOfOneOrder()
  byMerchant(story)
  story.books.doubtful.add(KEY)
  story.noteMailed(NOTE)
  expect(faultsIn(story.books)).toEqual([])
})

test('a key comes by the mail of another note first where the merchant completed an order of which an answer was lost', () => {
  const story = booksOfOneOrder()
  byMerchant(story)
  story.books.doubtful.add(KEY)
  story.books.shop.mails().splice(0)
  story.noteMailed('other')
  story.noteMailed(NOTE)
  expect(faultsIn(story.books)).toEqual([])
})

test('a key may stand in a later mail about its order, which is about something else', () => {
  const { books, noteMailed } = booksOfOneOrder()
  noteMailed('other')
  expect(faultsIn(books)).toEqual([])
})

test.each(wrong)('%s is a fault', (_, sentences, happens) => {
  const story = booksOfOneOrder()
  happens(story)
  expect(faultsIn(story.books)).toEqual(sentences.map((sentence) => expect.stringMatching(sentence)))
})

/** The same order, whose customer gets the link alone, and has opened it. */
function linkedBooks() {
  const story = booksOfOneOrder()
  const { books, order, line, keysMeta } = story
  keysMeta.value = JSON.stringify(['qk-mark'])
  for (const meta of line.meta) if (meta.key === 'Licence key') meta.value = 'https://keys.test/k/1'
  for (const mail of books.shop.mails()) mail.text = mail.text.replace(KEY, 'https://keys.test/k/1')
  const opened = { pages: 1, lines: new Map([[String(line.id), [KEY]]]), wrong: [] as string[] }
  return { ...story, opened, books: { ...books, printsKeys: false, opened: new Map([[String(order.id), opened]]) } }
}

test('an order whose keys were opened has no fault', () => {
  expect(faultsIn(linkedBooks().books)).toEqual([])
})

const unlinked: [string, string, (story: ReturnType<typeof linkedBooks>) => unknown][] = [
  ['a page without a link to it', 'does not see 1 of its keys', ({ books }) => books.opened.clear()],
  ['a page that does not open', 'answers 404', ({ opened }) => opened.wrong.push('answers 404')],
  ['a key in its line', 'is in the shop', ({ line }) => line.meta.push({ id: 9, key: 'Licence key', value: KEY })],
  ['a key in a mail', 'is in the shop', ({ noteMailed }) => noteMailed(NOTE)],
  ['a mark that is missing', 'has 0 keys, not 1', ({ keysMeta }) => (keysMeta.value = '[]')],
]
test.each(unlinked)('%s is a fault of an order whose customer gets the link alone', (_, sentence, happens) => {
  const story = linkedBooks()
  happens(story)
  expect(faultsIn(story.books)).toContainEqual(expect.stringContaining(sentence))
})
