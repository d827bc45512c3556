import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express, { type ErrorRequestHandler } from 'express'
import { expect, onTestFinished, test } from 'vitest'
import { referenceRouter } from '../../src/http/docs.ts'

test('a page of the API that could not be made stayed away until the next start', async () => {
  const whole = { info: { description: 'Orders' }, tags: [], paths: {}, webhooks: {}, components: { schemas: {} } }
  const documents = ['{', JSON.stringify(whole)]
  const answer500: ErrorRequestHandler = (_error, _request, response, _next) => response.sendStatus(500)
  const app = express()
    .use(referenceRouter(() => documents.shift() ?? ''))
    .use(answer500)
  const server = app.listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const ask = async () => (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/docs`)).status
  expect([await ask(), await ask(), await ask()]).toEqual([500, 200, 200])
})
