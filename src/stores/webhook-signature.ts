import { createHmac } from 'node:crypto'

/**
 * The headers that let a store verify a callback with any Standard Webhooks library.
 *
 * @param secrets keys of the HMAC, 24 to 64 bytes each: one signature for each, so that a store that has any of them accepts it
 * @param id the same at every attempt: stores recognise repeats by it
 * @param at of this attempt, epoch milliseconds; receivers refuse what is older than a few minutes
 * @param body the exact text that is sent
 * @see the Standard Webhooks specification: HMAC-SHA256 over `id.timestamp.body`, in base64, after `v1,`; several are separated by a space
 */
export function signatureHeaders(
  secrets: readonly Buffer[],
  { id, at, body }: { id: string; at: number; body: string },
) {
  const timestamp = String(Math.floor(at / 1000))
  const signatures = secrets.map((secret) => {
    const mac = createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')
    return `v1,${mac}`
  })
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}

/** A secret as people hand it to a Standard Webhooks library. */
export const secretText = (secret: Buffer): string => `whsec_${secret.toString('base64')}`
