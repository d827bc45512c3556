import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder, widest } from '../support/cli-run.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/service-process.ts'
import { startedDemo } from '../support/started-demo.ts'

test('a second demo in the same folder wrote its ports over those of the first, which no command reached then', async () => {
  const folder = temporaryFolder()
  await startedDemo(folder, await freePort())
  const written = readFileSync(path.join(folder, 'demo.json'), 'utf8')
  await expect(startedDemo(folder, await freePort())).rejects.toMatchObject({ reason: 'database_in_use' })
  expect(readFileSync(path.join(folder, 'demo.json'), 'utf8')).toBe(written)
})

test('the banner of a demo that was started again offered an order that was there, and nothing happened', async () => {
  const folder = temporaryFolder()
  const port = await freePort()
  const first = await startedDemo(folder, port)
  expect(first.banner, 'the page of the sandbox is named first').toMatch(/no real money moves\.\n\n {2}sandbox +http:/)
  expect(first.offered).toBe('1001')
  expect(await first.order()).toBe(202)
  await first.keysOf('1001')
  await first.close()

  const second = await startedDemo(folder, port)
  expect(second.offered).toBe('1002')
  expect(second.banner).toContain('npx quayside orders show 1002')
  expect(widest(second.banner.replaceAll(folder, 'data/demo'))).toBeLessThanOrEqual(80)
  expect(await second.order()).toBe(202)
  await second.keysOf('1002')
})

test("the demo's customer orders within seconds of the start, and goes on with its numbers after a restart", async () => {
  const folder = temporaryFolder()
  const references = async (demo: Awaited<ReturnType<typeof startedDemo>>) => {
    const { data } = (await (await demo.api('/orders')).json()) as {
      data: { items: { reference: string; state: string }[] }
    }
    return data.items.map(({ reference, state }) => `${reference} ${state}`)
  }
  const first = await startedDemo(folder, await freePort())
  await until('its first order', async () => (await references(first)).includes('D-0001 fulfilled'))
  expect(first.printed(), 'what a person did stays on the screen').not.toContain('D-0001')
  await first.close()
  const second = await startedDemo(folder, await freePort())
  await until('its second order', async () => (await references(second)).includes('D-0002 fulfilled'))
})
