import { createHmac, timingSafeEqual } from 'node:crypto'
import type { StoreVerification } from './store.ts'

/** 32 bytes in base64, in the one way to write them. */
const CANONICAL_MAC = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/

/**
 * Checks a delivery whose header carries the HMAC-SHA256 of its raw body in base64. Its other headers are not signed, so that
 * the signature is its id.
 *
 * @param signatures values of the header, of which there must be one
 * @param secrets of which one must have made it
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
