/** The probe of a service that really runs. */
import { expect, test } from 'vitest'
import { startCheckedSandbox } from '../support/checked-sandbox.ts'
import { DIALECT } from '../support/delivery.ts'
import { openInstallation, until } from '../support/service-process.ts'

test('/readyz had no note while the supplier was down: the service is ready all the same, and the note ends with the outage', async ({
  onTestFinished,
}) => {
  const { sandbox, start, sku, order, probe } = await openInstallation(onTestFinished)
  await start()
  const notes = async () => (JSON.parse((await probe('/readyz'))?.text ?? '{}') as { notes?: string[] }).notes
  expect(await notes()).toEqual([])
  const item = (await sku()) ?? ''
  const { baseUrl } = sandbox
  await sandbox.close()
  await order('1001', item, false)
  await until('the note', async () => (await notes())?.includes('supplier_unreachable'))
  expect((await probe('/readyz'))?.status).toBe(200)

  const apiKey = 'sk_test_0123456789abcdef'
  const again = await startCheckedSandbox({ dialect: DIALECT, apiKey, port: Number(new URL(baseUrl).port) })
  onTestFinished(() => again.close())
  await until('the end of the note', async () => (await notes())?.length === 0)
})
