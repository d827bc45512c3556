import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Dialect } from '../../src/dialect/dialect.ts'
import { contrary, leavesOf, standard } from '../support/dialect-pair.ts'

const root = resolve(import.meta.dirname, '../../src')

/** Settings whose values are ours: the choices of the shape, and names for people. */
const choices =
  /^(name|about|rateResetUnit|instants|stock|orderRequired|money\/.*|orderStatuses\/.*|signature\/(encoding|separator|timestampUnit|timestamp\/in))$/

/** Every header, path, parameter, code, event and status word of a supplier. */
const wordsOf = (dialect: Dialect): string[] =>
  [
    ...[...leavesOf(dialect)].filter(([path]) => !choices.test(path)).flatMap(([, value]) => value),
    ...Object.keys(dialect.orderStatuses),
  ].filter((value): value is string => typeof value === 'string' && value !== '')

const words = [...new Set([...wordsOf(standard), ...wordsOf(contrary)])]

/** Code without its comments, which may quote the API. */
const codeOf = (file: string): string =>
  readFileSync(join(root, file), 'utf8')
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/(^|\s)\/\/.*$/gm, '$1')

/** Shops have wire formats of their own, in the same English words; pages have HTML, and our API, which they alone read. */
const ofAnotherFormat = /^(stores\/(woocommerce|shopify)\/|console\/)/

const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.[jt]s$/.test(file) && file !== 'dialect/dialect.ts' && !ofAnotherFormat.test(file))
  .map((file) => ({ file, folder: file.includes('/') ? (file.split('/')[0] ?? '') : 'top', code: codeOf(file) }))

/**
 * A word with a dash or a low line is looked for anywhere; a plain one, which may be an identifier of ours, and a dotted
 * one, which may be an expression, only as a text of its own.
 */
function holds(code: string, word: string): boolean {
  const text = word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const quoted = `(['"\`])${text}\\1`
  return new RegExp(/[_-]/.test(word) ? `(?<![\\w-])${text}(?![\\w-])` : quoted).test(code)
}

/**
 * Words of the default dialect that are ours as well, and in which folders: both describe the same things in the plainest
 * words there are. None of these is read from or written to the supplier.
 */
const groups: { why: string; words: Record<string, string> }[] = [
  {
    why: 'states, holds and events of the glossary: the API names the events, and we kept its names',
    words: {
      balance: 'alerts catalogue cli domain fitting http inbox ordering reconciliation storage supplier top',
      completed: 'cli domain fitting ordering reconciliation rehearsal sandbox storage supplier',
      failed:
        'alerts catalogue cli domain fitting http listings ordering reconciliation rehearsal sandbox settings storage stores',
      pending: 'cli domain listings storage',
      refunded: 'domain http sandbox',
      'balance.low': 'domain inbox sandbox',
      'order.completed': 'domain ordering sandbox storage',
      'order.failed': 'domain ordering sandbox',
      'product.out_of_stock': 'domain sandbox',
      'product.price_changed': 'domain sandbox',
      'product.restocked': 'domain sandbox',
    },
  },
  {
    why: "kinds of error, codes of Failure and reasons of a hold, to which the supplier's codes are mapped",
    words: {
      forbidden: 'access cli http sandbox supplier top',
      gone: 'catalogue domain listings sandbox supplier',
      insufficient_balance: 'sandbox supplier',
      limit_exceeded: 'sandbox supplier',
      not_found:
        'access backup catalogue cli fitting http inbox listings ordering sandbox settings storage supplier top',
      out_of_stock: 'domain http ordering sandbox stores supplier',
      rate_limited: 'catalogue domain ordering sandbox supplier top',
      unauthorized: 'catalogue cli domain fitting ordering supplier',
      unavailable:
        'backup catalogue cli domain fitting http inbox ordering processes reconciliation rehearsal sandbox settings storage stores supplier top',
    },
  },
  {
    why: "columns of our tables and of the sandbox's, and fields of our own types, API, log and command line",
    words: {
      available: 'domain listings storage',
      base_price: 'domain stores',
      cashback: 'domain',
      category: 'domain listings storage supplier',
      created_at: 'sandbox storage',
      currency: 'domain http listings observe ordering storage stores supplier',
      event: 'cli fitting inbox sandbox storage',
      events: 'http sandbox storage',
      external_order_id: 'sandbox storage',
      id: 'cli config demo http ordering sandbox storage supplier top',
      in_stock: 'storage',
      keys: 'access cli config domain fitting http ordering storage stores',
      limit: 'cli',
      local_stock: 'sandbox storage',
      name: 'cli domain fitting http keys listings storage',
      page: 'cli http keys storage',
      productId: 'domain http listings ordering sandbox storage supplier',
      product_id: 'sandbox storage',
      provider_stock: 'sandbox storage',
      quantity: 'cli demo domain fitting http ordering storage supplier',
      secret: 'cli storage',
      sku: 'cli demo domain http listings ordering storage',
      status: 'alerts cli demo domain http observe sandbox storage top',
      total: 'storage',
      updated_at: 'sandbox',
      url: 'cli domain inbox keys storage',
    },
  },
  {
    why: 'settings of the dialect by their own names, which name a fault, and common names of an amount',
    words: {
      amount: 'fitting http',
      'error.code': 'supplier',
      from: 'fitting http',
      to: 'fitting http',
    },
  },
  {
    why: 'our own HTTP answers, which have the envelope of the API on purpose, and what HTTP itself defines',
    words: {
      data: 'http',
      request_id: 'cli http storage',
      'retry-after': 'http',
      'x-request-id': 'http',
    },
  },
]
const alsoOurs = Object.fromEntries(
  groups.flatMap((group) => Object.entries(group.words).map(([word, folders]) => [word, folders.split(' ')])),
)

describe('the words of a supplier', () => {
  test('are in its dialect alone, and in no code', () => {
    const found = words.flatMap((word) => {
      const elsewhere = files.filter(({ folder, code }) => holds(code, word) && !alsoOurs[word]?.includes(folder))
      return elsewhere.map(({ file }) => `${word} in ${file}`)
    })
    expect(words.length).toBeGreaterThan(140)
    expect(found).toEqual([])
  })

  test('that are ours too are words that our code really has there', () => {
    const idle = Object.entries(alsoOurs).flatMap(([word, folders]) => {
      if (!words.includes(word)) return [`${word} is no word of a dialect`]
      return folders
        .filter((one) => !files.some(({ folder, code }) => folder === one && holds(code, word)))
        .map((folder) => `${word} is not in ${folder}`)
    })
    expect(idle).toEqual([])
  })

  test('of the contrary dialect are never ours', () => {
    expect(wordsOf(contrary).filter((word) => word in alsoOurs)).toEqual([])
  })
})
