import type { Context } from '../context.ts'
import { messageOf } from '../errors.ts'
import { detectSignature } from '../fitting/detect.ts'
import { need } from '../storage/database.ts'
import {
  type CaptureWindow,
  captureById,
  captureWindow,
  deleteCaptures,
  insertCapture,
  listCaptures,
} from '../storage/deliveries.ts'
import { audited, insertAudit } from '../storage/evidence.ts'
import { allWebhooks } from '../storage/webhooks.ts'
import type { Inbox, Receipt, ReceivedRequest } from './receive.ts'
import { isSentByTest, openSecret } from './sources.ts'

/** Keeps a few refused deliveries for a person who adjusts a dialect to a supplier. Nothing else reads these deliveries. */
export type Captures = ReturnType<typeof createCaptures>

/** How long a capture is open: long enough for a supplier to try again, short enough that people do not forget the capture. */
const OPEN_MS = 15 * 60_000

/** How long deliveries are kept after the capture has closed, so that people can also look at a delivery that came at its end. */
const KEPT_MS = 15 * 60_000

/** One delivery shows the layout; ten show whether all have the same layout. Ten bodies of 256 KiB are 2.5 MiB. */
const CAPTURES_MAX = 10

export function createCaptures(context: Pick<Context, 'db' | 'vault' | 'now' | 'newId' | 'log'>) {
  const { db, vault, now, newId, log } = context
  /** The stored window, but with its `left` already reduced by the deliveries that this process has taken since the last read. */
  let window: CaptureWindow | undefined
  /** Path, reason and body of each delivery that this process has taken. A repeated delivery is not taken again. */
  let taken: string[] = []
  let isFirst = true

  /** Returns the window while it can take another delivery. */
  const taking = (): CaptureWindow | undefined =>
    window !== undefined && window.left > 0 && now() < window.closesAt ? window : undefined

  async function keep(receipt: Promise<Receipt>, { path, headers, body }: ReceivedRequest): Promise<void> {
    const { outcome, ...rest } = await receipt
    const reason = 'reason' in rest ? rest.reason : outcome
    if ((outcome !== 'not_authentic' && outcome !== 'stale') || isSentByTest(headers)) return
    const open = taking()
    const same = `${path} ${reason} ${vault.bodyHmac(body).toString('hex')}`
    if (!open || taken.includes(same)) return
    taken.push(same)
    open.left -= 1
    const id = newId()
    const content = JSON.stringify({ headers, body: body.toString('base64') })
    const { ciphertext, keyId } = vault.seal({ table: 'captures', row: id }, content)
    await db.commit([insertCapture({ id, path, reason, receivedAt: now(), ciphertext, keyId })])
  }

  return {
    /** Records refused deliveries from now on. Deletes the deliveries of an earlier capture. */
    start: async (actor: string): Promise<CaptureWindow> => {
      const at = now()
      const opened = { closesAt: at + OPEN_MS, keptUntil: at + OPEN_MS + KEPT_MS, left: CAPTURES_MAX }
      const audit = insertAudit({ id: newId(), at, actor, action: 'capture.start', subject: 'webhooks' })
      await db.commit([deleteCaptures(), captureWindow.put(opened, at), audit])
      window = opened
      taken = []
      return { ...opened }
    },
    /** Returns the open capture; undefined when no capture is open. */
    open: () => (window && now() < window.closesAt ? { ...window } : undefined),
    list: () => db.query(listCaptures()),
    /** Shows a delivery as it came, with `body` in base64, and records this in the audit. @throws Failure `not_found` */
    show: async (id: string, actor: string) => {
      const row = await need(db, captureById(id), 'captured delivery', id)
      await db.commit([audited({ newId, now }, actor, 'capture.reveal', id)])
      const text = vault.open({ table: 'captures', row: id }, row.ciphertext, row.keyId).toString('utf8')
      const { headers, body } = JSON.parse(text) as { headers: Record<string, string[]>; body: string }
      const delivery = { headers, body: Buffer.from(body, 'base64') }
      const found = (await db.query(allWebhooks())).map((held) => detectSignature(delivery, openSecret(vault, held)))
      // The signature setting with which the delivery verifies under one of our secrets; null when no secret fits.
      const signature = found.find((one) => one.fits)?.signature ?? null
      return { id, path: row.path, reason: row.reason, receivedAt: row.receivedAt, headers, body, signature }
    },
    /** Wraps `receive` and records refused deliveries while a capture is open. */
    watch:
      (receive: Inbox['receive']): Inbox['receive'] =>
      (request) => {
        const receipt = receive(request)
        // The answer to the sender does not wait until the delivery is kept, and is the same if keeping fails.
        if (window !== undefined) {
          keep(receipt, request).catch((error: unknown) => log.warn('capture.lost', { error: messageOf(error) }))
        }
        return receipt
      },
    /** Wraps `judge`, so that every body is read while a capture is open. `receive` then refuses and records a bad delivery. */
    watchHead:
      (judge: Inbox['judge']): Inbox['judge'] =>
      (head) =>
        taking() ? undefined : judge(head),
    /** Reads the window that another process may have opened, and deletes deliveries that have been kept for long enough. */
    refresh: async () => {
      const stored = await captureWindow.read(db)
      if (stored === undefined) {
        window = undefined
        // Captures of an earlier version have no window.
        if (isFirst) await db.commit([deleteCaptures()])
      } else if (now() >= stored.keptUntil) {
        window = undefined
        await db.commit([captureWindow.clear(stored), deleteCaptures()])
      } else if (now() < stored.closesAt) {
        const left = stored.left - (await db.query(listCaptures())).length
        // Deliveries that this process has taken may not be stored yet, so the smaller number is right.
        const own = window?.closesAt === stored.closesAt ? window.left : left
        window = { ...stored, left: Math.min(left, own) }
      }
      isFirst = false
    },
  }
}
