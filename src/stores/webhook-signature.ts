import { createHmac } from 'node:crypto'

/**
 * The headers that let a store verify a callback with any Standard Webhooks library.
 *
 * @param secret key of the HMAC, 24 to 64 bytes
 * @param id the same at every attempt: stores recognise repeats by it
 * @param at of this attempt, epoch milliseconds; receivers refuse what is older than a few minutes
 * @param body the exact text that is sent
 * @see the Standard Webhooks specification: HMAC-SHA256 over `id.timestamp.body`, in base64, after `v1,`
 */
export function signatureHeaders(secret: Buffer, { id, at, body }: { id: string; at: number; body: string }) {
  const timestamp = String(Math.floor(at / 1000))
  const mac = createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${mac}` }
}

/** A secret as people hand it to a Standard Webhooks library. */
export const secretText = (secret: Buffer): string => `whsec_${secret.toString('base64')}`
