/** The page of keys of a service that runs as it is installed: from the callback to the key, also after a restart. */
import { expect, test } from 'vitest'
import { type Installation, openInstallation } from '../support/service-process.ts'

const PUBLIC = 'https://quayside.example'

/** Opens the page at the address of the service, whose public name this machine does not know. */
const reach = (service: Installation, keysUrl: string, body?: URLSearchParams) =>
  fetch(keysUrl.replace(PUBLIC, service.url), {
    headers: { connection: 'close' },
    ...(body && { method: 'POST', body }),
  }).then((answer) => answer.text())

test('the address in a callback opens the very keys that the callback brought, also after a restart', async (context) => {
  const service = await openInstallation(context.onTestFinished, {}, { publicUrl: PUBLIC })
  await service.start()
  expect(await service.order('1001', (await service.sku()) ?? '', false)).toBe(202)
  await service.closed('1001')
  const data = service.shop.received().flatMap(({ data }) => (data.reference === '1001' ? [data] : []))
  const addresses = new Set(data.flatMap(({ keysUrl }) => (typeof keysUrl === 'string' ? [keysUrl] : [])))
  const [address = ''] = addresses
  expect(addresses.size).toBe(1)
  expect(address).toMatch(/^https:\/\/quayside\.example\/k\/[A-Za-z0-9_-]{43}$/)
  const [key = ''] = [...service.shop.keys().values()].flat()
  expect(await reach(service, address)).toContain('Your key is here.')
  expect(await reach(service, address, new URLSearchParams({ line: '1' }))).toContain(`>${key}</code>`)
  service.signal()
  await service.ended()
  await service.start()
  const after = await reach(service, address)
  expect(after).toContain('Shown for the first time on')
  expect(after).not.toContain(key)
})
