/** What people type by mistake where `init` and `stores add` ask: each gets a sentence, and the question comes again. */
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startWooCommerceShop, wooKey } from '../shops/woocommerce-shop.ts'
import { startCheckedSandbox } from '../support/checked-sandbox.ts'
import { run, temporaryFolder } from '../support/cli-run.ts'
import { standard } from '../support/dialect-pair.ts'
import { openShopless } from '../support/shopless.ts'

type Wrong = [typed: string, sentence: string]

const SCHEME = 'an address that starts with http:// or https://'
const PASSWORD = 'an address without a user and a password'
const PERCENT = 'a percentage such as "12.5", without a sign'

/** What is no address, wherever one is asked for. */
const noAddress: Wrong[] = [
  ['shop.example', `${SCHEME}, such as https://shop.example`],
  ['shop.example:8443/api/v1', `${SCHEME}, such as https://shop.example:8443/api/v1`],
  ['htps://shop.example/v1', SCHEME],
  ['https://', SCHEME],
  ['"https://shop.example/v1"', SCHEME],
  ['/etc/passwd', SCHEME],
  ['🛒', SCHEME],
  ['https://anna:hunter22@shop.example/v1', PASSWORD],
  ['https://shop.example/a b/v1', 'an address without spaces'],
]
const noPercentage: Wrong[] = ['12,5', '20%', '-5', '+20', 'ten', '1e3', '20 EUR', '٢٠', '12.34567'].map((typed) => [
  typed,
  PERCENT,
])
const noBaseUrl: Wrong[] = [
  ['https://supplier.example', 'an address that ends in /v1'],
  ['https://supplier.example/api/v2', 'an address that ends in /v1'],
  ['https://supplier.example/v1?key=1', 'an address that ends in /v1'],
  ['https://v1', 'an address that ends in /v1'],
]
const noDialect: Wrong[] = [
  ['reseller-v1.0', 'there is no '],
  ['nothing.json', 'there is no '],
  ['https://supplier.example/openapi.json', 'the name of a dialect'],
  ['🛒', 'there is no '],
]

/** Each question, in order: what it refuses, and what it takes then. */
type Question = [wrong: Wrong[], right: string]

/** @returns what the questions answered to each wrong word */
async function asked(argv: string[], questions: Question[], env: Record<string, string> = {}) {
  const typed = questions.flatMap(([wrong, right]) => [...wrong.map(([word]) => word), right])
  const { stdout, stderr, exitCode } = await run(argv, { terminal: true, typed, columns: 200, env })
  const said = stdout.match(/(?<=^ {2}Not that: ).*/gm) ?? []
  return { stdout, stderr, exitCode, said: said.map((text) => text.trim()) }
}

/** Each wrong word beside the sentence that it got. */
function expectSentences(said: string[], questions: Question[]) {
  const wrong = questions.flatMap(([words]) => words)
  expect(wrong.map(([typed], index) => [typed, said[index]])).toEqual(
    wrong.map(([typed, sentence]) => [typed, expect.stringContaining(sentence)]),
  )
  expect(said).toHaveLength(wrong.length)
}

async function supplier() {
  const apiKey = 'key-of-the-reseller'
  const sandbox = await startCheckedSandbox({ dialect: standard, apiKey, offers: 2, automatic: false })
  onTestFinished(() => sandbox.close())
  return { baseUrl: sandbox.baseUrl, apiKey }
}

test('init crashed at an address without https://, and showed a password; each wrong answer has its sentence', async () => {
  const { baseUrl, apiKey } = await supplier()
  const file = path.join(temporaryFolder(), 'config', 'quayside.json')
  const keyFile = path.join(temporaryFolder(), 'key.txt')
  writeFileSync(keyFile, apiKey)
  const first: Question[] = [
    [noDialect, ''],
    [noAddress, baseUrl],
    [
      [
        ['', 'it is needed'],
        ['two words', '1 to 500 visible characters without spaces'],
        ['schlüssel', '1 to 500 visible characters without spaces'],
        [keyFile, 'this is a file: type what it holds, or name it by --api-key-file'],
      ],
      apiKey,
    ],
    [
      [
        ['', 'yes or no'],
        ['ok', 'yes or no'],
      ],
      'yes',
    ],
    [noAddress, 'https://shop.example/callbacks'],
    [[['x'.repeat(101), 'must be at most 100 characters long']], 'Shop 🛒'],
    [[...noAddress.slice(0, 8), ['https://quayside.example/?a=1', 'an address without ? and #']], ''],
    [noPercentage, '20'],
  ]
  const { said, stdout, stderr, exitCode } = await asked(['init', '--config', file], first)
  expectSentences(said, first)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(stdout.match(/hunter22/g)?.length, 'only the echo of what is typed').toBe(3)
})

test.each([...noAddress, ...noBaseUrl])(
  'init --base-url %s is refused by a sentence that names the flag',
  async (typed, sentence) => {
    const file = path.join(temporaryFolder(), 'quayside.json')
    const flags = ['--base-url', typed, '--public-url', typed, '--callback-url', typed, '--markup', '12,5', '--offline']
    const { stderr, exitCode } = await run(['init', '--yes', '--config', file, ...flags], {
      columns: 200,
      env: { QUAYSIDE_API_KEY: 'key' },
    })
    expect(exitCode).toBe(2)
    const text = stderr.replaceAll(/\s+/g, ' ')
    expect(text).toContain(`--base-url: ${sentence}`)
    expect(text).toContain(`--markup: ${PERCENT}`)
    expect(text).not.toMatch(/should not happen|hunter22/)
  },
)

test('stores add takes no key for a secret, no amount for a percentage, and no other page for the shop', async () => {
  const shop = await startWooCommerceShop({ scheme: 'http', currency: 'EUR', keys: [wooKey] })
  onTestFinished(() => shop.close())
  const { file } = openShopless('woocommerce', '')
  const questions: Question[] = [
    [[...noAddress.slice(0, 8), ['https://shop.example/wp-admin/', 'the address that your customers open']], shop.url],
    [
      [
        ['cs_1234', 'this is the other one: it begins with ck_'],
        ['', 'it begins with ck_, without spaces'],
        ['ck_ 1', 'it begins with ck_, without spaces'],
        [`${wooKey.key}:${wooKey.secret}`, 'it begins with ck_, without spaces'],
      ],
      wooKey.key,
    ],
    [[['ck_1234', 'this is the other one: it begins with cs_']], wooKey.secret],
    [[['both', 'nothing, draft, publish']], 'nothing'],
    [[['x'.repeat(101), 'must be at most 100 characters long']], 'Shop'],
    [noPercentage, '15'],
  ]
  const { said, stderr, exitCode } = await asked(['stores', 'add', 'woocommerce', '--config', file], questions)
  expectSentences(said, questions)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
})

test('stores add shopify asks for the id and the secret in their order, and for no domain of customers', async () => {
  const { file } = openShopless('shopify', '')
  const address = 'the address that ends in .myshopify.com: other domains have no API'
  const sound = '4 to 200 letters and digits without spaces'
  const questions: Question[] = [
    [
      [
        ['www.shop.example', address],
        ['My Shop', address],
        ['', address],
      ],
      'http://127.0.0.1:9',
    ],
    [
      [
        ['abc', sound],
        ['two words', sound],
        ['shpss_12345', 'this is the secret: it is asked for next'],
      ],
      'client-id',
    ],
    [
      [
        ['shpat_12345', 'this is the admin token: it was asked for before'],
        ['x', sound],
      ],
      'shpss_12345',
    ],
    [[['later', 'key, address, again, stop']], 'stop'],
  ]
  const { said, exitCode } = await asked(['stores', 'add', 'shopify', '--config', file], questions)
  expectSentences(said, questions)
  expect(exitCode).toBe(1)
})

test.each([
  ['woocommerce', 'cs_1234:ck_1234', 'https://shop.example'],
  ['shopify', 'shpss_1234:client-id', 'my-shop'],
])('stores add %s sent a swapped key and secret to the shop', async (kind, text, url) => {
  const { add, files } = openShopless(kind, text)
  const before = files()
  const { stderr, exitCode } = await add(['--url', url], { columns: 200, env: { QUAYSIDE_SHOP_KEY: text } })
  expect(exitCode).toBe(2)
  expect(stderr).toMatch(/QUAYSIDE_SHOP_KEY: the two are swapped: it must be/)
  expect(stderr).not.toContain('1234')
  expect(files()).toEqual(before)
})
