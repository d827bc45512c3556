/** A kind of store is a folder and its name in the list of kinds: the program, with one more of them, offers it everywhere. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import type { ShopAccess, StoreKind } from '../../src/stores/store-kind.ts'
import { temporaryFolder } from '../support/cli-run.ts'
import { cookieIn, visit } from '../support/console-client.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/service-process.ts'
import { startHttp } from '../support/supplier-server.ts'
import { corner } from './corner/kind.ts'

const REGISTER = path.join(import.meta.dirname, 'corner/register.ts')
const ENTRY = path.join(import.meta.dirname, '../../src/quayside.js')
const CREDENTIALS = '17:4711'

const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('QUAYSIDE_')))

/** @param env with QUAYSIDE_TERMINAL, `typed` answers a question a line */
function start(argv: string[], env: Record<string, string> = {}, typed: string[] = []) {
  const child: ChildProcess = spawn(process.execPath, ['--import', REGISTER, ENTRY, ...argv], {
    env: { ...environment, ...env },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const said = { out: '', err: '' }
  child.stdout?.on('data', (chunk) => {
    const text = stripVTControlCharacters(String(chunk))
    said.out += text
    // A question may be followed by codes that move the cursor.
    const line = text !== '' && said.out.endsWith(': ') ? typed.shift() : undefined
    if (line !== undefined) child.stdin?.write(`${line}\r`)
  })
  child.stderr?.on('data', (chunk) => {
    said.err += chunk
  })
  return { child, said }
}

/** Runs a command to its end. @returns what it said, without line breaks */
async function quayside(argv: string[], env: Record<string, string> = {}, typed: string[] = []) {
  const { child, said } = start(argv, env, typed)
  const [code] = await once(child, 'close')
  return { code, out: said.out.replaceAll(/\s+/g, ' '), err: said.err.replaceAll(/\s+/g, ' '), text: said.out }
}

/** A till that opens for one PIN. */
async function openTill() {
  const till = await startHttp(({ headers }, response) => {
    response.writeHead(headers.till === CREDENTIALS ? 200 : 403).end()
  })
  onTestFinished(() => till.close())
  return till.origin
}

/** Sets an installation up by the questions of `init`. */
async function installation() {
  const folder = temporaryFolder()
  const config = path.join(folder, 'config/quayside.json')
  const keyFile = path.join(folder, 'key')
  writeFileSync(keyFile, 'key-of-the-reseller')
  const flags = ['--offline', '--base-url', 'http://127.0.0.1:9/v1', '--api-key-file', keyFile]
  const argv = ['init', '--config', config, '--port', String(await freePort()), ...flags]
  const init = await quayside(argv, { QUAYSIDE_TERMINAL: 'yes' }, ['', '', '', ''])
  const settings = () => JSON.parse(readFileSync(config, 'utf8'))
  const change = (more: object) => writeFileSync(config, JSON.stringify({ ...settings(), ...more }))
  return { config, init, settings, change }
}

test('a fourth kind of store is offered by init and stores add, and found by doctor, API and console', async () => {
  const url = await openTill()
  const { config, init, settings, change } = await installation()
  expect({ code: init.code, err: init.err }).toEqual({ code: 0, err: '' })
  expect(init.out).toContain('a shop of WooCommerce, Shopify or Corner Shop is added afterwards')
  expect(init.out).toMatch(/stores add corner --config \S+ connects your shop, where it is one of Corner Shop/)

  const help = await quayside(['stores', 'add', '--help'])
  expect(help.out).toContain('add a store to the settings: backend, woocommerce, shopify or corner')
  expect(help.out).toContain(corner.shop.help.about)
  expect((await quayside(['stores', 'add', 'corner', '--help'])).out).toContain('--shelf <place> where the products')
  const add = ['stores', 'add', 'corner', '--config', config]
  const refused = await quayside([...add, '--shelf', 'left', '--json'], { QUAYSIDE_SHOP_KEY: '17' })
  expect(JSON.parse(refused.err).error.fields).toEqual([
    { field: '--shelf', message: 'a letter and a digit, such as "B2"' },
    { field: '--url', message: 'the address of the shop' },
    { field: 'QUAYSIDE_SHOP_KEY', message: 'must be the number of the till and its PIN, joined by a colon' },
  ])
  const typed = ['somewhere', url, '17', '1234', '', '17', '471', '4711', '', '', '']
  const added = await quayside([...add, '--shelf', 'B2'], { QUAYSIDE_TERMINAL: 'yes' }, typed)
  expect({ code: added.code, err: added.err }).toEqual({ code: 0, err: '' })
  expect(added.out).toContain('The address of the till, as its sticker says. Address of the shop: ')
  expect(added.out).toContain('Not that: the address on the sticker')
  expect(added.out).toContain('FAIL connection: the till stays shut -> Compare the PIN.')
  expect(added.out).toContain('Correct (key, address, again or stop) [key]: ')
  expect(added.out).toContain('Not that: four digits')
  expect(added.out).toContain('Put a sticker on the shelf.')
  expect(settings().stores).toMatchObject([{ kind: 'corner', url, shelf: 'B2', currency: 'EUR' }])

  const [{ id }] = settings().stores
  const consolePort = await freePort()
  change({ console: { listen: { port: consolePort } } })
  const doctor = await quayside(['doctor', '--config', config, '--json'])
  const { findings } = JSON.parse(doctor.text) as { findings: { check: string; level: string; message: string }[] }
  expect(findings.find(({ check }) => check === 'shop')).toMatchObject({
    level: 'ok',
    message: expect.stringContaining(`${url} of ${id} takes connections`),
  })

  const service = start(['serve', '--config', config])
  await until('the service', () => service.said.err.includes('listens at'))
  const of = ['--config', config, '--json']
  const { items } = JSON.parse((await quayside(['stores', 'list', ...of])).text)
  expect(items).toMatchObject([
    { id, kind: 'corner', kindLabel: 'Corner Shop', address: `${url}/`, shop: {}, callbackSecret: null },
  ])
  const tested = JSON.parse((await quayside(['stores', 'test', id, ...of])).text)
  expect(tested.findings).toContainEqual({ check: 'connection', state: 'ok', detail: 'the till is open', fix: null })
  const { port } = settings().listen
  const openApi = (await (await fetch(`http://127.0.0.1:${port}/api/v1/openapi.json`)).json()) as object
  expect(JSON.stringify(openApi)).toContain('"enum":["backend","woocommerce","shopify","corner"]')

  const { link } = JSON.parse((await quayside(['console', '--print', ...of])).text)
  const pages = `http://127.0.0.1:${consolePort}`
  const [, secret = ''] = /([\w-]+)$/.exec(link) ?? []
  const cookie = cookieIn(await visit(pages, '/signin', { form: { link: secret } }))
  const page = async (at: string) => (await visit(pages, at, { cookie })).text
  expect(await page('/stores')).toContain('<small>Corner Shop</small>')
  expect(await page('/overview')).toContain('<small>Corner Shop</small>')
  expect(await page(`/stores/${id}`)).toContain('Examples, callback secret: Corner Shop gets no callbacks.')
  const shown = await page('/settings')
  expect(shown).toContain(`stores.${id}.shelf`)
  expect(shown).toContain(`QUAYSIDE_STORE_${id.toUpperCase().replaceAll('-', '_')}`)
})

test('settings and credentials of a fourth kind are checked, and their faults named by their key', async () => {
  const { config, change } = await installation()
  const store = { id: 'till-12345678', kind: 'corner', name: 'Till', url: 'http://127.0.0.1:9' }
  const faults = async (more: object, env: Record<string, string> = {}) => {
    change({ stores: [{ ...store, ...more }] })
    const { text } = await quayside(['doctor', '--config', config, '--json'], env)
    const { findings } = JSON.parse(text) as { findings: { level: string; message: string }[] }
    const about = findings.filter(({ level, message }) => level === 'fail' && /^(stores|QUAYSIDE)/.test(message))
    return about.map(({ message }) => message)
  }
  const variable = 'QUAYSIDE_STORE_TILL_12345678'
  expect(await faults({ shelf: 'left', colour: 'blue' }, { [variable]: CREDENTIALS })).toEqual([
    'stores.0.shelf: a letter and a digit, such as "B2"',
    expect.stringMatching(/^stores\.0\.colour: unknown; known are kind, .*, shelf$/),
  ])
  expect(await faults({ kind: 'corners' }, { [variable]: CREDENTIALS })).toEqual([
    'stores.0.kind: must be one of backend, woocommerce, shopify, corner',
  ])
  expect(await faults({})).toEqual([expect.stringContaining(`${variable}: not set`)])
  expect(await faults({}, { [variable]: '17:0' })).toEqual([
    `${variable}: must be the number of the till and its PIN, joined by a colon`,
  ])
})

test('a kind that lacks a part is refused by the compiler', () => {
  const { label, addressOf, settings, open, shop, ...rest } = corner
  // @ts-expect-error it has no label
  const unlabelled: StoreKind<typeof settings> = { ...rest, addressOf, settings, open, shop }
  // @ts-expect-error it has no settings
  const unset: StoreKind<typeof settings> = { ...rest, label, addressOf, open, shop }
  // @ts-expect-error it says not where a store is
  const nowhere: StoreKind<typeof settings> = { ...rest, label, settings, open, shop }
  // @ts-expect-error it opens no store
  const shut: StoreKind<typeof settings> = { ...rest, label, settings, addressOf, shop }
  // @ts-expect-error it says not whether it is a shop
  const vague: StoreKind<typeof settings> = { ...rest, label, settings, addressOf, open }
  const { credentials, readCredentials, ...access } = shop
  // @ts-expect-error it says not what its credentials are
  const unnamed: ShopAccess = { ...access, readCredentials }
  // @ts-expect-error it does not read its credentials
  const unread: ShopAccess = { ...access, credentials }
  expect([unlabelled, unset, nowhere, shut, vague, unnamed, unread]).toHaveLength(7)
})
