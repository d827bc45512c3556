import { z } from 'zod'
import type { LineFulfilled, OrderClosed } from '../../domain/store-update.ts'
import { jsonIn } from '../connection.ts'
import { escaped } from '../shop-catalogue.ts'
import { asRead, CONFIRMED, type Read, refused } from '../shop-client.ts'
import { afterKeys, closingRemarks, remarkMark } from '../shop-hand-over.ts'
import type { FulfilResult, Pushed, PushResult, ResentOrder } from '../store.ts'
import { plainText } from './catalogue.ts'
import { readAs } from './client.ts'
import {
  hasKnownRefunds,
  isCancelled,
  KEYS_META,
  NO_SUCH_ORDER,
  notAnOrder,
  noteWritten,
  type OrderReading,
  type Refunded,
  readRefunds,
  type ShopLine,
  type ShopOrder,
  shopOrder,
  storeOrderOf,
} from './orders.ts'

/** How customers get their keys. */
export interface HandOverSettings {
  /** Keys go by the mail that WooCommerce sends for a completed order, or by a note for each line. */
  by: 'completed_mail' | 'note'
  /** Whether an order is completed once every line of it was handed over. */
  complete: boolean
  /** The name that customers see before their keys. */
  label: string
}

/**
 * The metadata on an order that Quayside has completed. It says how many keys of each line the customer was sent, by the mail of
 * the completed order or by note. It is JSON by the id of the line. Earlier versions wrote the number of all keys.
 */
const COMPLETED_META = '_quayside_completed'

/** The keys of a line that were handed over. `shown`: the text that the mail of a completed order prints; null: no text. */
export interface LineKeys {
  all: string[]
  shown: string | null
}

const isCompletedByUs = ({ meta_data: meta }: ShopOrder): boolean => meta.some(({ key }) => key === COMPLETED_META)

/** Reads the keys that Quayside has put on a line. */
export function lineKeys({ meta_data: meta }: ShopLine, label: string): LineKeys {
  const metaOf = (name: string) => meta.find(({ key }) => key === name)?.value
  const shown = metaOf(label)
  const text = typeof shown === 'string' && shown !== '' ? shown : null
  return { all: keysIn(metaOf(KEYS_META)), shown: text }
}

const keysIn = (value: unknown): string[] => z.array(z.string()).safeParse(jsonIn(String(value))).data ?? []

const hasKey = (text: string | null, key: string): boolean => text !== null && `\n${text}\n`.includes(`\n${key}\n`)

/** Whether a key has characters that WordPress changes in a mail of its own. */
const isFragile = (key: string): boolean => /[%<>&\\]/.test(key)

/**
 * Returns the way by which keys reach the customer.
 *
 * The mail of a completed order is sent once, so keys that come later go by note. All keys of an order that Quayside will not
 * complete go by note too, so that no key comes by two mails.
 */
export function wayOf(
  order: Pick<ShopOrder, 'status'>,
  keys: readonly string[],
  { by, complete }: HandOverSettings,
): 'completed_mail' | 'note' {
  if (by === 'note' || !complete || order.status === 'completed') return 'note'
  return keys.some(isFragile) ? 'note' : 'completed_mail'
}

/** Whether all units of an order, except refunded units, were handed over, so that no missing key prevents its completion. */
export const isHandedOver = (order: ShopOrder, refunded: Refunded, label: string): boolean =>
  order.line_items.every(
    (line) => lineKeys(line, label).all.length >= line.quantity - (refunded.ofLine.get(String(line.id)) ?? 0),
  )

/** Returns the text of a note with keys. WordPress changes quotes and dashes in a note, and leaves them alone in `code`. */
export function keysNote(label: string, line: Pick<ShopLine, 'name' | 'sku'> | undefined, keys: string[]): string {
  const name = plainText(line?.name ?? '')
  const about = [name, ...(line?.sku ? [`(${line.sku})`] : [])].filter((word) => word !== '').join(' ')
  const heading = about === '' ? `${label}:` : `${label}: ${about}`
  return [escaped(heading), ...keys.map((key) => `<code>${escaped(key)}</code>`)].join('\n')
}

/** Whether a note has this key. */
export const noteHas = (note: string, key: string): boolean => hasKey(plainText(note).replaceAll('\r', ''), key)

const shopNotes = z.array(z.object({ note: z.string(), customer_note: z.boolean().catch(false) }))
type ShopNote = z.infer<typeof shopNotes>[number]

interface KeysOfLine {
  line: ShopLine
  keys: string[]
}
/** Keys of a line. The line may be gone from the order by now. */
type NotedKeys = Omit<KeysOfLine, 'line'> & { line: ShopLine | undefined }

/** The keys that a line stores. `shown`: the text that the mail prints; null removes the text; undefined leaves it. */
interface StoredLine {
  line: ShopLine
  all: string[]
  shown?: string | null | undefined
}

/**
 * Hands keys over to orders of a shop, and leaves remarks on them. Each step reads what is there before it writes. Therefore a
 * repeat finds what an attempt without an answer left, and writes nothing twice.
 */
export function shopHandOver(reading: OrderReading, handOver: HandOverSettings) {
  const { client, statuses, known } = reading
  const { label } = handOver

  async function readOrder(reference: string): Promise<Read<ShopOrder>> {
    if (!/^\d{1,15}$/.test(reference)) return refused(404, 'this is no order of the shop')
    const answer = await client.call({ method: 'GET', path: `/orders/${reference}` })
    const isMissing = !answer.ok && answer.code === NO_SUCH_ORDER
    return isMissing ? refused(404, `the shop has no order ${reference}`) : readAs(answer, shopOrder, notAnOrder())
  }

  const readNotes = async (order: number): Promise<Read<ShopNote[]>> =>
    readAs(await client.call({ method: 'GET', path: `/orders/${order}/notes` }), shopNotes, notAnOrder())

  async function postNote(order: number, note: string, isForCustomer: boolean): Promise<PushResult> {
    const body = { note, customer_note: isForCustomer }
    const answer = await client.call({ method: 'POST', path: `/orders/${order}/notes`, body })
    return answer.ok ? CONFIRMED : answer.failure
  }

  /** Returns the keys of these lines that no note for the customer has. */
  async function unnoted(order: ShopOrder, lines: NotedKeys[]): Promise<Read<string[]>> {
    const notes = await readNotes(order.id)
    if (notes.outcome !== 'read') return notes
    const sent = notes.value.filter(({ customer_note }) => customer_note)
    return asRead(lines.flatMap(({ keys }) => keys).filter((key) => !sent.some(({ note }) => noteHas(note, key))))
  }

  /** Sends the customer these keys in one note, except keys that a note has already. */
  async function noteKeys(order: ShopOrder, ...lines: NotedKeys[]): Promise<PushResult> {
    const missing = await unnoted(order, lines)
    if (missing.outcome !== 'read') return missing
    const texts = lines.flatMap(({ line, keys }) => {
      const rest = keys.filter((key) => missing.value.includes(key))
      return rest.length === 0 ? [] : [keysNote(label, line, rest)]
    })
    return texts.length === 0 ? CONFIRMED : postNote(order.id, texts.join('\n\n'), true)
  }

  /** Returns the keys that wait in lines for the mail of the completed order, except keys that the mail has brought before. */
  const waitingKeys = (order: ShopOrder): KeysOfLine[] =>
    order.line_items.flatMap((line) => {
      const { all, shown } = lineKeys(line, label)
      const keys = all.slice(sentOf(order, line)).filter((key) => hasKey(shown, key))
      return keys.length === 0 ? [] : [{ line, keys }]
    })

  /** Returns how many keys of a line the customer was sent when the order was completed, or by notes after that. */
  function sentOf(order: ShopOrder, line: ShopLine): number {
    const mark = jsonIn(String(order.meta_data.find(({ key }) => key === COMPLETED_META)?.value))
    if (typeof mark === 'number') return mark === keysOf(order).length ? mark : 0
    return z.record(z.string(), z.number()).safeParse(mark).data?.[line.id] ?? 0
  }

  /** Returns the mark of an order whose customer has all keys of its lines, and the keys in `fresh` too. */
  const markOf = (order: ShopOrder, fresh: KeysOfLine[] = []) => {
    const more = (id: number) => fresh.reduce((sum, { line, keys }) => sum + (line.id === id ? keys.length : 0), 0)
    const sent = order.line_items.map((line) => [line.id, lineKeys(line, label).all.length + more(line.id)])
    return { meta_data: [{ key: COMPLETED_META, value: JSON.stringify(Object.fromEntries(sent)) }] }
  }

  /**
   * Sends the customer keys by note. The mail of the note also prints the keys that wait in the lines, so the note brings these
   * keys too, and they leave the lines. Keys that an earlier note has leave the lines before.
   */
  async function sendByNote(given: ShopOrder, fresh: KeysOfLine[]): Promise<PushResult> {
    const cleared = given.status === 'completed' ? asRead(given) : await clearNoted(given)
    if (cleared.outcome !== 'read') return cleared
    const order = cleared.value
    const waiting = order.status === 'completed' ? [] : waitingKeys(order)
    if (fresh.length + waiting.length === 0) return CONFIRMED
    const noted = await noteKeys(order, ...waiting, ...fresh)
    if (noted.outcome !== 'confirmed') return noted
    const keysOfLine = (from: KeysOfLine[], id: number) =>
      from.filter(({ line }) => line.id === id).flatMap(({ keys }) => keys)
    const kept = await putLines(
      order,
      order.line_items.flatMap((line) => {
        const [sent, more] = [keysOfLine(waiting, line.id), keysOfLine(fresh, line.id)]
        if (sent.length + more.length === 0) return []
        return [{ line, ...(sent.length > 0 && without(line, sent)), all: [...lineKeys(line, label).all, ...more] }]
      }),
      // The mark counts the keys of this note. Without it the order would be completed again, and its mail would repeat other keys.
      isCompletedByUs(order) ? markOf(order, fresh) : {},
    )
    return kept.ok ? CONFIRMED : afterKeys(kept.failure)
  }

  /** Returns a line that no longer shows these keys. */
  function without(line: ShopLine, gone: readonly string[]): StoredLine {
    const { all, shown } = lineKeys(line, label)
    const rest = shown?.split('\n').filter((key) => !gone.includes(key))
    return { line, all, shown: rest?.join('\n') || null }
  }

  /** Takes keys that a note has brought out of the lines, so that no later mail repeats them. @returns the order without them */
  async function clearNoted(order: ShopOrder, mayBeSent = false): Promise<Read<ShopOrder>> {
    const waiting = waitingKeys(order)
    // The only key of an order has not waited for other keys, unless other units of its line were refunded meanwhile.
    const isSingle = order.line_items.length === 1 && keysOf(order).length === 1
    if (waiting.length === 0 || (isSingle && !mayBeSent)) return asRead(order)
    const missing = await unnoted(order, waiting)
    if (missing.outcome !== 'read') return missing
    const noted = waiting.flatMap(({ line, keys }) => {
      const gone = keys.filter((key) => !missing.value.includes(key))
      return gone.length === 0 ? [] : [without(line, gone)]
    })
    if (noted.length === 0) return asRead(order)
    return readAs(await putLines(order, noted), shopOrder, notAnOrder(true))
  }

  /** Stores the keys of lines that were handed over. */
  async function putLines(order: ShopOrder, lines: StoredLine[], mark: Partial<ReturnType<typeof markOf>> = {}) {
    return put(order, {
      ...mark,
      line_items: lines.map(({ line, all, shown }) => {
        const entry = (key: string, value: string | null) => {
          const there = line.meta_data.find((meta) => meta.key === key)
          return { ...(there ? { id: there.id } : {}), key, value }
        }
        const hidden = entry(KEYS_META, JSON.stringify(all))
        return { id: line.id, meta_data: shown === undefined ? [hidden] : [entry(label, shown), hidden] }
      }),
    })
  }

  async function put({ id }: ShopOrder, body: object) {
    const answer = await client.call({ method: 'PUT', path: `/orders/${id}`, body })
    if (answer.ok) noteWritten(reading, id, answer.body)
    return answer
  }

  /**
   * Checks whether the order entitles its customer to these keys, none of which is in the line. Where a note has brought some of
   * them, the hand-over is finished all the same. An amount that was refunded since the order was read may be for these units.
   *
   * @returns undefined where nothing keeps the keys here
   */
  async function keptHere(order: ShopOrder, id: string, keys: string[]): Promise<FulfilResult | undefined> {
    const isAsRead = hasKnownRefunds(known, order)
    const refunded = await readRefunds(client, known, order)
    if ('outcome' in refunded) return refunded
    const { standing, because, fault, lines } = storeOrderOf(order, { refunded, statuses })
    const line = order.line_items.find((one) => String(one.id) === id)
    const units = lines.find((one) => one.id === id)?.quantity ?? 0
    const hold = fault ?? (refunded.unnamed > 0n && !isAsRead ? 'money was refunded since it was read' : undefined)
    const stands = standing === 'paid' && hold !== undefined ? 'held' : standing
    const had = line ? lineKeys(line, label).all.length : 0
    if (stands === 'paid' && had + keys.length <= units) return undefined
    const missing = await unnoted(order, [{ line, keys }])
    if (missing.outcome !== 'read') return missing
    if (missing.value.length < keys.length)
      return line ? sendByNote(order, [{ line, keys }]) : noteKeys(order, { line, keys })
    const notPaid = because ?? (hold === undefined ? `is ${order.status} in the shop` : `waits: ${hold}`)
    const why = stands === 'paid' ? `has ${units} of line ${id} now` : notPaid
    return {
      outcome: 'not_entitled',
      standing: stands,
      units,
      detail: `the order ${order.id} ${why}: its keys stay here`,
    }
  }

  async function fulfil(update: Pushed<LineFulfilled> & { keys: string[] }): Promise<FulfilResult> {
    const { order: ref, line: asked, keys } = update
    if (keys.length === 0) return CONFIRMED
    const read = await readOrder(ref.reference)
    if (read.outcome !== 'read') return read
    const order = read.value
    const line = order.line_items.find(({ id }) => String(id) === asked.id)
    if (!line) return (await keptHere(order, asked.id, keys)) ?? refused(404, `the order has no line ${asked.id}`)
    const { all, shown } = lineKeys(line, label)
    const fresh = keys.filter((key) => !all.includes(key))
    if (fresh.length === 0) {
      // Others completed the order, so its mail may have left before these keys stood in the line.
      const unseen =
        order.status === 'completed' && !isCompletedByUs(order) ? keys : keys.filter((key) => !hasKey(shown, key))
      return unseen.length === 0 ? CONFIRMED : afterKeys(await noteKeys(order, { line, keys: unseen }))
    }
    const kept = fresh.length === keys.length ? await keptHere(order, asked.id, keys) : undefined
    if (kept) return kept
    if (wayOf(order, fresh, handOver) === 'note') return sendByNote(order, [{ line, keys: fresh }])
    const unseen = fresh.filter((key) => !hasKey(shown, key))
    const text = [...(shown === null ? [] : [shown]), ...unseen].join('\n')
    const put = await putLines(order, [{ line, all: [...all, ...fresh], shown: text }])
    const after = readAs(put, shopOrder, notAnOrder(true))
    if (after.outcome !== 'read') return after
    const stored = after.value.line_items.find(({ id }) => id === line.id)
    const has = stored ? lineKeys(stored, label) : { all: [], shown: null }
    if (!fresh.every((key) => has.all.includes(key) && hasKey(has.shown, key))) {
      // A plug-in changes what lines show. The customer gets the keys unchanged by note, and the line shows what it showed before.
      const noted = await noteKeys(order, { line, keys: fresh })
      if (noted.outcome !== 'confirmed') return afterKeys(noted)
      const cleared = await putLines(order, [{ line: stored ?? line, all: [...all, ...fresh], shown }])
      return cleared.ok ? CONFIRMED : afterKeys(cleared.failure)
    }
    // The merchant completed the order meanwhile, so its mail may have left without these keys.
    return after.value.status === 'completed' ? afterKeys(await noteKeys(order, { line, keys: fresh })) : CONFIRMED
  }

  /** Leaves a private note for the merchant, once. */
  async function remark(reference: string, id: string, words: string): Promise<PushResult> {
    const read = await readOrder(reference)
    if (read.outcome !== 'read') return read
    const mark = remarkMark(id)
    const notes = await readNotes(read.value.id)
    if (notes.outcome !== 'read') return notes
    if (notes.value.some(({ note }) => note.includes(mark))) return CONFIRMED
    return postNote(read.value.id, `${escaped(words)} ${mark}`, false)
  }

  const keysOf = (order: ShopOrder): string[] => order.line_items.flatMap((line) => lineKeys(line, label).all)

  /** Whether Quayside has completed an order, and all keys of the order were sent. */
  const isMailed = (order: ShopOrder): boolean =>
    isCompletedByUs(order) && order.line_items.every((line) => sentOf(order, line) >= lineKeys(line, label).all.length)

  const notPaid = ({ id, status }: ShopOrder, what: string): FulfilResult => ({
    outcome: 'not_entitled',
    standing: isCancelled(status) ? 'cancelled' : 'held',
    units: 0,
    detail: `the order ${id} is ${status} in the shop now: ${what} once it is paid`,
  })

  /** Sends by note the keys that wait in the lines for the mail of the completed order. */
  async function sendWaiting(reference: string): Promise<FulfilResult> {
    const read = await readOrder(reference)
    if (read.outcome === 'refused' && read.status === 404) return CONFIRMED
    if (read.outcome !== 'read') return read
    const order = read.value
    if (isCancelled(order.status) || isMailed(order)) return CONFIRMED
    if (UNPAID.includes(order.status)) return notPaid(order, 'its keys are mailed')
    // These refunds are not noted in `known`: only the refunds of a reading that Quayside acts on are.
    const refunded = await readRefunds(client, new Map(), order)
    if ('outcome' in refunded) return refunded
    const line_items = order.line_items.filter(({ id }) => !refunded.ofLine.has(String(id)))
    // The mail of a note prints the keys of the other lines too.
    return waitingKeys({ ...order, line_items }).length === 0 ? CONFIRMED : sendByNote(order, [])
  }

  async function closeOrder({
    id,
    order: ref,
    state,
    mayBeSent = false,
  }: Pushed<OrderClosed> & { mayBeSent?: boolean }): Promise<FulfilResult> {
    const read = await readOrder(ref.reference)
    if (read.outcome !== 'read') return read
    const order = read.value
    const refunded = await readRefunds(client, known, order)
    if ('outcome' in refunded) return refunded
    const mayComplete = state === 'fulfilled' && handOver.complete
    // A merchant may have changed the status since. If the order were completed again, its mail would carry the same keys.
    if (mayComplete && (order.status === 'completed' || isMailed(order))) return CONFIRMED
    // A completed order would count as paid.
    if (mayComplete && (UNPAID.includes(order.status) || isCancelled(order.status)))
      return notPaid(order, 'it is completed')
    if (mayComplete && isHandedOver(order, refunded, label)) {
      const cleared = await clearNoted(order, mayBeSent)
      if (cleared.outcome !== 'read') return cleared
      const completed = await put(order, { status: 'completed', ...markOf(order) })
      return completed.ok ? CONFIRMED : completed.failure
    }
    // No mail of a completed order comes now. The keys that wait for that mail go by note, and leave the lines.
    if (!isCancelled(order.status) && !isMailed(order)) {
      const sent = await sendByNote(order, [])
      if (sent.outcome !== 'confirmed') return sent
    }
    return state === 'fulfilled' ? CONFIRMED : remark(ref.reference, id, closingRemarks[state])
  }

  async function resend({ reference, lines }: ResentOrder): Promise<PushResult> {
    const read = await readOrder(reference)
    if (read.outcome !== 'read') return read
    const texts = lines.map(({ id, keys }) => {
      const line = read.value.line_items.find((one) => String(one.id) === id)
      return keysNote(label, line, keys)
    })
    return postNote(read.value.id, texts.join('\n\n'), true)
  }

  return { fulfil, closeOrder, sendWaiting, resend, remark }
}

/** The statuses in which WooCommerce waits for money, or for a person to look at the order. */
const UNPAID = ['pending', 'on-hold', 'failed']
