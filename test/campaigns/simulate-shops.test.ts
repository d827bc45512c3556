/** A seed repeats with a shop of each kind too: so what it found can be looked at again. It takes minutes on a busy machine. */
import { describe, expect, test } from 'vitest'
import { isNeeded } from '../support/needs.ts'
import { play } from './simulate/run.ts'

const runs = isNeeded('campaigns')

describe.runIf(runs)(`the simulation${runs ? '' : ' (skipped: a campaign, which .ci/run runs)'}`, () => {
  test.each([['woocommerce'], ['shopify']] as const)(
    'plays a shop of kind %s the same way each time',
    async (store) => {
      const [once, again] = [await play(4, { store }), await play(4, { store })]
      expect(once).toMatchObject({ store, broken: [], stuck: 0, duplicateFulfilments: 0 })
      expect(again.digest).toBe(once.digest)
    },
  )
})
