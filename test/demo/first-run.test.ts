/** How the demo gives way to the installation that was set up in it: one process, over real sockets. */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { run, temporaryFolder } from '../support/cli-run.ts'
import { cookieIn, visit } from '../support/console-client.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/service-process.ts'
import { openFolder, SUPPLIER_KEY } from '../support/set-up-folder.ts'

test('a set-up at the port that a container publishes hands over once, and nothing of the demo opens what follows', async () => {
  const port = await freePort()
  const { folder, supplier, link, printed } = await openFolder({ QUAYSIDE_CONSOLE_PUBLISHED: `127.0.0.1:${port}` })
  const address = `http://127.0.0.1:${port}`
  const linkIn = (text: string) => new URL(text).searchParams.get('link') ?? ''
  const redeem = (text: string) => visit(address, '/signin', { form: { link: linkIn(text), to: '/setup' } })
  const [first, unused] = [await link(), await link('mira')]
  expect(first, 'where the host publishes it').toContain(`${address}/signin`)
  if (process.platform === 'linux') {
    // Another address of this machine, as the network of a container is one.
    const beyond = (host: string) => visit(`http://127.0.0.2:${port}`, '/signin', { headers: { host } })
    expect((await beyond(`127.0.0.1:${port}`)).status).toBe(401)
    expect((await beyond(`127.0.0.2:${port}`)).status, 'under no other name').toBe(421)
  }
  const cookie = cookieIn(await redeem(first))
  const post = (action: string, form = {}) => visit(address, `/setup/${action}`, { cookie, form })
  const typed = { baseUrl: supplier.baseUrl, apiKey: SUPPLIER_KEY, dialect: 'reseller-v1.1' }
  expect((await post('test-supplier', typed)).text).toContain('Yes, these are right')
  const founded = await post('found')
  const next = String(founded.headers.refresh).replace(/^\d+; url=/, '')
  expect(founded.text).toContain('quayside console --name owner')
  await until('the installation', async () => {
    const answer = await visit(address, `/signin?link=${linkIn(next)}&to=/setup`).catch(() => undefined)
    return answer?.text.includes('made for <bdi>owner</bdi>')
  })
  expect((await visit(address, '/setup', { cookie })).status, 'a session of the demo').toBe(401)
  for (const old of [first, unused]) expect((await redeem(old)).status, 'a link of the demo').toBe(401)
  const begun = await redeem(next)
  expect([begun.status, begun.headers.location]).toEqual([303, '/setup'])
  expect((await redeem(next)).status, 'a second time').toBe(401)
  const page = await visit(address, '/setup', { cookie: cookieIn(begun) })
  expect(page.text).toContain('Connect your shop')
  expect(printed()).not.toContain(SUPPLIER_KEY)
  const files = readdirSync(path.join(folder, 'config'), { recursive: true, withFileTypes: true })
  for (const one of files.filter((file) => file.isFile())) {
    expect(readFileSync(path.join(one.parentPath, one.name), 'utf8'), one.name).not.toContain(SUPPLIER_KEY)
  }
})

test.each(['0.0.0.0:8083', '192.168.1.2:8083', 'shop.example:8083', '127.0.0.1', '[::]:8083'])(
  'no set-up begins where a container would publish it at %s, which is not the loopback of its host',
  async (published) => {
    const folder = temporaryFolder()
    const env = { QUAYSIDE_CONSOLE_PUBLISHED: published, QUAYSIDE_DATA_DIR: path.join(folder, 'data') }
    const { exitCode, stdout, stderr } = await run(['serve', '--config', path.join(folder, 'none.json')], { env })
    expect([exitCode, stdout]).toEqual([2, ''])
    expect(stderr.replaceAll(/\s+/g, ' ')).toContain(
      'QUAYSIDE_CONSOLE_PUBLISHED must be where the host publishes the console on its loopback',
    )
    expect(readdirSync(folder)).toEqual([])
  },
)
