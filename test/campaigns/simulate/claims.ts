/** Keys that customers say do not work, and what the person on duty gives in their place: at any instant, sometimes twice at once. */
import { messageOf } from '../../../src/errors.ts'
import { adoptKey, buyAgain, raiseClaim, refuseClaim } from '../../../src/ordering/claims.ts'
import { listClaims } from '../../../src/storage/claims.ts'
import { lineOf } from '../../support/references.ts'
import type { createBook } from './operator.ts'
import type { SimProcess } from './process.ts'
import type { World } from './world.ts'

export interface Replacements {
  /** Lines, as `order/line`: once for each replacement that was decided. */
  lines: string[]
  /** Keys that the supplier gave by hand, and their lines. */
  given: Map<string, string>
  look: (process: SimProcess) => Promise<void>
}

/** @param isOver says whether a replacement that is decided now may not be over when the seed is */
export function replacing(world: World, book: ReturnType<typeof createBook>, isOver: () => boolean): Replacements {
  const chance = world.chance.named('claims')
  const { host, log } = world
  const lines: string[] = []
  const given = new Map<string, string>()
  const isClaiming = !world.shop && chance.odds(0.4)
  let number = 0

  async function attempt(what: string, act: () => Promise<void>): Promise<void> {
    try {
      await act()
      log.add('operator', what)
    } catch (error) {
      log.add('operator', 'refused', { type: what, error: messageOf(error) })
    }
  }

  async function decide(process: SimProcess, claim: number, line: string): Promise<void> {
    const { ordering } = process
    const replaced = () => void lines.push(line)
    const buys = () =>
      attempt('bought in place', () => book.ask(process, replaced, (actor) => buyAgain(ordering, claim, actor)))
    const adopts = () => {
      number += 1
      const key = `GIVEN-${number}`
      const note = () => {
        replaced()
        given.set(key, line)
      }
      return attempt('adopted', () => book.ask(process, note, (actor) => adoptKey(ordering, claim, key, actor)))
    }
    const refuses = () => attempt('refused a claim', () => refuseClaim(ordering, claim, 'operator', 'it works'))
    const first = chance.pick([buys, buys, adopts, refuses])
    const second = chance.pick([buys, adopts])
    if (chance.odds(0.3)) await Promise.all([first(), second()])
    else await first()
    if (chance.odds(0.3)) await second()
  }

  return {
    lines,
    given,
    look: async (process) => {
      if (!isClaiming || isOver()) return
      const { ordering } = process
      const had = host.connection().prepare<[], HadKey>(HAD).all()
      if (had.length > 0 && chance.odds(0.4)) {
        const { id, ordinal } = chance.pick(had)
        const claim = { ordinal, note: 'it does not work', days: 3 }
        await attempt('claim raised', async () => void (await raiseClaim(ordering, id, claim, 'operator')))
      }
      for (const claim of await ordering.db.query(listClaims({ isOpen: 1, limit: 20 }))) {
        const reference = had.find(({ id }) => id === claim.purchaseId)?.reference
        if (reference !== undefined && chance.odds(0.5)) await decide(process, claim.number, lineOf(reference))
      }
    },
  }
}

interface HadKey {
  id: string
  ordinal: number
  reference: string
}

const HAD = `select purchases.id, ordinal, external_order_id as reference from licence_keys
  join purchases on purchases.id = purchase_id where handed_over_at is not null order by purchases.id, ordinal`

/** Claims in whose place more than one part was planned. */
export function plannedTwice({ host }: World): string[] {
  const twice = host.connection().prepare<[], { claim: number; parts: number }>(PLANNED).all()
  return twice.map(({ claim, parts }) => `claim ${claim}: ${parts} parts were planned in place of one key`)
}

const PLANNED = `select claim, count(distinct line_id || ' ' || part) as parts from purchases where claim is not null
  group by claim having parts > 1`
