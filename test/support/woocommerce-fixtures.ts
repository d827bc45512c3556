/** Exchanges and deliveries that were captured from WooCommerce 11.0.1. */
import { readFileSync } from 'node:fs'

const folder = new URL('../fixtures/woocommerce/', import.meta.url)

/** The answer of a captured exchange, such as `34-order-create-paid`. */
export function capturedAnswer(name: string): { status: number; headers: Record<string, string>; body: unknown } {
  return JSON.parse(readFileSync(new URL(`${name}.json`, folder), 'utf8')).response
}

/** A captured delivery, such as `order.created`: its headers as a server sees them, and the exact bytes. */
export function capturedDelivery(name: string): { headers: Record<string, string[]>; body: Buffer } {
  const { rawHeaders } = JSON.parse(readFileSync(new URL(`hook-${name}.json`, folder), 'utf8')) as {
    rawHeaders: string[]
  }
  const headers: Record<string, string[]> = {}
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const header = rawHeaders[at]?.toLowerCase() ?? ''
    headers[header] = [...(headers[header] ?? []), rawHeaders[at + 1] ?? '']
  }
  return { headers, body: readFileSync(new URL(`hook-${name}.body`, folder)) }
}
