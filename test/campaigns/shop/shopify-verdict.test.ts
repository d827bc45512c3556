/** The judge of a shop of Shopify must be able to find what it is there for. */
import { expect, test } from 'vitest'
import { keysInMails } from '../../shops/shopify-mails.ts'
import { createShopifyShop } from '../../shops/shopify-shop.ts'
import { faultsIn, RETRY_TAG } from './shopify-verdict.ts'

const KEYS = ['AAAA-1111', 'AAAA-2222', 'AAAA-3333']
const [FIRST = '', SECOND = '', THIRD = ''] = KEYS
const EMAIL = 'one@shop.test'
const NAMESPACE = 'quayside'
const late = (sku: string) =>
  `Quayside: the order was fulfilled in the shop before 1 licence keys of ${sku} came. They are on the order now, and the shop is asked to write to the customer again. [quayside 1]`
const LATE = late('GAME')

/** A customer has paid for three units of one product, and has their keys by two hand-overs: all is as it must be. */
function booksOfOneOrder() {
  const shop = createShopifyShop({ policy: keysInMails(NAMESPACE) })
  const sell = (sku: string) => shop.addProduct({ sku, title: sku, price: '10.00', stock: 50 }).variants[0]?.id ?? ''
  const variant = sell('GAME')
  const order = shop.buy({ lines: [{ variant, quantity: 3 }], email: EMAIL })
  const [line] = order.lines
  if (!line) throw new Error('the order has no line')
  const referenceOf = (part: number) => `q1.shop.${order.id}.${line.id}.${part}.1`
  const charge = (part: number) => ({
    kind: 'charge' as const,
    orderId: `ord_${part}`,
    externalOrderId: referenceOf(part),
    idempotencyKey: null,
    amountMinor: 500,
    at: 0,
  })
  const put = (key: string, ...lines: string[]) => shop.putMetafield(order.id, NAMESPACE, key, lines.join('\n'))
  const fulfil = (quantity: number) => shop.fulfilByHand(order.id, { line: line.id, quantity }, true)
  put('keys_1', 'GAME', FIRST, SECOND)
  const first = fulfil(2)
  put('keys_2', 'GAME', THIRD)
  const second = fulfil(1)
  const mails = shop.mails()
  const keysIssued: Record<string, string[]> = { [referenceOf(1)]: [FIRST, SECOND], [referenceOf(2)]: [THIRD] }
  const books = {
    shop: {
      orders: shop.orders,
      variants: shop.variants,
      stockOf: shop.stockOf,
      metafieldsOf: shop.metafieldsOf,
      mails: () => mails,
    },
    ledger: { charges: [charge(1), charge(2)], refunds: [] as ReturnType<typeof charge>[], keysIssued, closes: true },
    skus: ['GAME'],
    others: ['SHIRT'],
    quantityMax: 2,
    printsKeys: true,
    opened: undefined as Parameters<typeof faultsIn>[0]['opened'],
    changed: new Set<string>(),
    fulfilledByHand: new Set<string>(),
    byHand: new Set<string>(),
    silent: new Set<string>(),
    oldStock: 1_000,
  }
  return {
    books,
    order,
    first,
    second,
    charge,
    put,
    sell,
    remove: (key: string) => shop.removeMetafield(order.id, NAMESPACE, key),
    /** Mails about fulfilments, which the customer of the order got. */
    shipped: () => mails.filter(({ kind }) => kind === 'shipping_confirmation'),
    /** Another order of the same, or of another product. */
    buy: (payment: 'paid' | 'pending', of = variant) => shop.buy({ lines: [{ variant: of }], payment }),
    note: (...lines: string[]) => (order.note = lines.join('\n')),
    /** The merchant has fulfilled the last unit before its key was there. */
    lastByHand: () => {
      books.byHand.add(second.id)
      const mail = mails.at(-1)
      if (mail) mail.text = mail.text.replace(THIRD, '')
    },
    /** A mail is as if it had left before some keys were there. */
    without: (index: number, ...keys: string[]) => {
      const mail = mails.filter(({ kind }) => kind === 'shipping_confirmation')[index]
      if (mail) mail.text = keys.reduce((text, key) => text.replace(key, ''), mail.text)
    },
  }
}
type Story = ReturnType<typeof booksOfOneOrder>

const wrong: [string, string[], (story: Story) => unknown][] = [
  ['a key in two metafields', ['stands on the order 2 times'], ({ put }) => put('keys_3', 'GAME', FIRST)],
  ['a key twice in one metafield', ['on the order 2 times'], ({ put }) => put('keys_2', 'GAME', THIRD, THIRD)],
  ['a key that is not on the order', ['has 2 keys, not 3'], ({ remove }) => remove('keys_2')],
  ['a key in the note', ['beside the metafields'], ({ note }) => note(`Licence: ${FIRST}`)],
  ['a key in a tag', ['beside the metafields'], ({ order }) => order.tags.push(`key ${FIRST}`)],
  ['a key in another metafield', ['beside the metafields'], ({ put }) => put('units', `{"${FIRST}":1}`)],
  [
    'a key as the number of a parcel',
    ['beside the metafields'],
    ({ first }) => first.tracking.push({ company: null, number: FIRST, url: null }),
  ],
  [
    'a key on the order of another customer',
    ['has a key of line'],
    ({ books, buy }) => {
      const { id } = buy('pending')
      const { metafieldsOf } = books.shop
      const [, kept] = metafieldsOf([...books.shop.orders.keys()][0] ?? '')
      books.shop.metafieldsOf = (order) => (order === id && kept ? [kept] : metafieldsOf(order))
    },
  ],
  [
    'a unit that is not fulfilled',
    ['has 2 units fulfilled, not 3', '2 mails of 1 fulfilments'],
    ({ order }) => order.fulfilments.pop(),
  ],
  [
    'a fulfilment that was made twice',
    ['has 5 units fulfilled, not 3', 'shows 3 keys of line .*, not 4', 'shows 3 keys of line .*, not 5'],
    ({ order, first, shipped, books }) => {
      order.fulfilments.splice(1, 0, { ...first, id: 'again' })
      books.shop.mails().push(...shipped().slice(-1))
    },
  ],
  [
    'a fulfilment that was made again, and took the unit of which the key had not come',
    ['shows 2 keys of line .*, not 3', 'given by no mail'],
    ({ order, first, second, books, without }) => {
      first.lines = first.lines.map((one) => ({ ...one, quantity: 3 }))
      order.fulfilments.splice(order.fulfilments.indexOf(second), 1)
      books.shop.mails().pop()
      without(0, THIRD)
    },
  ],
  [
    'a fulfilment without units',
    ['has 2 units fulfilled', 'has no units'],
    ({ second }) => {
      second.lines = []
    },
  ],
  ['a fulfilment without a mail', ['1 mails of 2 fulfilments'], ({ books }) => books.shop.mails().pop()],
  [
    'two mails of one fulfilment',
    ['3 mails of 2 fulfilments'],
    ({ books, shipped }) => books.shop.mails().push(...shipped().slice(-1)),
  ],
  ['a mail without its keys', ['shows 2 keys of line .*, not 3', 'no mail'], ({ without }) => without(1, THIRD)],
  ['a mail before its keys', ['shows 0 keys of line .*, not 2'], ({ without }) => without(0, FIRST, SECOND)],
  [
    'a key without mail and note, where its line was fulfilled by hand before',
    ['given by no mail'],
    ({ lastByHand }) => lastByHand(),
  ],
  [
    'a key without mail and note, where another key of its line was under way when the merchant was faster',
    ['given by no mail'],
    ({ books, lastByHand }) => [lastByHand(), books.silent.add(SECOND)],
  ],
  [
    'a key without mail and note that was under way, where the service fulfilled its line',
    ['shows 2 keys of line .*, not 3', 'no mail'],
    ({ books, without }) => [without(1, THIRD), books.silent.add(THIRD)],
  ],
  [
    'a key without mail, where a note speaks of the keys of another product',
    ['given by no mail'],
    ({ lastByHand, note }) => [lastByHand(), note(late('OTHER'), `Quayside: GAME came. [quayside 2]`)],
  ],
  [
    'a key of which a note speaks, although the service fulfilled the line',
    ['shows 2 keys of line .*, not 3', 'no mail'],
    ({ without, note }) => [without(1, THIRD), note(LATE)],
  ],
  [
    'a key for another customer',
    ['went to another customer', 'went to another customer'],
    ({ shipped }) => ((shipped()[0] ?? { to: '' }).to = 'two@shop.test'),
  ],
  ['a line of the note twice', ['line of its note twice'], ({ note }) => note('[quayside 1]', '[quayside 1]')],
  ['a wish to try again that stays', ['still has the tag'], ({ order }) => order.tags.push(RETRY_TAG)],
  ['a part that was charged twice', ['charged 2 times'], ({ books, charge }) => books.ledger.charges.push(charge(1))],
  ['a part that was never paid', ['never paid'], ({ books, charge }) => books.ledger.charges.push(charge(3))],
  [
    'an order that was bought before it was paid',
    [
      'bought and never paid',
      'bought and never paid',
      '3 keys, not 0',
      '3 keys were issued',
      '3 units fulfilled, not 0',
    ],
    ({ order }) => order.transactions.splice(0),
  ],
  [
    'a paid order that was overlooked',
    ['was paid and never bought', '0 keys, not 1', '0 keys were issued', '0 units fulfilled, not 1'],
    ({ buy }) => buy('paid'),
  ],
  [
    'a unit that was bought above the quantity',
    ['4 keys were issued for line .*, not 3', 'given by no mail'],
    ({ books }) => Object.values(books.ledger.keysIssued)[0]?.push('BBBB-1111'),
  ],
  ['a refund', ['was refunded'], ({ books, charge }) => books.ledger.refunds.push(charge(1))],
  ['stock that was never pushed', ["stock of GAME is still the merchant's"], ({ books }) => (books.oldStock = 50)],
  ['a product that is missing', ['0 products with the SKU PEN'], ({ books }) => books.skus.push('PEN')],
  [
    'a product without a price',
    ['GAME has no price'],
    ({ books }) => {
      for (const one of books.shop.variants.values()) one.price = 0
    },
  ],
  ['a product twice', ['2 products with the SKU GAME'], ({ sell }) => sell('GAME')],
]

test('books in which all is right have no fault: an order waits for its money, one has no licence keys', () => {
  const { books, buy, sell } = booksOfOneOrder()
  buy('pending')
  buy('paid', sell('SHIRT'))
  expect(faultsIn(books)).toEqual([])
})

test('a key of which a note speaks needs no mail, where the merchant fulfilled its line by hand before', () => {
  const { books, lastByHand, note } = booksOfOneOrder()
  lastByHand()
  note(LATE)
  expect(faultsIn(books)).toEqual([])
})

test('a key needs neither mail nor note where the merchant was faster and a request was not answered', () => {
  const { books, lastByHand } = booksOfOneOrder()
  lastByHand()
  books.silent.add(THIRD)
  expect(faultsIn(books)).toEqual([])
})

test.each(wrong)('%s is a fault', (_, sentences, happens) => {
  const story = booksOfOneOrder()
  happens(story)
  expect(faultsIn(story.books)).toEqual(sentences.map((sentence) => expect.stringMatching(sentence)))
})

/** The same order, whose customer gets the link alone, and has opened it. */
function linkedBooks() {
  const shop = createShopifyShop()
  const variant = shop.addProduct({ sku: 'GAME', title: 'Game', price: '10.00', stock: 9 }).variants[0]?.id ?? ''
  const order = shop.buy({ lines: [{ variant, quantity: 2 }], email: EMAIL })
  const [line] = order.lines
  const issued = [FIRST, SECOND]
  const fulfilment = shop.fulfilByHand(order.id)
  const mails = shop.mails()
  const mail = { order: order.id, kind: 'shipping_confirmation' as const, to: EMAIL, at: 0, text: '' }
  mails.push({ ...mail, html: `<a href="${LINK}">${order.name}</a>` })
  fulfilment.tracking.push({ company: 'Games', number: order.name, url: LINK })
  const reference = `q1.shop.${order.id}.${line?.id}.1.1`
  const { books } = booksOfOneOrder()
  const { charges } = books.ledger
  const opened = { pages: 1, lines: new Map([[line?.id ?? '', [...issued]]]), wrong: [] }
  return {
    shop,
    order,
    fulfilment,
    mails,
    opened,
    books: {
      ...books,
      shop: { ...shop, mails: () => mails },
      ledger: {
        ...books.ledger,
        charges: charges.slice(0, 1).map((one) => ({ ...one, externalOrderId: reference })),
        keysIssued: { [reference]: issued },
      },
      printsKeys: false,
      opened: new Map([[order.id, opened]]),
    },
  }
}
type Linked = ReturnType<typeof linkedBooks>
const LINK = 'https://keys.test/k/1'

test('an order whose keys were opened has no fault', () => {
  expect(faultsIn(linkedBooks().books)).toEqual([])
})

const unlinked: [string, string, (story: Linked) => unknown][] = [
  [
    'a key that its customer does not see',
    'does not see 1 of its keys',
    ({ opened }) => [...opened.lines.values()][0]?.pop(),
  ],
  ['a page without a link to it', 'does not see 2 of its keys', ({ books }) => books.opened.clear()],
  ['a mail without the link', 'has no link', ({ mails }) => Object.assign(mails.at(-1) ?? {}, { html: '' })],
  ['a fulfilment without the link', 'has no link', ({ fulfilment }) => fulfilment.tracking.pop()],
  ['a fulfilment without a mail', 'has 0 mails', ({ mails }) => mails.pop()],
  ['a key in a metafield', 'is in the shop', ({ shop, order }) => shop.putMetafield(order.id, 'any', 'keys_1', FIRST)],
  ['a key in the note', 'is in the shop', ({ order }) => (order.note = FIRST)],
]
test.each(unlinked)('%s is a fault of an order whose customer gets the link alone', (_, sentence, happens) => {
  const story = linkedBooks()
  happens(story)
  expect(faultsIn(story.books)).toContainEqual(expect.stringContaining(sentence))
})
