/**
 * Keys that customers say do not work: the person on duty raises a claim about some that were delivered, and decides each, now and
 * then twice at once. What the person does goes through the network that is damaged, and is asked again where no answer came.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Chance } from './chance.ts'
import { type ClaimEntry, type Duty, type PurchaseEntry, Refusal } from './duty.ts'

export type ClaimOutcome = 'bought' | 'adopted' | 'refused'

/** A decision that was asked for; epoch milliseconds. */
export interface ClaimDecision {
  claim: number
  /** The key that the claim is about. */
  key: string
  outcome: ClaimOutcome
  at: number
  /** When it was carried out at the latest. */
  until: number
  /** `refused`: the service said that it did nothing; undefined where no answer came. */
  answer?: 'done' | 'refused'
}

export interface Claimed {
  decisions: ClaimDecision[]
  /** Keys about which no claim can be raised, for the purchase brought fewer. */
  leftAlone: Set<string>
  /** Purchase -> our reference of it. */
  references: Map<string, string>
}

export const noClaims = (): Claimed => ({ decisions: [], leftAlone: new Set(), references: new Map() })

export interface ClaimDesk {
  /** What the service shows. */
  duty: Duty
  /** Where the person asks for something. */
  claimDuty: Duty
}

/** One delivered key in so many gets a claim. */
const SHARE = 0.15
const OUTCOMES: readonly ClaimOutcome[] = ['bought', 'bought', 'adopted', 'refused']
const NOTE = 'the game says that the key was redeemed before'
const REASON = 'the supplier was asked about the key'
const TRIES = 4
const AGAIN_MS = [100, 600] as const
/** A decision of which the answer is lost is carried out within this time. */
const CARRIED_OUT_MS = 30_000

/** A key by its place at the supplier, which a restore does not change. @param ordinal from 1 */
export const placeOf = (externalOrderId: string, ordinal: number): string =>
  `${externalOrderId.split('.').slice(2).join('.')}.${ordinal}`

/** The key that the supplier gives by hand in place of this one, made up. */
export const givenFor = (place: string): string => `GIVEN-${place.toUpperCase().replaceAll('.', '-')}`

/** One look at all keys and claims. What fails is looked at again the next time. */
export async function lookAtClaims(
  desk: ClaimDesk,
  claimed: Claimed,
  { chance, mayRaise }: { chance: Chance; mayRaise: boolean },
): Promise<void> {
  const delivered = await desk.duty.all<PurchaseEntry>('/purchases?state=fulfilled')
  const known = await desk.duty.all<ClaimEntry>('/claims')
  const about = new Set(known.map(({ purchaseId, ordinal }) => `${purchaseId} ${ordinal}`))
  for (const { id, externalOrderId, quantity } of delivered) {
    claimed.references.set(id, externalOrderId)
    for (let ordinal = 1; ordinal <= quantity; ordinal += 1) {
      const place = placeOf(externalOrderId, ordinal)
      const isMeant = mayRaise && !about.has(`${id} ${ordinal}`) && !claimed.leftAlone.has(place)
      if (!isMeant || !chance.fork(place).happens(SHARE)) continue
      const code = await ask(desk, chance, `/purchases/${id}/claims`, { ordinal, note: NOTE })
      if (code === 'not_found' || code === 'no_keys') claimed.leftAlone.add(place)
    }
  }
  for (const claim of known) if (claim.state === 'open') await decide(desk, claimed, claim, chance)
}

async function decide(desk: ClaimDesk, claimed: Claimed, claim: ClaimEntry, chance: Chance): Promise<void> {
  const { number, purchaseId, ordinal } = claim
  const reference =
    claimed.references.get(purchaseId) ??
    (await desk.duty.get<PurchaseEntry>(`/purchases/${purchaseId}`)).externalOrderId
  const place = placeOf(reference, ordinal)
  // The same person decides the same, however often the service forgets it.
  const draws = chance.fork(`${place} decided`)
  const decided = (outcome: ClaimOutcome) => askToDecide(desk, claimed, { claim: number, key: place, outcome }, draws)
  const [first, second] = [draws.pick(OUTCOMES), draws.pick(OUTCOMES)]
  const codes = await Promise.all(draws.happens(0.3) ? [decided(first), decided(second)] : [decided(first)])
  // The customer's order was cancelled, or a key that was bought in its place is there and is handed over by a decision on its review.
  if (codes.some((code) => code === 'order_held' || code === 'bought_already')) await decided('refused')
}

function askToDecide(
  desk: ClaimDesk,
  { decisions }: Claimed,
  asked: Pick<ClaimDecision, 'claim' | 'key' | 'outcome'>,
  chance: Chance,
): Promise<string | undefined> {
  const [step, body] = {
    bought: ['buy-again', { reason: REASON }] as const,
    adopted: ['adopt', { key: givenFor(asked.key), reason: REASON }] as const,
    refused: ['refuse', { reason: REASON }] as const,
  }[asked.outcome]
  return ask(desk, chance, `/claims/${asked.claim}/${step}`, body, () => {
    // Noted before it is asked for: a request whose answer is lost may have been obeyed.
    const noted: ClaimDecision = { ...asked, at: Date.now(), until: Date.now() + CARRIED_OUT_MS }
    decisions.push(noted)
    return (answer) => Object.assign(noted, { answer, until: Date.now() })
  })
}

/** Asks until there is an answer, or until the next look. @returns the code of a refusal */
async function ask(
  { claimDuty }: ClaimDesk,
  chance: Chance,
  route: string,
  body: object,
  note: () => (answer: 'done' | 'refused') => void = () => () => {},
): Promise<string | undefined> {
  for (let tries = 1; tries <= TRIES; tries += 1) {
    const answered = note()
    try {
      await claimDuty.post(route, body)
      answered('done')
      return undefined
    } catch (error) {
      if (error instanceof Refusal) {
        answered('refused')
        return error.code
      }
      await sleep(chance.between(...AGAIN_MS))
    }
  }
  return undefined
}
