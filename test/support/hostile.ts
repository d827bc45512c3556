/** One hostile or unusual delivery, and what must come of it at the door. */
import { expect } from 'vitest'
import { MARKER, SECRET } from './delivery.ts'
import type { Answer, RawRequest } from './raw-http.ts'
import { type Door, type DoorOptions, openDoor } from './webhook-door.ts'

export interface Row {
  name: string
  options?: DoorOptions
  /** Rows set before, such as purchases. */
  before?: (door: Door) => Promise<unknown>
  /** What is sent, one after the other; a function also moves the clock. */
  requests: RawRequest[] | ((door: Door) => Promise<(Answer | undefined)[]>)
  /** Of every answer. */
  status: number
  /** States of all stored deliveries after processing. */
  states: string[]
  /** Ids of the purchases that were asked to be read. */
  hinted?: string[]
  alerts?: string[]
  after?: (door: Door) => Promise<void> | void
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
  const door = await openDoor(options)
  await before?.(door)
  const answers: (Answer | undefined)[] = []
  if (Array.isArray(requests)) for (const request of requests) answers.push(await door.send(marked(request)))
  else answers.push(...(await requests(door)))

  expect(answers.map((answer) => answer?.status)).toEqual(answers.map(() => status))
  await door.process()
  expect((await door.rows()).map(({ state }) => state)).toEqual(states)
  const asked = (await door.purchases()).filter(({ refreshAt }) => refreshAt !== null)
  expect(asked.map(({ id }) => id)).toEqual(hinted)
  expect(await door.alerts()).toEqual(alerts)
  await after?.(door)

  for (const answer of answers) expectQuiet(answer, secrets)
  const refusals = answers.filter((answer) => answer?.status === 401).map((answer) => uniform(answer))
  expect(new Set(refusals).size).toBeLessThanOrEqual(1)
  const log = door.seen.lines.join('\n')
  for (const text of [SECRET, MARKER, ...secrets]) expect(log).not.toContain(text)
  expect((await door.send({ method: 'GET', target: '/livez' }))?.status).toBe(200)
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
