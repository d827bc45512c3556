/** What a new user does first, in a folder as `git clone` leaves it, with the program itself. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, type TestContext, test } from 'vitest'
import { startCheckedSandbox } from '../support/checked-sandbox.ts'
import { DIALECT } from '../support/delivery.ts'
import { freePort } from '../support/free-port.ts'
import { isNeeded } from '../support/needs.ts'
import { startShop } from '../support/recording-store.ts'
import { until } from '../support/service-process.ts'

const REPOSITORY = path.join(import.meta.dirname, '../..')
const API_KEY = 'sk_test_0123456789abcdef'
const isLong = isNeeded('campaigns')
const needs = isLong ? '' : ' (skipped: .ci/run runs it)'

/** A clone after `npm ci`, and its command line. */
function cloned(onTestFinished: TestContext['onTestFinished']) {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-clone-'))
  for (const name of ['package.json', 'src', 'config/dialects', 'data/sandbox']) {
    cpSync(path.join(REPOSITORY, name), path.join(folder, name), { recursive: true })
  }
  symlinkSync(path.join(REPOSITORY, 'node_modules'), path.join(folder, 'node_modules'))
  const running: ChildProcess[] = []
  onTestFinished(() => {
    for (const child of running) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  const start = (...argv: string[]) => {
    const child = spawn(process.execPath, ['src/quayside.js', ...argv], { cwd: folder, env: environment })
    running.push(child)
    return { child, out: text(child.stdout), err: text(child.stderr), exit: once(child, 'exit') }
  }
  return {
    folder,
    start,
    /** Starts a line of the shell in a terminal of its own. `stop` is its Ctrl-C, and gives all that it has written. */
    terminal: (line: string) => {
      const child = spawn('bash', ['-c', `exec ${line}`], { cwd: folder, env: environment, detached: true })
      running.push(child)
      let output = ''
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
      const exit = once(child, 'close')
      onTestFinished(
        () => void (child.exitCode === null && child.signalCode === null && process.kill(-(child.pid ?? 0), 'SIGKILL')),
      )
      return {
        output: () => output,
        stop: async () => {
          process.kill(-(child.pid ?? 0), 'SIGINT')
          await exit
          return output
        },
      }
    },
    /** Runs a line of the shell to its end. */
    shell: async (line: string) => {
      const child = spawn('bash', ['-c', line], { cwd: folder, env: environment })
      running.push(child)
      const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
      return { code: code as number | null, out, err }
    },
    /** Runs one command to its end. */
    run: async (...argv: string[]) => {
      const { out, err, exit } = start(...argv)
      const [code] = await exit
      return { code: code as number | null, out: await out, err: await err }
    },
  }
}

/** The commands of the README that lead from a clone to the first licence key, each in one piece. */
function commandsOfTheReadme(): string[] {
  const readme = readFileSync(path.join(REPOSITORY, 'README.md'), 'utf8')
  const [, block = ''] = /## The first five things[\s\S]*?```sh\n([\s\S]*?)```/.exec(readme) ?? []
  return block
    .replaceAll(/\\\n\s+/g, '')
    .trim()
    .split('\n')
}

/** Nothing that configures Quayside reaches the processes from here. */
/** As on a machine of their own: npm warns about settings of its user that it does not know, and tells of newer versions. */
const environment = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(QUAYSIDE_|npm_config_)/i.test(name))),
  NPM_CONFIG_USERCONFIG: '/dev/null',
  NPM_CONFIG_UPDATE_NOTIFIER: 'false',
}

const answers = (url: string) => fetch(`${url}/readyz`, { headers: { connection: 'close' } }).catch(() => undefined)

test('the demo runs, init sets up the real thing beside it, doctor finds no fault, and the first licence key arrives', async ({
  onTestFinished,
}) => {
  const { folder, start, run } = cloned(onTestFinished)
  const sandbox = await startCheckedSandbox({ dialect: DIALECT, apiKey: API_KEY })
  onTestFinished(() => sandbox.close())
  const [port, storePort] = [await freePort(), await freePort()]
  const url = `http://127.0.0.1:${port}`

  const demo = start('serve', '--port', String(port))
  await until('the demo', async () => (await answers(url))?.ok)

  const keyFile = path.join(folder, 'given-key')
  writeFileSync(keyFile, API_KEY)
  const callbackUrl = `http://127.0.0.1:${storePort}/callbacks`
  const flags = ['--base-url', sandbox.baseUrl, '--api-key-file', keyFile, '--callback-url', callbackUrl]
  const init = await run('init', '--yes', '--json', ...flags)
  expect(init).toMatchObject({ code: 0, err: '' })
  const { token, callbackSecret } = JSON.parse(init.out) as { token: string; callbackSecret: string }
  demo.child.kill('SIGTERM')
  expect((await demo.exit)[0]).toBe(0)
  expect(await demo.out).toContain('npx quayside init')
  expect(readdirSync(path.join(folder, 'data')).sort()).toEqual(['demo', 'run', 'sandbox'])

  const shop = await startShop({ secret: callbackSecret, port: storePort })
  onTestFinished(() => shop.close())
  const service = start('serve', '--port', String(port))
  await until('the service', async () => service.child.exitCode !== null || (await answers(url))?.ok)
  const owner = readFileSync(path.join(folder, 'data/run/owner.token'), 'utf8').trim()
  const doctor = await run('doctor', '--json', '--url', url, '--token', owner)
  expect(doctor).toMatchObject({ code: 0, err: '' })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' }
  let sku = ''
  await until('the catalogue', async () => {
    const answer = await fetch(`${url}/api/v1/listings?limit=100`, { headers })
    const { data } = (await answer.json()) as { data: { items: { sku: string; stock: number | null }[] } }
    sku = data.items.find(({ stock }) => (stock ?? 0) > 10)?.sku ?? ''
    return sku !== ''
  })
  const body = JSON.stringify({ reference: '1001', lines: [{ id: '1', sku, quantity: 1 }] })
  expect((await fetch(`${url}/api/v1/orders`, { method: 'POST', headers, body })).status).toBe(202)
  await until('the licence key', () => shop.keys().get('1001/1'))
  service.child.kill('SIGTERM')
  expect((await service.exit)[0]).toBe(0)
})

test.runIf(isLong)(
  `the README leads from a clone to the first licence key, printed, of a supplier with another dialect, in seven commands${needs}`,
  async ({ onTestFinished }) => {
    const { folder, start, terminal, shell } = cloned(onTestFinished)
    const [port, supplierPort, storePort] = [await freePort(), await freePort(), await freePort()]
    const commands = commandsOfTheReadme()
    expect(commands).toHaveLength(7)
    const [install, init = '', doctor = '', listen = '', serve = '', listings = '', order = ''] = commands
    expect(install, 'which has run where this test runs').toBe('npm ci')

    // What a reader has, in place of the examples.
    start('sandbox', '--dialect', 'contrary', '--api-key', API_KEY, '--port', String(supplierPort))
    const supplierUrl = `http://127.0.0.1:${supplierPort}/v1`
    await until('the supplier', () => fetch(supplierUrl, { headers: { connection: 'close' } }).catch(() => undefined))
    writeFileSync(path.join(folder, 'key.txt'), API_KEY)
    const own = (command: string) =>
      command
        .replace('https://supplier.example/api/v1', supplierUrl)
        .replace('reseller-v1.1', 'contrary')
        .replace('127.0.0.1:4000', `127.0.0.1:${storePort}`)
        .replace('127.0.0.1:8080', `127.0.0.1:${port}`)

    const made = await shell(`${own(init)} --port ${port}`)
    expect(made).toMatchObject({ code: 0, err: '' })
    const [, token = ''] = /^ {2}token +(\S+)$/m.exec(made.out) ?? []
    const checked = await shell(own(doctor))
    expect(checked, checked.out).toMatchObject({ code: 0 })
    expect(checked.out).toContain('WARN  service: Quayside is not running')
    const said = checked.out.replaceAll(/\s+/g, ' ')
    expect(said).toMatch(/WARN callbacks: \S+ of \S+ takes no connection \(ECONNREFUSED\) -> .*`npx quayside listen`/)
    const listener = terminal(own(listen))
    await until('listen', async () =>
      listener.output().includes(`Listening at http://127.0.0.1:${storePort}/callbacks`),
    )
    const service = terminal(own(serve))
    let sku = ''
    await until('the catalogue', async () => {
      const { out } = await shell(own(listings))
      sku = /^(\S+) +synced +.* [1-9]\d+ /m.exec(out)?.[1] ?? ''
      return sku !== ''
    })
    const taken = await shell(own(order).replace('qs_s_…', token).replace('GAM-RAIL4', sku))
    expect(JSON.parse(taken.out), taken.out).toMatchObject({ success: true, data: { reference: '1001' } })
    const printed = /^\d\d:\d\d:\d\d {2}line\.fulfilled +order 1001, line 1: [A-Z0-9-]{10,}$/m
    await until('the licence key', async () => printed.test(listener.output()))
    await until('the end of the order', async () => listener.output().includes('order 1001 is fulfilled'))
    expect(await service.stop()).toContain('service.stopped')
    expect(await listener.stop()).not.toContain('refused')
  },
)
