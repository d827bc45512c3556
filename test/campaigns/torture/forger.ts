/**
 * Another sender that can reach the address for deliveries: sends what was never signed, signed by another, altered or old.
 *
 * Nothing of it may be obeyed. A genuine delivery that is sent once more may be acknowledged, since it was; it must be
 * the same delivery for the service, under any id.
 */
import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { request } from 'undici'
import type { Chance } from './chance.ts'

interface Captured {
  headers: Record<string, string>
  body: string
}

export interface Forgeries {
  /** What was sent, by kind. */
  sent: Record<string, number>
  /** Forgeries that were acknowledged; none may be. */
  obeyed: string[]
}

/** Genuine deliveries that passed by, the newest few. */
const CAPTURED_MAX = 50
const DEADLINE_MS = 3_000

/** Keeps deliveries that pass by whole, as a proxy in the middle could. */
export function createTap(): { seen: Captured[]; tap: (head: Buffer) => void } {
  const seen: Captured[] = []
  return {
    seen,
    tap: (head) => {
      const [top = '', body = ''] = head.toString('utf8').split('\r\n\r\n', 2)
      const [first = '', ...lines] = top.split('\r\n')
      const headers = Object.fromEntries(
        lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
      )
      if (!first.startsWith('POST /webhooks/') || Number(headers['content-length']) !== Buffer.byteLength(body)) return
      seen.push({ headers, body })
      if (seen.length > CAPTURED_MAX) seen.shift()
    },
  }
}

/** The names of the headers are the dialect's. */
export interface SignatureHeaders {
  signature: string
  timestamp: string
  deliveryId: string
}

export async function forge(
  url: string,
  names: SignatureHeaders,
  seen: Captured[],
  {
    chance,
    everyMs,
    forgeries,
    stopped,
  }: { chance: Chance; everyMs: number; forgeries: Forgeries; stopped: () => boolean },
): Promise<void> {
  while (!stopped()) {
    await sleep(chance.between(1, 2 * everyMs))
    if (seen.length === 0) continue
    const kind = chance.weighted(KINDS)
    const status = await send(url, alter(kind, chance.pick(seen), names, chance)).catch(() => 0)
    forgeries.sent[kind] = (forgeries.sent[kind] ?? 0) + 1
    if (status >= 200 && status < 300 && !kind.startsWith('replayed')) forgeries.obeyed.push(kind)
  }
}

/** Begins the ids under which genuine deliveries are replayed. */
const FORGED_ID = 'dlv_forged'

/** Whether a delivery was stored under an id of the forger: it is a genuine one whose repeat came first. */
export const isForgedId = (deliveryId: string): boolean => deliveryId.startsWith(FORGED_ID)

const KINDS = {
  'replayed as it was': 3,
  'replayed under another id': 3,
  'without a signature': 1,
  'signed with another secret': 2,
  'with another body': 2,
  'with another timestamp': 2,
  'with a shortened signature': 1,
}

function alter(kind: keyof typeof KINDS, genuine: Captured, names: SignatureHeaders, chance: Chance): Captured {
  const { headers, body } = genuine
  const timestamp = headers[names.timestamp] ?? ''
  switch (kind) {
    case 'replayed as it was':
      return genuine
    case 'replayed under another id':
      return { headers: { ...headers, [names.deliveryId]: `${FORGED_ID}${chance.between(0, 1_000_000)}` }, body }
    case 'without a signature': {
      const { [names.signature]: _, ...rest } = headers
      return { headers: rest, body }
    }
    case 'signed with another secret': {
      const mac = createHmac('sha256', 'whsec_of_somebody_else').update(`${timestamp}.${body}`).digest('hex')
      return { headers: { ...headers, [names.signature]: mac }, body }
    }
    case 'with another body':
      return { headers, body: body.replace(/[0-9a-f](?=[^0-9a-f]*$)/, 'x') }
    case 'with another timestamp':
      return { headers: { ...headers, [names.timestamp]: String(Number(timestamp) + chance.between(1, 60)) }, body }
    case 'with a shortened signature':
      return { headers: { ...headers, [names.signature]: (headers[names.signature] ?? '').slice(0, 32) }, body }
  }
}

async function send(url: string, { headers, body }: Captured): Promise<number> {
  const { host: _host, connection: _connection, 'content-length': _length, ...rest } = headers
  const answer = await request(url, {
    method: 'POST',
    body,
    headers: { ...rest, connection: 'close' },
    signal: AbortSignal.timeout(DEADLINE_MS),
  })
  await answer.body.dump()
  return answer.statusCode
}
