import { expect, test } from 'vitest'
import { isNeeded } from '../support/needs.ts'
import { benchPeers } from './peers.ts'

const runs = isNeeded('campaigns')
const needs = runs ? '' : ' (skipped: it loads five servers, as .ci/run does)'

test.skipIf(!runs)(`every peer answers the same requests${needs}`, async () => {
  const { figures } = await benchPeers(() => {}, { rounds: 1, share: 0.01 })
  expect(figures.map(({ name }) => name)).toEqual(['http', 'fastify', 'ceiling', 'plain', 'quayside'])
  expect(figures.filter(({ perSecond }) => !(perSecond > 0))).toEqual([])
})
