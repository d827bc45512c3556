/** A whole service whose clock is put ahead and back: what wakes it must not hang on that clock. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { writeDemoConfig } from '../src/demo/files.ts'
import { openSetUp } from '../src/installation.ts'
import { createService } from './campaigns/torture/service.ts'
import { freePort } from './support/free-port.ts'
import { until } from './support/service-process.ts'

const HOUR = 3_600_000

test('a service whose clock is put back by an hour goes on looking for due work', async ({ onTestFinished }) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'quayside-clock-'))
  const nowhere = { baseUrl: `http://127.0.0.1:${await freePort()}/v1`, storePort: await freePort() }
  const configFile = writeDemoConfig({
    folder,
    ...nowhere,
    apiKey: 'sk_test_0123456789abcdef',
    port: await freePort(),
    dialect: 'reseller-v1.1',
    more: { ordering: { tickSeconds: 1 } },
  })
  await (await openSetUp(configFile, {})).close()
  const service = createService({ folder, configFile, preload: [], env: {} })
  onTestFinished(async () => {
    await service.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const { ready } = service.start()
  expect(await ready).toBe(true)
  const jumps = () => service.lastLines().filter((line) => line.includes('clock.jumped')).length
  service.shiftClock(HOUR)
  await until('the jump ahead to be noticed', () => jumps() === 1)
  service.shiftClock(0)
  await until('the jump back to be noticed', () => jumps() === 2)
})
