/** The pages on which customers open the keys of their orders: making a page, finding it by its token, and opening its keys. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { Context } from '../context.ts'
import { keyPage, type PageKey } from '../domain/key-page.ts'
import { pooledRandomBytes } from '../ids.ts'
import { openKey } from '../ordering/advance.ts'
import { standingOf } from '../ordering/order-view.ts'
import { type Claim, claimsOfOrder } from '../storage/claims.ts'
import { type Change, first, retryStale } from '../storage/database.ts'
import { assertRevision, entitlementLinesOf, entitlementOfOrder } from '../storage/entitlements.ts'
import {
  assertPageOpen,
  insertKeyPage,
  insertKeyReveal,
  keyPageByToken,
  keyPageOfOrder,
  revealsOfOrder,
} from '../storage/key-pages.ts'
import type { LicenceKey } from '../storage/licence-keys.ts'
import { offersByProduct } from '../storage/offers.ts'
import { proveStore } from '../storage/stores.ts'

export type Pages = Pick<Context, 'db' | 'vault' | 'now' | 'newId'> & {
  /** For how many days after its order a page shows keys. */
  pageDays: number
  /** Whether the customers of a store get links to their pages, so that a key that is opened there proves the store. */
  sendsLinks: (store: string) => boolean
}

/** A page as its reader sees it now. */
export type OpenedPage = NonNullable<Awaited<ReturnType<typeof read>>>['page']

export type SealedKey = PageKey & Pick<LicenceKey, 'ciphertext' | 'keyId' | 'type'>

const DAY = 24 * 3_600_000
const TOKEN_BYTES = 32
const TOKEN = /^[A-Za-z0-9_-]{43}$/

const placeOf = (orderId: string) => ({ table: 'key_pages', row: orderId })
const digestOf = (token: string): Buffer => createHash('sha256').update(token).digest()

export function newPage({ vault, now }: Pick<Pages, 'vault' | 'now'>, orderId: string): Change {
  const token = pooledRandomBytes(TOKEN_BYTES).toString('base64url')
  return insertKeyPage({
    orderId,
    tokenDigest: digestOf(token),
    createdAt: now(),
    ...vault.seal(placeOf(orderId), token),
  })
}

/** Returns the path of an order's page; undefined for an order without a page. A page that is withdrawn says so at its path. */
export async function pathOfOrder(
  { db, vault }: Pick<Pages, 'db' | 'vault'>,
  orderId: string,
): Promise<string | undefined> {
  const row = await first(db, keyPageOfOrder(orderId))
  if (!row) return undefined
  return `/k/${vault.open(placeOf(orderId), row.ciphertext, row.keyId).toString('utf8')}`
}

/** Returns the path of an order's page. An order that was taken before there were such pages gets its page now. */
export async function pathOfPage(pages: Pick<Pages, 'db' | 'vault' | 'now'>, orderId: string): Promise<string> {
  const known = await pathOfOrder(pages, orderId)
  if (known !== undefined) return known
  await pages.db.commit([newPage(pages, orderId)])
  const made = await pathOfOrder(pages, orderId)
  assert(made !== undefined, 'the page was stored')
  return made
}

/** Returns the page of a token; undefined for a token that no page has. */
export const pageOfToken = async (pages: Pages, token: string) => (await read(pages, token))?.page

async function read({ db, now, pageDays }: Pages, token: string) {
  const found = TOKEN.test(token) ? await first(db, keyPageByToken(digestOf(token))) : undefined
  if (!found) return undefined
  const { orderId, store, reference, receivedAt, withdrawnAt } = found
  /** By which the customer knows the order. */
  const number = found.number ?? reference
  const [standing, entitlement, units, reveals, claims] = await Promise.all([
    standingOf({ db }, { id: orderId }),
    first(db, entitlementOfOrder(orderId)),
    db.query(entitlementLinesOf(store, reference)),
    db.query(revealsOfOrder(orderId)),
    db.query(claimsOfOrder(orderId)),
  ])
  const products = standing.lines.flatMap(({ line }) => line.productId ?? [])
  const known = products.length === 0 ? [] : await db.query(offersByProduct(products))
  const byProduct = new Map(known.map((offer) => [offer.productId, offer]))
  const offers = new Map(standing.lines.map(({ line }) => [line.line, byProduct.get(line.productId ?? '')]))
  const granted = new Map(units.map((one) => [one.line, one.granted]))
  const revealsByKey = Map.groupBy(reveals, nameOf)
  const replaced = new Map(claims.flatMap((claim) => (claim.part === null ? [] : [[nameOf(claim), claim]])))
  const keysBy = Map.groupBy(
    standing.keys.filter((key) => isAtStore(key, revealsByKey.has(nameOf(key)), now())),
    ({ purchaseId }) => purchaseId,
  )
  const closesAt = receivedAt + pageDays * DAY
  const lines = standing.lines
    .filter(({ state }) => state !== 'not_ours')
    .map(({ line, purchases, state, wanted }) => ({
      id: line.line,
      name: offers.get(line.line)?.name ?? line.sku,
      state,
      wanted,
      entitled: granted.get(line.line) ?? 0,
      keys: purchases.flatMap(({ id, decidedRevision, claim: replaces }) =>
        (keysBy.get(id) ?? []).map(({ purchaseId, ordinal, ciphertext, keyId, type, begunAt, handedOverAt }) => ({
          purchaseId,
          ordinal,
          ciphertext,
          keyId,
          type,
          leftAt: begunAt ?? handedOverAt ?? 0,
          revealedAt: revealsByKey.get(nameOf({ purchaseId, ordinal }))?.[0]?.at ?? null,
          isDecided: decidedRevision !== null && decidedRevision === entitlement?.revision,
          claimed: claimedBy(replaced.get(nameOf({ purchaseId, ordinal }))),
          replaces,
        })),
      ),
    }))
  const shown = keyPage<SealedKey>({ standing: entitlement?.standing ?? 'unpaid', withdrawnAt, closesAt, lines }, now())
  return { entitlement, revealsByKey, page: { orderId, store, reference, number, closesAt, offers, ...shown } }
}

export const nameOf = ({ purchaseId, ordinal }: { purchaseId: string; ordinal: number }) => `${purchaseId} ${ordinal}`

/**
 * Whether a page shows a key: the store has it, or may have it. A store that is being asked may still refuse the key, and the key
 * then counts as one that never left. A key that was opened stays.
 */
function isAtStore(key: Pick<LicenceKey, 'begunAt' | 'handedOverAt'>, isOpened: boolean, now: number): boolean {
  if (key.handedOverAt !== null) return true
  return key.begunAt !== null && (isOpened || now - key.begunAt >= ANSWERED_MS)
}
/** A store of every kind has acted and answered by then: `pushMs` and `settleMs` are at most three and a half minutes together. */
const ANSWERED_MS = 5 * 60_000

const claimedBy = (claim: Claim | undefined): PageKey['claimed'] =>
  claim ? { number: claim.number, at: claim.endedAt ?? 0 } : null

/**
 * Opens the keys of a line for the customer who clicked. Each key that is shown is evidence, stored before it is shown.
 *
 * @param network the network of the customer, truncated
 * @returns the page afterwards, with the keys of the line by their purchase and ordinal; undefined for an unknown token
 */
export function openLine(pages: Pages, token: string, lineId: string, network: string) {
  const { db, now, newId, sendsLinks } = pages
  // A reading of the order that comes between the decision and its evidence makes the commit stale: then it is decided again.
  return retryStale(STALE_MAX, async () => {
    const found = await read(pages, token)
    if (!found) return undefined
    const { page, entitlement, revealsByKey } = found
    const line = page.closed === null ? page.lines.find(({ id }) => id === lineId) : undefined
    if (!line || !entitlement || line.keys.length === 0) return { page, keys: new Map<SealedKey, string>() }
    const { orderId, store, reference: order } = page
    const at = now()
    const news = line.keys.filter((key) => {
      const known = revealsByKey.get(nameOf(key)) ?? []
      return known.length < REVEALS_MAX && !known.some((one) => one.network === network && at - one.at < AGAIN_MS)
    })
    if (news.length > 0) {
      await db.commit([
        assertRevision(entitlement),
        assertPageOpen(orderId),
        ...news.map(({ purchaseId, ordinal }) =>
          insertKeyReveal({ id: newId(), orderId, purchaseId, ordinal, at, network }),
        ),
        ...(sendsLinks(store) ? [proveStore(store, { at, by: 'page', order })] : []),
      ])
    }
    for (const key of line.keys) key.revealedAt ??= at
    return { page, keys: new Map(line.keys.map((key) => [key, openKey(pages, key)])) }
  })
}

const STALE_MAX = 5
/** A form that is sent again and again is one piece of evidence in this time. */
const AGAIN_MS = 60_000
/** The most openings of a key that are stored, because each person with the link can click without end. */
const REVEALS_MAX = 20
