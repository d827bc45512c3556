import { expect, test } from 'vitest'
import { benchPeers } from './peers.ts'

test('every peer answers the same requests', async () => {
  const { figures } = await benchPeers(() => {}, { rounds: 1, share: 0.01 })
  expect(figures.map(({ name }) => name)).toEqual(['http', 'fastify', 'ceiling', 'plain', 'quayside'])
  expect(figures.filter(({ perSecond }) => !(perSecond > 0))).toEqual([])
})
