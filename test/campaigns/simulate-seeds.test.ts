/**
 * Seeds that were wrong once, and one with a shop of each kind, which repeats too: so what it found can be looked at again. They take
 * minutes on a busy machine.
 */
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

  test.each([
    [2494, 'a backup from under a clock that was two days ahead'],
    [2395, 'a list with more rows on a page than were asked for'],
    [2285, 'a restore under a clock that was two days ahead and is put back'],
    [4229, 'an offer that was marked gone under such a clock and is listed again'],
  ])('keeps its promises in seed %i: %s', async (seed) => {
    const { doubleCharges, orphanCharges, stuck, broken } = await play(seed, { store: 'backend' })
    expect({ doubleCharges, orphanCharges, stuck, broken }).toEqual({
      doubleCharges: 0,
      orphanCharges: 0,
      stuck: 0,
      broken: [],
    })
  })

  test('excuses in seed 888200302 what was sent again, because the list showed the order ten minutes late and a restore did not know it', async () => {
    const { broken, beyondEntitlement, doubleCharges, excused } = await play(888_200_302)
    expect({ broken, beyondEntitlement, doubleCharges }).toEqual({ broken: [], beyondEntitlement: 0, doubleCharges: 0 })
    expect(excused).toEqual([expect.stringMatching(/^q1\.sim-ab12cd34\.20\.5\.1\.1 was sent .* after 10 minutes/)])
  })
})
