/** One hostile or unusual delivery, and what must come of it at the endpoint. */
import { expect } from 'vitest'
import { MARKER, SECRET } from './delivery.ts'
import type { Answer, RawRequest } from './raw-http.ts'
import { type EndpointOptions, openEndpoint, type WebhookEndpoint } from './webhook-endpoint.ts'

export interface Row {
  name: string
  options?: EndpointOptions
  /** Rows set before, such as purchases. */
  before?: (endpoint: WebhookEndpoint) => Promise<unknown>
  /** What is sent, one after the other; a function also moves the clock. */
  requests: RawRequest[] | ((endpoint: WebhookEndpoint) => Promise<(Answer | undefined)[]>)
  /** Of every answer. */
  status: number
  /** States of all stored deliveries after processing. */
  states: string[]
  /** Ids of the purchases that were asked to be read. */
  hinted?: string[]
  alerts?: string[]
  after?: (endpoint: WebhookEndpoint) => Promise<void> | void
}

/** Not believed, and nothing kept. */
export const refused = (name: string, requests: Row['requests'], more: Partial<Row> = {}): Row => ({
  name,
  requests,
  status: 401,
  states: [],
  ...more,
})

/** @param secrets that must be in no answer and no log line */
export async function knock(row: Row, secrets: string[]): Promise<void> {
  const { options, before, requests, status, states, hinted = [], alerts = [], after } = row
  const endpoint = await openEndpoint(options)
  await before?.(endpoint)
  const answers: (Answer | undefined)[] = []
  if (Array.isArray(requests)) for (const request of requests) answers.push(await endpoint.send(marked(request)))
  else answers.push(...(await requests(endpoint)))

  expect(answers.map((answer) => answer?.status)).toEqual(answers.map(() => status))
  await endpoint.process()
  expect((await endpoint.rows()).map(({ state }) => state)).toEqual(states)
  const asked = (await endpoint.purchases()).filter(({ refreshAt }) => refreshAt !== null)
  expect(asked.map(({ id }) => id)).toEqual(hinted)
  expect(await endpoint.alerts()).toEqual(alerts)
  await after?.(endpoint)

  for (const answer of answers) expectQuiet(answer, secrets)
  const refusals = answers.filter((answer) => answer?.status === 401).map((answer) => uniform(answer))
  expect(new Set(refusals).size).toBeLessThanOrEqual(1)
  const log = endpoint.seen.lines.join('\n')
  for (const text of [SECRET, MARKER, ...secrets]) expect(log).not.toContain(text)
  expect((await endpoint.send({ method: 'GET', target: '/livez' }))?.status).toBe(200)
}

const marked = (request: RawRequest): RawRequest => ({
  ...request,
  headers: [...(request.headers ?? []), ['x-marker', MARKER]],
})

function expectQuiet(answer: Answer | undefined, secrets: string[]): void {
  const text = answer?.text ?? ''
  expect(text.length).toBeLessThan(1_024)
  for (const secret of [MARKER, SECRET, 'ord_1', 'ref_1', ...secrets]) expect(text).not.toContain(secret)
  expect(answer?.headers).not.toHaveProperty('access-control-allow-origin')
}

/** A refusal without the id of its request, which is ours and fresh each time. */
const uniform = (answer: Answer | undefined): string => answer?.body.replace(/"request_id":"[0-9a-z]{26}"/, '') ?? ''
