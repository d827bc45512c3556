/** A shop whose merchant changes orders between backup and loss, and what was bought for its customers after restores. */
import { expect } from 'vitest'
import { currentFreeze } from '../../../src/storage/freezes.ts'
import { doubleChargesIn, standingCharges } from '../../support/charges.ts'
import { orderOf } from '../../support/references.ts'
import { openRestoredShop } from '../../support/restored-shop.ts'
import { seeded } from '../../support/seeded.ts'
import { type Chance, createChance, cutLists, dialectOf, supplierOf } from './campaign.ts'
import { type Figures, noFigures } from './figures.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** Until what was paid is bought, whatever fault came between. */
const REST = 40 * MINUTE

type Shop = Awaited<ReturnType<typeof openRestoredShop>>

export async function changesCampaign(options: {
  seed: number
  restores: number
  figures?: Figures
}): Promise<Figures> {
  const { seed, restores, figures = noFigures() } = options
  const chance = createChance(seed)
  const suppliers = { dialect: dialectOf(seed), sandboxDialect: supplierOf(seed) }
  const shop = await openRestoredShop({ delayMinutes: 5, random: seeded(seed + 1_000_000), ...suppliers })
  cutLists(shop, seed)
  const references: string[] = []
  for (let restore = 0; restore < restores; restore += 1) {
    const made = shop.backups.length
    // One grows once it is bought, of the other one a unit is refunded before that.
    const [grows, shrinks] = [shop.buys(1), shop.buys(3)]
    references.push(grows, shrinks)
    await shop.pass(3 * MINUTE)
    const middle = shop.backups.length
    shop.refundsUnits(shrinks, 0, 1)
    await shop.pass(8 * MINUTE)
    shop.raises(grows, 0, 2)
    for (let step = 0; step < 6; step += 1) {
      if (await change(shop, chance, references)) figures.changed += 1
    }
    figures.changed += 2
    figures.backups += shop.backups.length - made
    // The state right before the two changes, or any other.
    const bytes = chance.next() < 0.4 ? shop.backups[middle - 1] : chance.pick(shop.backups.slice(made))
    shop.backups.length = 0
    const before = unitsBought(shop)
    shop.app.move(chance.pick([MINUTE, 2 * HOUR, 30 * HOUR]))
    await shop.restore(bytes as Buffer)
    figures.restores += 1
    await shop.pass(REST)
    const found = await judge(shop, references, before, figures)
    expect(found, `seed ${seed}, restore ${restore + 1}`).toEqual(NO_FAULT)
  }
  figures.charges += shop.app.sandbox.world.report().charges.length
  return figures
}

/** One thing that happens in the shop or at the supplier. @returns whether an order changed */
async function change(shop: Shop, chance: Chance, references: string[]): Promise<boolean> {
  const dice = chance.next()
  const reference = chance.pick(references)
  const units = entitled(shop, reference)
  if (dice < 0.25) shop.raises(reference, 0, units + chance.whole(1, 2))
  else if (dice < 0.5 && units > 1) shop.refundsUnits(reference, 0, 1)
  else if (dice < 0.7) references.push(shop.buys(chance.whole(1, 3)))
  else if (dice < 0.85) {
    shop.app.sandbox.faults.add({ fault: chance.pick(['answer-lost', 'error-after', 'rate-limit'] as const), times: 1 })
  }
  await shop.pass(chance.pick([1, 3, 8]) * MINUTE)
  return dice < 0.25 || (dice < 0.5 && units > 1)
}

/** Units of its one line that the customer has paid for now. */
const entitled = ({ shop }: Shop, reference: string): number =>
  shop.orders.get(reference)?.lines[0]?.currentQuantity ?? 0

/** By order, the units whose charge stands at the supplier. */
function unitsBought({ app }: Shop): Map<string, number> {
  const { world } = app.sandbox
  const standing = new Set(standingCharges(world.report()).map(({ orderId }) => orderId))
  const bought = new Map<string, number>()
  for (const { id, externalOrderId, quantity } of world.orders.known(10_000)) {
    if (!standing.has(id)) continue
    const order = orderOf(externalOrderId ?? '')
    bought.set(order, (bought.get(order) ?? 0) + quantity)
  }
  return bought
}

interface Found {
  /** Parts for which more than one charge stands. */
  twice: string[]
  /** Orders for which more units are bought than were before and than are paid for, or fewer than that. */
  units: string[]
  /** Orders whose customers lack keys. */
  lacking: string[]
  /** Why buying is on hold. */
  hold: string | undefined
}

const NO_FAULT: Found = { twice: [], units: [], lacking: [], hold: undefined }

/** What the supplier's ledger and the shop's own orders say. */
async function judge(shop: Shop, references: string[], before: Map<string, number>, figures: Figures): Promise<Found> {
  const { charges, refunds } = shop.app.sandbox.world.report()
  const twice = doubleChargesIn(standingCharges({ charges, refunds }), new Set()).map(({ part }) => part)
  figures.doubleCharges += twice.length
  const after = unitsBought(shop)
  const units = references.flatMap((reference) => {
    const [bought, paid] = [after.get(reference) ?? 0, entitled(shop, reference)]
    const meant = Math.max(before.get(reference) ?? 0, paid)
    return bought === meant ? [] : [`${reference}: ${bought} units are bought, ${meant} are meant`]
  })
  const lacking = references.filter((reference) => shop.keysIn(reference).length < entitled(shop, reference))
  return { twice, units, lacking, hold: (await currentFreeze(shop.app.db))?.reason }
}
