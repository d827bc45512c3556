/** Whether customers of a store are known to get at their keys: the proof of a store, and the walk along one order of it. */
import { z } from 'zod'
import { counted } from '../../domain/figures.ts'
import { type KeyWay, sendsLinks } from '../../domain/store-update.ts'
import { Failure } from '../../errors.ts'
import type { Ordering } from '../../ordering/context.ts'
import { keysPageOf } from '../../ordering/keys-page.ts'
import { ordersCalled, standingOf } from '../../ordering/order-view.ts'
import { audited } from '../../storage/evidence.ts'
import { countHandedOver } from '../../storage/licence-keys.ts'
import { proveStore, readProofs, type StoreProof } from '../../storage/stores.ts'
import { doubtful, failed, sound } from '../../stores/findings.ts'
import { type ConfiguredStore, kindOf } from '../../stores/kinds.ts'
import type { StoreFinding } from '../../stores/store.ts'
import { at } from './views.ts'

export const Proven = z
  .object({ at, by: z.enum(['page', 'mail']) })
  .nullable()
  .describe(
    'Its customers get links, and a page of keys of its orders was opened; or an operator confirmed the mail of one; null: not yet',
  )
export const proofShape = {
  needsProof: z.boolean().describe('It is a shop, or its customers get a link: it is ready once it is proven'),
  proven: Proven,
}

/** The answer of a backend confirms that it has the keys, so a backend that is given keys needs no further proof. */
export const proofOf = (store: ConfiguredStore, proofs: ReadonlyMap<string, StoreProof>) => ({
  needsProof: kindOf(store).shop !== null || sendsLinks(store),
  proven: proofs.get(store.id) ?? null,
})

/**
 * Stores that a person saw the keys of an order, or their link, in the mail that the store sent.
 *
 * @throws Failure `not_found` for an order that the store does not have here; `conflict`, reason `no_keys`
 */
export async function confirmMail(ordering: Ordering, store: string, order: string, actor: string) {
  const { db, now } = ordering
  const [found] = await ordersCalled(db, store, order)
  if (!found) throw new Failure('not_found', `${store} has no order ${order} here`)
  if ((await db.query(countHandedOver([found.id]))).length === 0) {
    throw new Failure('conflict', 'the store has no key of it yet, so that no mail can bring one', {
      reason: 'no_keys',
    })
  }
  await db.commit([
    proveStore(store, { at: now(), by: 'mail', order: found.reference, actor }),
    audited(ordering, actor, 'store.confirm_mail', store, `order ${found.reference}`),
  ])
  return (await readProofs(db)).get(store) ?? null
}

/** @param order the order that is walked along; undefined: none */
export async function proofFindings(
  { db }: Pick<Ordering, 'db'>,
  store: ConfiguredStore,
  order: string | undefined,
): Promise<StoreFinding[]> {
  const { needsProof, proven } = proofOf(store, await readProofs(db))
  if (!needsProof) return []
  if (proven) return [sound('proof', `by the ${proven.by} of order ${proven.order}, ${instant(proven.at)}`)]
  const fix =
    order === undefined
      ? `Buy something in it yourself, then: quayside stores test ${store.id} --order <its number>.`
      : `It is, once ${sendsLinks(store) ? 'a key of the order is opened on its page, or ' : ''}its mail is confirmed.`
  return [doubtful('proof', 'it is not known that its customers get at their keys', fix)]
}

/** Walks along one order of a store, up to the customer who opens its keys. */
export async function orderFindings(
  { db }: Pick<Ordering, 'db'>,
  { id, deliver = 'keys' }: ConfiguredStore,
  name: string,
): Promise<StoreFinding[]> {
  const [found] = await ordersCalled(db, id, name)
  if (!found) {
    const others = (await ordersCalled(db, undefined, name)).map(({ store }) => ` ${store} has one.`)
    const fix = `Compare the number with quayside orders list. A paid order is taken within minutes.${others.join('')}`
    return [failed('order', `${id} has no order ${name} here`, fix)]
  }
  const { reference } = found
  const [{ lines, keys }, { keysPage, openings }, proofs] = await Promise.all([
    standingOf({ db }, found),
    keysPageOf(db, found.id),
    readProofs(db),
  ])
  const show = `See quayside orders show ${reference} --store ${id}.`
  const ours = lines.filter(({ state }) => state !== 'not_ours')
  const taken = `taken ${instant(found.receivedAt)}; ${ours.length} of ${counted(lines.length, 'line')} matched a listing`
  if (ours.length === 0) return [failed('order', taken, 'Order a product that is one of the listings.')]
  const confirmed = keys.flatMap(({ handedOverAt }) => handedOverAt ?? [])
  const wanted = ours.reduce((sum, line) => sum + line.wanted, 0)
  const count = `the store took ${ours.reduce((sum, line) => sum + line.delivered, 0)} of ${counted(wanted, 'key')}`
  if (confirmed.length === 0) return [sound('order', taken), doubtful('keys', count, show)]
  const last = `${count}, the last one ${instant(Math.max(...confirmed))}`
  const [opened] = openings
  const proof = proofs.get(id)
  const isMailSeen = proof?.by === 'mail' && proof.order === reference
  const unopened =
    deliver === 'keys'
      ? []
      : [doubtful('opened', 'no key was opened yet', 'Open the link in the mail, and press the button of a key.')]
  const look = `Look for the mail. Where it has ${words[deliver]}: quayside stores confirm ${id} --order ${reference}. Where it has not, correct the template of the mail.`
  return [
    sound('order', taken),
    confirmed.length < wanted ? doubtful('keys', last, show) : sound('keys', last),
    linkFinding(deliver, keysPage),
    isMailSeen
      ? sound('mail', `confirmed by ${proof.actor}, ${instant(proof.at)}`)
      : doubtful('mail', 'the mail of a store is not seen here', look),
    ...(opened ? [sound('opened', `${counted(openings.length, 'key')}, the first ${instant(opened.at)}`)] : unopened),
  ]
}

const words: Record<KeyWay, string> = { link: 'the link', keys: 'the keys', both: 'the keys and the link' }

function linkFinding(deliver: KeyWay, page: Awaited<ReturnType<typeof keysPageOf>>['keysPage']): StoreFinding {
  if (deliver === 'keys') return sound('link', 'none: the store itself gives customers the keys')
  if (!page) return failed('link', 'the order has no page of keys', 'Test with an order that is taken now.')
  if (page.withdrawnAt === null) return sound('link', `customers get ${words[deliver]}`)
  return failed('link', `the page was withdrawn ${instant(page.withdrawnAt)}`, 'Test with another order.')
}

const instant = (at: number): string => new Date(at).toISOString()
