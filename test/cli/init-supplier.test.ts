/** `init` at a supplier that cannot be used: it says why, asks again on a terminal, and writes nothing. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { programName } from '../../src/cli/words.ts'
import { loadConfig, shippedDialects } from '../../src/config/config.ts'
import { startCheckedSandbox } from '../support/checked-sandbox.ts'
import { run, temporaryFolder, widest } from '../support/cli-run.ts'
import { dialect, refusedOrigin, startHttp } from '../support/supplier-server.ts'

const API_KEY = 'key-of-the-reseller-0123456789'
const CALLBACK_URL = 'https://shop.example/quayside'
const PUBLIC_URL = 'https://quayside.example'

function place(key = API_KEY) {
  const folder = temporaryFolder()
  const file = path.join(folder, 'config', 'quayside.json')
  const keyFile = path.join(folder, 'given-key')
  writeFileSync(keyFile, key)
  const flags = ['--callback-url', CALLBACK_URL, '--api-key-file', keyFile, '--config', file]
  return {
    file,
    keyFile,
    init: (...more: string[]) => run(['init', '--yes', ...flags, ...more]),
    ask: (typed: string[], ...more: string[]) => run(['init', '--config', file, ...more], { terminal: true, typed }),
    left: () => readdirSync(folder, { recursive: true, encoding: 'utf8' }),
  }
}

async function supplier(changes: Partial<Parameters<typeof startCheckedSandbox>[0]> = {}) {
  const sandbox = await startCheckedSandbox({ dialect, apiKey: API_KEY, requestsPerMinute: 1_000, ...changes })
  onTestFinished(() => sandbox.close())
  return { sandbox, webhooks: () => sandbox.world.webhooks.list().map(({ url }) => url) }
}

/** What is no Reseller API: a page of HTML, whatever is asked for. */
async function website() {
  const server = await startHttp((_heard, response) => response.writeHead(404).end('<html>Not here</html>'))
  onTestFinished(() => server.close())
  return `${server.origin}/v1`
}

/** A text on one line, as a person reads it. */
const flat = (text: string): string => text.replaceAll(/\s+/g, ' ')

it('writes nothing where the supplier does not answer, says so with the address, and runs again', async () => {
  const { init, left, file } = place()
  const baseUrl = `${await refusedOrigin()}/v1`
  const failed = await init('--base-url', baseUrl, '--public-url', PUBLIC_URL)
  expect(failed).toMatchObject({ exitCode: 1, stdout: '' })
  expect(flat(failed.stderr)).toBe(
    `quayside: nothing was written: ${baseUrl} does not answer: it cannot be reached: ECONNREFUSED (nothing listens there). Check the address, ` +
      'and that this machine may connect to it. --offline writes the set-up without asking the supplier. ',
  )
  expect(widest(failed.stderr)).toBeLessThanOrEqual(80)
  expect(left()).toEqual(['given-key'])
  const { sandbox } = await supplier()
  expect(await init('--base-url', sandbox.baseUrl)).toMatchObject({ exitCode: 0, stderr: '' })
  expect(existsSync(file)).toBe(true)
})

it('names a refused key, an address without the API, and a dialect that cannot read, each by its own sentence', async () => {
  const { sandbox, webhooks } = await supplier()
  const said = async (baseUrl: string, key?: string, ...more: string[]) => {
    const { init, left } = place(key)
    const { exitCode, stdout, stderr } = await init('--base-url', baseUrl, '--public-url', PUBLIC_URL, ...more)
    expect({ exitCode, stdout, left: left() }).toEqual({ exitCode: 1, stdout: '', left: ['given-key'] })
    expect(widest(stderr)).toBeLessThanOrEqual(80)
    return flat(stderr)
  }
  expect(await said(sandbox.baseUrl, 'another-key')).toMatch(
    /the supplier refused the API key with 401 .*Check the key\. It was sent in the header x-api-key/,
  )
  const page = await website()
  expect(await said(page)).toContain(
    `${page} is not the Reseller API: it answered 404 without an error envelope. Check the address`,
  )
  const elsewhere = await startHttp((_, response) =>
    response.writeHead(301, { location: 'https://www.supplier.example/api/v1/products?key=secret' }).end(),
  )
  onTestFinished(() => elsewhere.close())
  expect(await said(`${elsewhere.origin}/v1`)).toContain(
    'it answered 301 and leads to https://www.supplier.example; redirects are refused. Check the address',
  )
  const misnamed = path.join(temporaryFolder(), 'misnamed.json')
  writeFileSync(
    misnamed,
    JSON.stringify({ ...dialect, name: 'misnamed', paging: { ...dialect.paging, items: 'rows' } }),
  )
  expect(await said(sandbox.baseUrl, API_KEY, '--dialect', misnamed)).toMatch(
    /the dialect misnamed cannot read the supplier's answer: it has nothing at rows \(paging\.items\)\. .*docs\/fitting-a-supplier\.md/,
  )
  expect(webhooks(), 'no webhook is registered').toEqual([])
})

it('writes nothing and leaves no webhook where none of the products has a cost that can be read', async () => {
  const { sandbox, webhooks } = await supplier()
  const { init, left, keyFile } = place()
  const file = path.join(path.dirname(keyFile), 'minor.json')
  writeFileSync(
    file,
    JSON.stringify({ ...dialect, name: 'minor', money: { ...dialect.money, representation: 'minor' } }),
  )
  const failed = await init('--base-url', sandbox.baseUrl, '--public-url', PUBLIC_URL, '--dialect', file)
  expect(failed).toMatchObject({ exitCode: 1, stdout: '' })
  expect(flat(failed.stderr)).toContain('no product has a cost that can be read')
  expect([left().sort(), webhooks()]).toEqual([['given-key', 'minor.json'], []])
})

it('writes nothing where the webhook cannot be made, and says how to go on without one', async () => {
  const { sandbox } = await supplier()
  sandbox.faults.add({ fault: 'error-before', match: { method: 'POST', path: '/webhooks' } })
  const { init, left } = place()
  const failed = await init('--base-url', sandbox.baseUrl, '--public-url', PUBLIC_URL)
  expect(failed).toMatchObject({ exitCode: 1, stdout: '' })
  expect(flat(failed.stderr)).toMatch(/nothing was set up: no webhook could be made: .* Leave --public-url out/)
  expect(left()).toEqual(['given-key'])
  expect(await init('--base-url', sandbox.baseUrl)).toMatchObject({ exitCode: 0, stderr: '' })
})

it('asks for a refused key again, at once and before the store, and goes on with the right one', async () => {
  const { sandbox } = await supplier()
  const { ask, file } = place()
  const typed = ['', sandbox.baseUrl, 'another-key', '', API_KEY, 'yes', CALLBACK_URL, '', '', '']
  const { exitCode, stdout, stderr } = await ask(typed)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(stdout.indexOf('refused the API key')).toBeLessThan(stdout.indexOf('Store name'))
  expect(stdout).toContain('Correct (key, address, dialect, again or stop) [key]: ')
  expect(stdout).toMatch(/NAME +COST +STOCK/)
  expect(stdout).not.toContain(API_KEY)
  expect(widest(stdout.replaceAll(path.dirname(path.dirname(file)), ''))).toBeLessThanOrEqual(80)
  expect(loadConfig(file, {}).apiKey.reveal()).toBe(API_KEY)
})

it('asks for an address that does not answer again, and one who stops has nothing written', async () => {
  const { sandbox } = await supplier()
  const wrong = `${await refusedOrigin()}/v1`
  const corrected = place()
  const typed = ['', wrong, API_KEY, '', sandbox.baseUrl, 'yes', CALLBACK_URL, '', '', '']
  expect(await corrected.ask(typed)).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('[address]: ') })
  expect(JSON.parse(readFileSync(corrected.file, 'utf8')).supplier.baseUrl).toBe(sandbox.baseUrl)
  const page = await website()
  const stopped = place()
  expect(await stopped.ask(['', page, API_KEY, 'stop'])).toMatchObject({ exitCode: 1 })
  expect(stopped.left()).toEqual(['given-key'])
})

it('takes the address of a supplier with paths of its own, which does not end in /v1, once its dialect is named', async () => {
  const { ask } = place()
  const { stdout } = await ask(['kinguin', `${await refusedOrigin()}/esa/api`, API_KEY, 'stop'])
  expect(stdout).not.toContain('Not that')
  expect(stdout).toContain('Correct (')
})

it('never asks for a key in the place of the one that the environment has, which goes first', async () => {
  const { sandbox } = await supplier()
  const { file, left } = place()
  const { exitCode, stdout } = await run(['init', '--config', file], {
    terminal: true,
    typed: ['', sandbox.baseUrl, '', ''],
    env: { QUAYSIDE_API_KEY: 'another-key' },
  })
  expect(exitCode).toBe(1)
  expect(flat(stdout)).toContain('It comes from QUAYSIDE_API_KEY')
  expect(stdout).toContain('Correct (address, dialect, again or stop) [stop]: ')
  expect(left()).toEqual(['given-key'])
})

it('writes the set-up without asking the supplier under --offline, and says what is left to do', async () => {
  const { init, file } = place()
  const baseUrl = `${await refusedOrigin()}/v1`
  const flags = ['--base-url', baseUrl, '--public-url', PUBLIC_URL]
  const { exitCode, stdout, stderr } = await init(...flags, '--offline')
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(flat(stdout)).toMatch(/The supplier was not asked: .* webhooks create/)
  expect(loadConfig(file, {}).supplier.baseUrl).toBe(baseUrl)
})

it('leaves a set-up that is there, and says so within 80 columns', async () => {
  const folder = temporaryFolder()
  const file = path.join(folder, 'quayside.json')
  writeFileSync(file, '{}')
  const { exitCode, stderr } = await run(['init', '--yes', '--config', file])
  expect(exitCode).toBe(5)
  expect(widest(stderr.replace(folder, 'config'))).toBeLessThanOrEqual(80)
})

it('prints commands that can be pasted: inside a clone, after an installation, and in the image', () => {
  expect(programName('/home/anna/quayside', '/home/anna/quayside')).toBe('npx quayside')
  expect(programName('/home/anna/quayside', '/home/anna/quayside/config')).toBe('npx quayside')
  expect(programName('/usr/lib/node_modules/quayside', '/home/anna')).toBe('quayside')
  expect(programName('/app', '/data')).toBe('/app/src/quayside.js')
  expect(programName('/home/anna b/quayside', '/home')).toBe("'/home/anna b/quayside/src/quayside.js'")
})

it('offers the dialects that come with Quayside by their names, with what each is for, and none for tests', async () => {
  const { sandbox } = await supplier()
  const { ask } = place()
  const { stdout } = await ask(['', sandbox.baseUrl, API_KEY, 'no'])
  const text = flat(stdout)
  expect(text).toContain('These dialects come with Quayside: ')
  for (const { name, about } of shippedDialects()) expect(text).toContain(` ${name}: ${about} `)
  expect(shippedDialects().map(({ name }) => name)).toContain('reseller-v1.1')
  expect(text).not.toMatch(/contrary|For tests only/)
  expect(widest(stdout)).toBeLessThanOrEqual(80)
})
