import { expect, test } from 'vitest'
import type { Client } from '../../src/cli/client.ts'
import type { CommandRow } from '../../src/cli/command.ts'

/** Compiled and never run: where the compiler reports no error, `npm run check` does. */
async function misread(client: Client): Promise<CommandRow[]> {
  const { items } = await client.call('GET /purchases', { query: { state: 'review' } })
  return [
    // @ts-expect-error no purchase has a colour
    items[0]?.colour,
    // @ts-expect-error there is no such operation
    await client.call('GET /colours'),
    // @ts-expect-error it has no such query
    await client.call('GET /purchases', { query: { colour: 'red' } }),
    // @ts-expect-error its path has no such piece
    await client.call('GET /purchases/:id', { path: { colour: 'red' } }),
    // @ts-expect-error its body has no such field
    await client.call('POST /freeze', { body: { colour: 'red' } }),
    // @ts-expect-error no delivery has a colour
    { command: 'deliveries list', about: '', call: 'GET /deliveries', empty: '', columns: { COLOUR: 'colour' } },
    // @ts-expect-error a status has no colour
    { command: 'status', about: '', call: 'GET /status', facts: { Colour: 'colour' } },
  ]
}

test('a field that an operation neither takes nor answers is an error of the compiler', () => {
  expect(misread).toBeTypeOf('function')
})
