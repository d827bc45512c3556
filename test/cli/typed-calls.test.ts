import { expect, test } from 'vitest'
import type { Client } from '../../src/cli/client.ts'
import type { CommandRow, Given } from '../../src/cli/command.ts'

/** Compiled and never run: where the compiler reports no error, `npm run check` does. */
async function misread(client: Client) {
  const { items } = await client.call('GET /purchases', { query: { state: 'review' } })
  // @ts-expect-error no purchase has a colour
  items[0]?.colour.trim()
  // @ts-expect-error there is no such operation
  await client.call('GET /colours')
  // @ts-expect-error it has no such query
  await client.call('GET /purchases', { query: { colour: 'red' } })
  // @ts-expect-error its path has no such piece
  await client.call('GET /purchases/:id', { path: { colour: 'red' } })
  // @ts-expect-error its body has no such field
  await client.call('POST /freeze', { body: { colour: 'red' } })
}

const head = { command: 'show', about: 'what is there' }

/** No delivery and no status has a colour. */
const misshown: CommandRow[] = [
  // @ts-expect-error a column of it
  { ...head, call: 'GET /deliveries', empty: 'None.', columns: { COLOUR: 'colour' } },
  // @ts-expect-error a fact of it
  { ...head, call: 'GET /status', facts: { Colour: 'colour' } },
]

type Flags = Given<{
  '--data-dir <folder>': string
  '--yes': string
  '--port <number>': { about: string; parse: (text: string) => number; fallback: number }
}>
const given: Flags[] = [
  { dataDir: 'data', yes: true, port: 8080 },
  { port: 8080 },
  // @ts-expect-error an option with a default is always there
  {},
  // @ts-expect-error a flag has no text
  { yes: 'no', port: 8080 },
  // @ts-expect-error it is parsed into a number
  { port: '8080' },
  // @ts-expect-error there is no such option
  { colour: 'red', port: 8080 },
]

test('a field that an operation neither takes nor answers is an error of the compiler', () => {
  expect([misread, misshown]).toHaveLength(2)
})

test('an option that a command does not have, or that is parsed into something else, is an error of the compiler', () => {
  expect(given).toHaveLength(6)
})
