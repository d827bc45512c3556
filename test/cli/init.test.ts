import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { loadConfig } from '../../src/config/config.ts'
import { openSetUp } from '../../src/installation.ts'
import { Secret } from '../../src/secret.ts'
import { databaseFileOf } from '../../src/storage/data-folder.ts'
import { openToRead } from '../../src/storage/sqlite/open.ts'
import { allTokens } from '../../src/storage/tokens.ts'
import { nameOfKey } from '../../src/vault/vault.ts'
import { startCheckedSandbox } from '../support/checked-sandbox.ts'
import { type RunOptions, run, temporaryFolder, widest } from '../support/cli-run.ts'
import { contrary, standard } from '../support/dialect-pair.ts'

const API_KEY = 'key-of-the-reseller-0123456789'
const CALLBACK_URL = 'https://shop.example/quayside'

/** A supplier with two products; it sends nothing by itself. */
const supplier = await startCheckedSandbox({ dialect: standard, apiKey: API_KEY, offers: 2, automatic: false })
afterAll(() => supplier.close())
const BASE_URL = supplier.baseUrl
const required = ['--base-url', BASE_URL, '--callback-url', CALLBACK_URL]
const webhooksOf = ({ world }: typeof supplier) => world.webhooks.list().map(({ url }) => url)

function place() {
  const folder = temporaryFolder()
  const file = path.join(folder, 'config', 'quayside.json')
  const keyFile = path.join(folder, 'given-key')
  writeFileSync(keyFile, `${API_KEY}\n`)
  const secret = (name: string) => path.join(folder, 'config', 'secrets', name)
  return { folder, file, keyFile, secret }
}

const init = (file: string, keyFile: string, more: string[] = [], options: RunOptions = {}) =>
  run(['init', '--yes', '--config', file, ...required, '--api-key-file', keyFile, ...more], options)

const modeOf = (file: string): number => statSync(file).mode & 0o777
const readJson = (file: string) => JSON.parse(readFileSync(file, 'utf8'))
/** Every file and folder, save what SQLite makes beside a database that it opens. */
const tree = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => !/-(wal|shm)$/.test(name))
    .sort()

describe('init by flags', () => {
  it('writes the configuration that QUAYSIDE_CONFIG names, as the service reads it', async () => {
    const { folder, file, keyFile } = place()
    const argv = ['init', '--yes', ...required, '--api-key-file', keyFile]
    const { exitCode, stderr } = await run(argv, { env: { QUAYSIDE_CONFIG: file } })
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(loadConfig(file, {}).dataDir).toBe(path.join(folder, 'data', 'run'))
  })

  it('writes a configuration that the service accepts, and secrets that only their owner reads', async () => {
    const { file, keyFile, secret } = place()
    const webhooks = webhooksOf(supplier)
    const flags = ['--store-name', "Änna's Games", '--markup', '12.5']
    const { exitCode, stdout, stderr } = await init(file, keyFile, flags, { terminal: true })
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })

    const config = loadConfig(file, {})
    expect(config.supplier.baseUrl).toBe(BASE_URL)
    expect(config.stores).toMatchObject([
      { name: "Änna's Games", callbackUrl: CALLBACK_URL, pricing: { markup: { percent: '12.5' } } },
    ])
    expect(config.stores[0]?.id).toMatch(/^anna-s-games-[a-z0-9]{8}$/)
    expect(config.apiKey.reveal()).toBe(API_KEY)
    expect(Buffer.from(config.keyEncryptionKey.reveal(), 'base64')).toHaveLength(32)
    expect(modeOf(path.dirname(secret('api-key')))).toBe(0o700)
    expect([modeOf(secret('api-key')), modeOf(secret('key-encryption-key'))]).toEqual([0o600, 0o600])

    const db = openToRead(databaseFileOf(config.dataDir))
    const tokens = await db.query(allTokens())
    await db.close()
    expect(tokens).toMatchObject([{ role: 'store', store: config.stores[0]?.id, name: "Änna's Games (first)" }])
    expect(stdout).toContain(` ${tokens[0]?.hint}`)
    // Only one process has a database open to write: init has closed it.
    const setUp = await openSetUp(file, {})
    const callbackSecret = await setUp.callbackSecret(config.stores[0]?.id ?? '')
    await setUp.close()
    expect(stdout).toContain(callbackSecret.reveal())
    expect(webhooksOf(supplier), 'no webhook without --public-url').toEqual(webhooks)
    expect(stdout).not.toContain(API_KEY)
    expect(widest(stdout.replaceAll(path.dirname(path.dirname(file)), ''))).toBeLessThanOrEqual(80)
  })

  it('keeps the database in the folder of --data-dir, from wherever it is started, and sets the port', async () => {
    const { file, keyFile, folder } = place()
    const dataDir = path.join(folder, 'disk', 'quayside')
    const { exitCode } = await init(file, keyFile, [
      '--data-dir',
      path.relative(process.cwd(), dataDir),
      '--port',
      '9090',
    ])
    expect(exitCode).toBe(0)
    const config = loadConfig(file, {})
    expect(config.dataDir).toBe(dataDir)
    expect(config.listen).toEqual({ host: '127.0.0.1', port: 9090 })
    expect(existsSync(databaseFileOf(dataDir))).toBe(true)
    expect(readJson(file).dataDir).toBe('../disk/quayside')
    const wrong = await init(file, keyFile, ['--force', '--port', '99999'])
    expect(wrong).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--port') })
    // What no flag says stays as it was.
    expect((await init(file, keyFile, ['--force'])).exitCode).toBe(0)
    expect(loadConfig(file, {})).toMatchObject({ dataDir, listen: { port: 9090 } })
  })

  it('prints one JSON document with --json, without the API key', async () => {
    const { file, keyFile } = place()
    const { stdout } = await init(file, keyFile, ['--json', '--public-url', 'https://quayside.example'])
    const [webhook] = supplier.world.webhooks.list()
    expect(JSON.parse(stdout)).toMatchObject({
      token: expect.stringMatching(/^qs_s_/),
      webhook: { id: webhook?.id, url: 'https://quayside.example/webhooks/supplier' },
    })
    expect(stdout).not.toContain(API_KEY)
  })

  it('leaves a configuration that is there as it is', async () => {
    const { file, keyFile } = place()
    mkdirSync(path.dirname(file))
    writeFileSync(file, 'mine')
    const { exitCode, stderr } = await init(file, keyFile)
    expect(exitCode).toBe(5)
    expect(stderr).toContain('--force')
    expect(readFileSync(file, 'utf8')).toBe('mine')
  })

  it('keeps the store id, the key-encryption key and all other settings under --force', async () => {
    const { file, keyFile, secret } = place()
    const key = Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')
    mkdirSync(path.dirname(secret('key-encryption-key')), { recursive: true })
    writeFileSync(secret('key-encryption-key'), `${key}\n`, { mode: 0o600 })
    expect(await init(file, keyFile, ['--store-name', 'First'])).toMatchObject({ exitCode: 0, stderr: '' })
    const before = readJson(file)
    const store = {
      ...before.stores[0],
      stock: { buffer: 2 },
      pricing: { markup: { flat: '1.00' }, bands: [{ percent: '9' }] },
    }
    writeFileSync(file, JSON.stringify({ ...before, stores: [store], spendCaps: { order: '50.00' } }))
    const { stdout } = await init(file, keyFile, ['--store-name', 'Second', '--force'])
    const after = loadConfig(file, {})
    expect(after.stores).toMatchObject([{ id: before.stores[0].id, name: 'Second' }])
    expect(after.spendCaps.order).toBe('50.00')
    expect(after.stores[0]?.pricing).toMatchObject({
      markup: { percent: '20', flat: '1.00' },
      bands: [{ percent: '9' }],
    })
    expect(after.stores[0]?.stock.buffer).toBe(2)
    expect(after.keyEncryptionKey.reveal()).toBe(key)
    expect(stdout).toContain('key-encryption key')
  })

  it('stops at an unreadable configuration even under --force: a new store id would buy again', async () => {
    const { file, keyFile } = place()
    mkdirSync(path.dirname(file))
    writeFileSync(file, '{"stores": [')
    expect((await init(file, keyFile, ['--force'])).exitCode).toBe(5)
    expect(readFileSync(file, 'utf8')).toBe('{"stores": [')
  })

  it('names everything that is missing or wrong at once, and writes nothing', async () => {
    const { file, keyFile } = place()
    const missing = await run(['init', '--yes', '--config', file])
    expect(missing.exitCode).toBe(2)
    expect(missing.stderr).toMatch(/--base-url(.|\n)*--api-key-file/)
    const wrong = await init(file, keyFile, ['--markup', 'ten', '--callback-url', 'shop'])
    expect(wrong.exitCode).toBe(2)
    expect(wrong.stderr).toMatch(/--callback-url(.|\n)*--markup/)
    expect(existsSync(path.dirname(file))).toBe(false)
  })

  it('takes the API key from the environment and does not write it down', async () => {
    const { file, secret } = place()
    const env = { QUAYSIDE_API_KEY: API_KEY }
    const argv = ['init', '--yes', '--config', file, ...required]
    expect((await run(argv, { env })).exitCode).toBe(0)
    expect(existsSync(secret('api-key'))).toBe(false)
  })

  it('sets up a real database, and is refused while another process has it', async () => {
    const { file, keyFile } = place()
    const { exitCode, stdout } = await init(file, keyFile, ['--json'])
    expect(exitCode).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      token: expect.stringMatching(/^qs_s_/),
      callbackSecret: expect.stringMatching(/^whsec_/),
    })
    const running = await openSetUp(file, {})
    const before = readFileSync(file, 'utf8')
    const second = await init(file, keyFile, ['--force', '--markup', '99'])
    await running.close()
    expect(second.exitCode).toBe(5)
    expect(second.stderr).toContain('stop it first')
    expect(readFileSync(file, 'utf8')).toBe(before)
  })

  it('warns of http:// to a remote supplier or store, and not to a private one', async () => {
    const { file, keyFile } = place()
    const remote = ['--base-url', 'http://supplier.example/v1', '--callback-url', 'http://8.8.8.8/callbacks']
    const warned = await init(file, keyFile, [...remote, '--offline', '--json'])
    expect(warned.exitCode).toBe(0)
    expect(JSON.parse(warned.stdout).warnings).toEqual([
      expect.stringContaining('http://supplier.example/v1'),
      expect.stringContaining('http://8.8.8.8/callbacks'),
    ])
    const again = await init(file, keyFile, ['--force', ...remote, '--offline'])
    expect(again.stdout).toMatch(/WARNING: the API key (.|\n)*WARNING: licence keys /)
    const near = ['--callback-url', 'http://10.0.0.7/callbacks', '--json']
    const quiet = await init(file, keyFile, ['--force', ...near])
    expect(JSON.parse(quiet.stdout).warnings).toEqual([])
  })

  it('writes nothing beside a database that is under another key, and says what to do', async () => {
    const { folder, file, keyFile } = place()
    const key = Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')
    await init(file, keyFile, [], { env: { QUAYSIDE_KEY_ENCRYPTION_KEY: key } })
    rmSync(path.dirname(file), { recursive: true })
    const before = tree(folder)
    const { exitCode, stderr, stdout } = await init(file, keyFile)
    expect({ exitCode, stdout }).toEqual({ exitCode: 5, stdout: '' })
    const said = stderr.replaceAll(/\n +/g, ' ')
    expect(said).toMatch(/^quayside: nothing was written: .*data\/run\/quayside\.db .* under the key-encryption key/)
    expect(said).toContain(`${nameOfKey(new Secret(key))}: set that key`)
    expect(tree(folder)).toEqual(before)
  })

  it('shared the database of a configuration in a folder beside this one, and said nothing', async () => {
    const { folder, file, keyFile } = place()
    const env = { QUAYSIDE_KEY_ENCRYPTION_KEY: Buffer.from('0123456789abcdef0123456789abcdef').toString('base64') }
    await init(file, keyFile, [], { env })
    const beside = path.join(folder, 'config-2', 'quayside.json')
    const before = tree(folder)
    const own = /a folder of its own is given by --data-dir/
    for (const [more, why] of [
      [{ env }, /data\/run\/quayside\.db is there already: --force goes on with it/],
      [{}, /is a database under the key-encryption key/],
    ] as const) {
      const { exitCode, stderr } = await init(beside, keyFile, [], more)
      const said = stderr.replaceAll(/\s+/g, ' ')
      expect({ exitCode, said }).toEqual({ exitCode: 5, said: expect.stringMatching(why) })
      expect(said).toMatch(own)
      expect(tree(folder)).toEqual(before)
    }
    expect((await init(beside, keyFile, ['--data-dir', path.join(folder, 'run-2')], { env })).exitCode).toBe(0)
    expect((await init(path.join(folder, 'config-3', 'quayside.json'), keyFile, ['--force'], { env })).exitCode).toBe(0)
  })

  it('ended without a word about the key without which all is lost', async () => {
    const { file, keyFile, secret } = place()
    const said = (await init(file, keyFile)).stdout.replaceAll(/\s+/g, ' ')
    expect(said).toContain(
      `Keep a copy of ${secret('key-encryption-key')} elsewhere: without that key nothing opens the database or its backups`,
    )
    const again = (await init(file, keyFile, ['--force'])).stdout
    expect(again).not.toContain('Keep a copy')
  })

  it('says in its help which folder the database is in', async () => {
    const { stdout } = await run(['init', '--help'])
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
      'where the database is kept; default: ../data/run, from the folder of the configuration',
    )
  })

  it('writes nothing for a price rule that makes no sense, and where the data folder cannot be made', async () => {
    const { folder, file, keyFile } = place()
    const before = tree(folder)
    const faulty = await init(file, keyFile, ['--markup', '1000000000000'])
    expect(faulty.exitCode).toBe(2)
    expect(tree(folder)).toEqual(before)
    writeFileSync(path.join(folder, 'data'), 'a file')
    const blocked = await init(file, keyFile)
    expect(blocked).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(path.join(folder, 'data')) })
    expect(tree(folder)).toEqual([...before, 'data'].sort())
  })

  it('leaves no database behind that it could not finish', async () => {
    const { folder, file, keyFile } = place()
    const dataDir = path.join(folder, 'disk')
    // A folder in the place of SQLite's log.
    mkdirSync(path.join(dataDir, 'quayside.db-wal'), { recursive: true })
    const before = tree(folder)
    const { exitCode, stderr } = await init(file, keyFile, ['--data-dir', dataDir])
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining('nothing was set up: ') })
    expect(tree(folder)).toEqual(before)
  })

  it('leaves nothing behind when it fails in the middle, and what was there as it was', async () => {
    const { folder, file, keyFile } = place()
    const before = tree(folder)
    // The webhook comes last, when everything else is made.
    const fail = (...flags: string[]) => {
      supplier.faults.add({ fault: 'error-before', match: { method: 'POST', path: '/webhooks' } })
      return init(file, keyFile, ['--public-url', 'https://elsewhere.example', ...flags])
    }
    expect(await fail()).toMatchObject({ exitCode: 1, stdout: '' })
    expect(tree(folder)).toEqual(before)
    await init(file, keyFile)
    const [whole, text] = [tree(folder), readFileSync(file, 'utf8')]
    expect(await fail('--force', '--markup', '99')).toMatchObject({ exitCode: 1 })
    expect([tree(folder), readFileSync(file, 'utf8')]).toEqual([whole, text])
  })
})

describe('init without a callback address', () => {
  const argv = (file: string, keyFile: string) => {
    return ['init', '--yes', '--config', file, '--base-url', BASE_URL, '--api-key-file', keyFile]
  }

  it('makes an installation without a store, and says how a shop is added', async () => {
    const { file, keyFile } = place()
    const { exitCode, stdout, stderr } = await run(argv(file, keyFile), { terminal: true })
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    const config = loadConfig(file, {})
    expect(config.stores).toEqual([])
    expect(existsSync(databaseFileOf(config.dataDir))).toBe(true)
    expect(stdout).toMatch(/Next:\n +\S+ quayside stores add woocommerce(.|\n)* quayside stores add shopify/)
    expect(stdout).not.toMatch(/token|callback secret/)
    expect(widest(stdout.replaceAll(path.dirname(path.dirname(file)), ''))).toBeLessThanOrEqual(80)
    const backend = await run([...argv(file, keyFile), '--force', '--callback-url', CALLBACK_URL, '--json'])
    expect(JSON.parse(backend.stdout)).toMatchObject({
      token: expect.stringMatching(/^qs_s_/),
      kept: expect.any(Array),
    })
    expect(loadConfig(file, {}).stores).toMatchObject([{ callbackUrl: CALLBACK_URL }])
  })

  it('takes an empty answer for none, and asks for neither a name nor a markup', async () => {
    const { file } = place()
    const typed = ['', BASE_URL, API_KEY, 'yes', '', '']
    const { exitCode, stdout } = await run(['init', '--config', file], { terminal: true, typed })
    expect(exitCode).toBe(0)
    expect(stdout).toContain('Callback URL (optional): ')
    expect(stdout).not.toContain('Store name')
    expect(loadConfig(file, {}).stores).toEqual([])
  })

  it('does not lose the permanent id of the backend that is there', async () => {
    const { file, keyFile } = place()
    await init(file, keyFile)
    const before = readJson(file).stores[0].id
    const typed = ['', '', '', 'yes', '-', '', '', '', '']
    const { stdout } = await run(['init', '--force', '--config', file], { terminal: true, typed })
    expect(stdout).toContain('Not that: an address that starts with')
    expect(readJson(file).stores).toMatchObject([{ id: before, callbackUrl: CALLBACK_URL }])
  })
})

describe('init by asking', () => {
  it('says what each answer means, asks again for a wrong one, and never shows the API key', async () => {
    const { file } = place()
    const typed = [
      ...[
        'no-such-dialect',
        '',
        'https://supplier.example/api',
        BASE_URL,
        '',
        API_KEY,
        'yes',
        'shop',
        CALLBACK_URL,
        'My shop',
        'https://quayside.example',
        '15',
      ],
    ]
    const { exitCode, stdout, stderr } = await run(['init', '--config', file], { terminal: true, typed })
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    const config = loadConfig(file, {})
    expect(config.supplier.baseUrl).toBe(BASE_URL)
    expect(config.apiKey.reveal()).toBe(API_KEY)
    expect(config.publicUrl).toBe('https://quayside.example')
    expect(config.stores).toMatchObject([
      { name: 'My shop', callbackUrl: CALLBACK_URL, pricing: { markup: { percent: '15' } } },
    ])
    expect(stdout).toContain('Not that: an address that ends in /v1')
    expect(stdout).toContain('Not that: it is needed')
    expect(stdout).toMatch(/Not that: there is no \S+no-such-dialect/)
    expect(config.supplier.dialect).toBe('reseller-v1.1')
    expect(stdout).toMatch(/the\s+page\s+of\s+their\s+keys/)
    expect(stdout).not.toContain(API_KEY)
  })

  it('takes what an earlier configuration says for an empty answer, and - for none', async () => {
    const { file, keyFile } = place()
    await init(file, keyFile, ['--public-url', 'https://quayside.example', '--markup', '7'])
    const typed = ['', '', '', 'yes', '', '', '-', '']
    const { exitCode } = await run(['init', '--force', '--config', file], { terminal: true, typed })
    expect(exitCode).toBe(0)
    const config = loadConfig(file, {})
    expect(config.publicUrl).toBeNull()
    expect(config.stores).toMatchObject([
      { callbackUrl: CALLBACK_URL, pricing: { markup: { percent: '7' } }, name: 'My store' },
    ])
  })
})

/** A supplier that speaks the contrary dialect, and the program that sets up against it. */
async function differingSupplier() {
  const sandbox = await startCheckedSandbox({ dialect: contrary, apiKey: API_KEY, requestsPerMinute: 1_000 })
  onTestFinished(() => sandbox.close())
  const { file, keyFile, folder } = place()
  const flags = ['--base-url', sandbox.baseUrl, '--public-url', 'https://quayside.example']
  const webhooks = () => webhooksOf(sandbox)
  return {
    sandbox,
    file,
    keyFile,
    folder,
    webhooks,
    set: (...more: string[]) => init(file, keyFile, [...flags, ...more]),
  }
}

describe('init at a supplier that differs', () => {
  it('makes the webhook and reads products by the dialect that it is given, and writes it down', async () => {
    const { file, webhooks, set } = await differingSupplier()
    const { exitCode, stdout } = await set('--dialect', 'contrary', '--json')
    expect(exitCode).toBe(0)
    expect(webhooks()).toEqual(['https://quayside.example/webhooks/supplier'])
    const said = JSON.parse(stdout)
    expect(said).toMatchObject({ dialect: 'contrary', webhook: { url: webhooks()[0] } })
    expect(said.products).toHaveLength(3)
    expect(said.products[0]).toMatchObject({ name: expect.any(String), cost: expect.stringMatching(/^\d+ JPY$/) })
    expect(readJson(file).supplier.dialect).toBe('contrary')
    expect(loadConfig(file, {}).dialectFacts.name).toBe('contrary')
    await set('--force', '--markup', '7')
    expect(loadConfig(file, {}).dialectFacts.name, 'kept where no flag says another').toBe('contrary')
  })

  it('takes a path, which is written as it is seen from the configuration', async () => {
    const { file, folder, set } = await differingSupplier()
    const dialect = path.join(folder, 'config', 'mine', 'supplier.json')
    mkdirSync(path.dirname(dialect), { recursive: true })
    writeFileSync(dialect, JSON.stringify({ ...contrary, name: 'supplier' }))
    expect((await set('--dialect', path.relative('.', dialect))).exitCode).toBe(0)
    expect(readJson(file).supplier.dialect).toBe(path.join('mine', 'supplier.json'))
    expect(loadConfig(file, {}).dialectFacts.name).toBe('supplier')
  })

  it('refuses a dialect that is not there or has faults, and writes nothing', async () => {
    const { file, folder, set } = await differingSupplier()
    const faulty = path.join(folder, 'faulty.json')
    writeFileSync(faulty, JSON.stringify({ ...contrary, settleSeconds: 'long' }))
    const before = tree(folder)
    expect(await set('--dialect', 'nowhere')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('nowhere') })
    expect(await set('--dialect', faulty)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('settleSeconds'),
    })
    expect(tree(folder)).toEqual(before)
    expect(existsSync(file)).toBe(false)
  })
})

describe('the three products that init shows', () => {
  const [office, game] = supplier.world.offers.list({}, 0, 2).items
  supplier.world.offers.change(office?.id ?? '', { priceMinor: 1_527, localStock: 3, providerStock: 4 })
  supplier.world.offers.change(game?.id ?? '', { priceMinor: 1_527, available: false })
  const asked = (answer: string) => {
    const { folder, file } = place()
    const typed = ['', BASE_URL, API_KEY, answer, CALLBACK_URL, '', '', '']
    return { folder, file, before: tree(folder), ran: run(['init', '--config', file], { terminal: true, typed }) }
  }

  it.each(['yes', 'y', 'Y'])(
    'have name, cost and stock, and a person who types "%s" says that they are right',
    async (yes) => {
      const { file, ran } = asked(yes)
      const { stdout } = await ran
      expect(stdout).toMatch(
        new RegExp(
          `NAME +COST +STOCK\\r?\\n${office?.name} +15\\.27 EUR +7 \\(3 local, 4 provider\\)\\r?\\n${game?.name} +15\\.27 EUR +cannot be bought`,
        ),
      )
      expect(stdout).toContain('Are they right (yes or no): ')
      expect(existsSync(file)).toBe(true)
    },
  )

  it.each(['no', 'n'])('end the set-up when a person says "%s": nothing is written', async (no) => {
    const { folder, before, ran } = asked(no)
    expect(await ran).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--dialect') })
    expect(tree(folder)).toEqual(before)
  })
})
