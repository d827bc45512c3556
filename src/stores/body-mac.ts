import { createHmac, timingSafeEqual } from 'node:crypto'
import type { StoreVerification } from './store.ts'

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
