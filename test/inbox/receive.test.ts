import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import Connection from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { deliveries } from '../../src/storage/schema.ts'
import { build } from '../../src/storage/statement.ts'
import { databaseFile, fileDatabase, TEST_NOW } from '../support/database.ts'
import { MARKER, SECRET, signedDelivery, timestampOf } from '../support/delivery.ts'
import { isOnPostgres } from '../support/postgres.ts'
import { exchange, requestBytes } from '../support/raw-http.ts'
import { openEndpoint, VAULT_KEY } from '../support/webhook-endpoint.ts'
import { addWebhook } from '../support/webhook-server.ts'

const OTHER_SECRET = 'whsec_other_0123456789abcdef0123456789abcde'
const target = '/webhooks/supplier'

describe('a stored delivery', () => {
  test.skipIf(isOnPostgres)('is sealed before it is written: the files hold neither body nor secret', async () => {
    const file = databaseFile()
    const database = fileDatabase(file)
    const endpoint = await openEndpoint({ database })
    const delivery = signedDelivery()
    expect((await endpoint.deliver(delivery))?.status).toBe(200)
    const [row] = await endpoint.rows()
    expect(row).toMatchObject({ source: 'supplier', deliveryId: 'dlv_1', signedAt: TEST_NOW, state: 'stored' })
    expect(endpoint.vault.open({ table: 'deliveries', row: row?.id ?? '' }, row?.ciphertext as Buffer, 1)).toEqual(
      delivery.body,
    )
    await endpoint.server.close()
    await database.close()
    const bytes = readFileSync(file).toString('latin1')
    for (const text of [MARKER, 'order.completed', 'ord_1', SECRET]) expect(bytes).not.toContain(text)
  })

  test('shares its commit with all that came in the same turn', async () => {
    const endpoint = await openEndpoint()
    let commits = 0
    const { commit } = endpoint.db
    const turn = Array.from({ length: 50 }, (_, n) => {
      const { headers, body } = signedDelivery({ deliveryId: `dlv_${n}`, timestamp: timestampOf(TEST_NOW - n * 1_000) })
      return {
        path: '/webhooks/supplier',
        headers: Object.fromEntries(headers.map(([name, value]) => [name, [value]])),
        body,
      }
    })
    const order: string[] = []
    endpoint.db.commit = (changes) => {
      commits += 1
      order.push('asked')
      return commit(changes).finally(() => order.push('done'))
    }
    const receipts = await Promise.all(turn.map((request) => endpoint.inbox.receive(request)))
    expect(new Set(receipts.map(({ outcome }) => outcome))).toEqual(new Set(['stored']))
    expect(commits).toBe(50)
    // All asked before the first was done: one transaction, one fsync.
    expect(order.slice(0, 50)).toEqual(Array(50).fill('asked'))
    const rows = (await endpoint.rows()).toSorted((a, b) => b.signedAt - a.signedAt)
    expect(rows.map(({ signedAt }) => signedAt)).toEqual(turn.map((_, n) => TEST_NOW - n * 1_000))
    expect(new Set(rows.map(({ receivedAt }) => receivedAt))).toEqual(new Set([TEST_NOW]))
  })

  test.skipIf(isOnPostgres)('outlives a kill -9 right after its 200', async () => {
    const file = databaseFile()
    const program = new URL('../support/inbox-child.ts', import.meta.url).pathname
    const child = spawn(process.execPath, [program, file, VAULT_KEY.reveal()], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    const ids = ['dlv_1', 'dlv_2', 'dlv_3']
    const answers = await Promise.all(
      ids.map((deliveryId, n) => {
        const timestamp = timestampOf(TEST_NOW - n * 1_000)
        const bytes = requestBytes({ target, ...signedDelivery({ deliveryId, timestamp }) })
        return exchange(Number(line.toString()), bytes)
      }),
    )
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(answers.map((answer) => answer?.status)).toEqual([200, 200, 200])
    const rows = await fileDatabase(file).query(build.select().from(deliveries))
    expect(rows.map(({ deliveryId }) => deliveryId).sort()).toEqual(ids)
  })
})

describe('while the database fails', () => {
  test.skipIf(isOnPostgres)('a delivery is answered 503 and stored when it comes again', async () => {
    const file = databaseFile()
    const endpoint = await openEndpoint({ database: fileDatabase(file) })
    const other = new Connection(file, { timeout: 0 })
    onTestFinished(() => void other.close())
    other.exec('begin immediate')
    expect(await endpoint.deliver(signedDelivery())).toMatchObject({ status: 503, headers: { 'retry-after': '5' } })
    expect(await endpoint.rows()).toEqual([])
    other.exec('rollback')
    expect((await endpoint.deliver(signedDelivery()))?.status).toBe(200)
    expect(await endpoint.rows()).toHaveLength(1)
  })

  test.skipIf(isOnPostgres)('a duplicate is not acknowledged either', async () => {
    const file = databaseFile()
    const endpoint = await openEndpoint({ database: fileDatabase(file) })
    await endpoint.deliver(signedDelivery())
    const other = new Connection(file, { timeout: 0 })
    onTestFinished(() => void other.close())
    other.exec('begin immediate')
    expect((await endpoint.deliver(signedDelivery()))?.status).toBe(503)
  })
})

describe('the secrets of the endpoint', () => {
  test('are taken after a reload, each for its own path', async () => {
    const endpoint = await openEndpoint({ webhooks: {} })
    const delivery = signedDelivery({ secret: OTHER_SECRET })
    expect((await endpoint.deliver(delivery, `${target}/next`))?.status).toBe(401)
    await addWebhook(endpoint.db, endpoint.vault, { path: 'next', secret: OTHER_SECRET, createdAt: TEST_NOW })
    expect((await endpoint.deliver(delivery, `${target}/next`))?.status).toBe(401)
    await endpoint.inbox.reload()
    expect((await endpoint.deliver(delivery, `${target}/next`))?.status).toBe(200)
    expect((await endpoint.deliver(delivery))?.status).toBe(401)
    expect(await endpoint.rows()).toMatchObject([{ source: 'supplier/next' }])
  })

  test.each([
    ['empty', ''],
    ['short', 'whsec_short'],
    ['padded', `${SECRET} `],
  ])('stop the start when one is %s', async (_word, secret) => {
    await expect(openEndpoint({ webhooks: { '': secret } })).rejects.toMatchObject({ code: 'invalid' })
  })

  test('stay in use when the new ones cannot be', async () => {
    const endpoint = await openEndpoint()
    await addWebhook(endpoint.db, endpoint.vault, { path: 'next', secret: '', createdAt: TEST_NOW })
    await expect(endpoint.inbox.reload()).rejects.toMatchObject({ code: 'invalid' })
    expect((await endpoint.deliver(signedDelivery()))?.status).toBe(200)
  })
})
