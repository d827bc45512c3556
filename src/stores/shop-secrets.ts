/** What shops sign their deliveries with, and for how long an earlier secret counts. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { Database } from '../storage/database.ts'
import { jsonSetting } from '../storage/settings.ts'
import type { StoreVerification } from './store.ts'
import type { ShopCredentials } from './store-kind.ts'

/** Matches 32 bytes in canonical base64. Another text that decodes to the same bytes does not match. */
const CANONICAL_MAC = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/

/**
 * Checks a delivery whose header carries the HMAC-SHA256 of its raw body in base64. The other headers are not signed, so the
 * signature serves as the id of the delivery.
 *
 * @param signatures the values of the header, which must have exactly one
 * @param secrets the secrets that may have made the signature
 */
export function verifyBodyMac(
  signatures: readonly string[],
  body: Buffer,
  secrets: readonly string[],
): StoreVerification {
  const [text] = signatures
  if (text === undefined) return { outcome: 'not_authentic', reason: 'no_signature' }
  if (signatures.length > 1 || !CANONICAL_MAC.test(text)) {
    return { outcome: 'not_authentic', reason: 'malformed_signature' }
  }
  const mac = Buffer.from(text, 'base64')
  const isOurs = secrets.some((secret) => timingSafeEqual(mac, createHmac('sha256', secret).update(body).digest()))
  if (!isOurs) return { outcome: 'not_authentic', reason: 'wrong_signature' }
  return { outcome: 'authentic', deliveryId: mac.toString('hex'), mac }
}

type Seen = Record<string, { digest: string; since: number }>

const seenSecrets = jsonSetting<Seen>('earlier_secrets')

/**
 * Stores since when the `previousSecret` of each shop is known: it stays valid for an hour, which no restart prolongs.
 *
 * @returns those instants, epoch ms, by the id of the store
 */
export async function earlierSecretsSince(
  { db, now }: { db: Database; now: () => number },
  stores: readonly { id: string; credentials: ShopCredentials | undefined }[],
): Promise<Map<string, number>> {
  const before = (await seenSecrets.read(db)) ?? {}
  const after: Seen = {}
  for (const { id, credentials } of stores) {
    if (!credentials?.previousSecret) continue
    const pair = [credentials.secret, credentials.previousSecret].map((one) => one.reveal()).join(':')
    const digest = createHash('sha256').update(pair).digest('base64url')
    const known = before[id]
    after[id] = known?.digest === digest ? known : { digest, since: now() }
  }
  if (JSON.stringify(after) !== JSON.stringify(before)) await db.commit([seenSecrets.put(after, now())])
  return new Map(Object.entries(after).map(([id, { since }]) => [id, since]))
}
