import { z } from 'zod'
import { isMark } from '../../domain/licence-key.ts'
import type { OrderClosed } from '../../domain/store-update.ts'
import { jsonIn } from '../connection.ts'
import { escaped } from '../shop-catalogue.ts'
import { asRead, CONFIRMED, type Read, refused } from '../shop-client.ts'
import { afterKeys, closingRemarks, remarkMark } from '../shop-hand-over.ts'
import type { Closing, FulfilResult, OfKeys, Pushed, PushResult, ResendResult, ResentOrder, Store } from '../store.ts'
import { plainText } from './catalogue.ts'
import { call, readAs, type Shop, type ShopAnswer } from './client.ts'
import type { WooCommerceSettings } from './kind.ts'
import {
  hasKnownRefunds,
  isCancelled,
  KEYS_META,
  notAnOrder,
  noteWritten,
  type OrderShop,
  type Refunded,
  readRefunds,
  readShopOrder,
  type ShopLine,
  type ShopOrder,
  shopOrder,
  storeOrderOf,
} from './orders.ts'

/**
 * A shop that Quayside hands keys over to. Each step reads what is there before it writes. Therefore a repeat finds what an attempt
 * without an answer left, and writes nothing twice.
 */
export type HandOverShop = OrderShop &
  Pick<WooCommerceSettings, 'handOver'> & {
    /** The link to the page of keys of the order that a call is about; absent: its customer gets no link by this call. */
    link?: string | undefined
    /** The page of keys of the order, also where no link to it is brought; absent: there is none, and an earlier link leads nowhere. */
    page?: string | undefined
    /** For each key that a call brings, the form in which an earlier setting brought it. */
    otherForms?: ReadonlyMap<string, string>
  }

/** Returns the shop for a call that brings keys by the way of an update. */
function shopFor(shop: HandOverShop, { by, keysUrl, keys, otherForm = [] }: KeysUpdate): HandOverShop {
  const otherForms = new Map(keys.flatMap((key, index) => (otherForm[index] ? [[key, otherForm[index]] as const] : [])))
  return { ...shop, page: keysUrl, otherForms, ...(by !== undefined && { link: keysUrl }) }
}

/** Returns the forms in which a shop may have a key. */
const formsOf = ({ otherForms }: HandOverShop, key: string): string[] => [key, otherForms?.get(key) ?? key]

/**
 * The metadata on an order that Quayside has completed. It says, as JSON by the id of the line, how many keys the customer was
 * sent, by the mail of the completed order or by note. Earlier versions of Quayside wrote one number for all keys.
 */
const COMPLETED_META = '_quayside_completed'

const isCompletedByUs = ({ meta_data: meta }: ShopOrder): boolean => meta.some(({ key }) => key === COMPLETED_META)

const metaOf = ({ meta_data: meta }: Pick<ShopOrder, 'meta_data'>, name: string): unknown =>
  meta.find(({ key }) => key === name)?.value

/** Returns the keys that Quayside has put on a line, or their marks. A mark is never shown: the link stands for it. */
const keysOf = (line: ShopLine): string[] =>
  z.array(z.string()).safeParse(jsonIn(String(metaOf(line, KEYS_META)))).data ?? []

/** Returns the text of a line that the mail of a completed order prints; null: no text. */
function shownOf(line: ShopLine, { handOver }: HandOverShop): string | null {
  const shown = metaOf(line, handOver.label)
  return typeof shown === 'string' && shown !== '' ? shown : null
}

const lineOf = (order: ShopOrder, id: string): ShopLine | undefined =>
  order.line_items.find((line) => String(line.id) === id)

const hasKey = (text: string | null, key: string): boolean => text !== null && `\n${text}\n`.includes(`\n${key}\n`)

const isLink = (text: string): boolean => /^https?:\/\/\S+\/k\/[\w-]{43}$/.test(text)
const linkIn = (shown: string | null): string | undefined => shown?.split('\n').find(isLink)

/** Whether a text shows the customer a key. The link to the page of keys shows a key of which there is the mark alone. */
const shows = (text: string | null, key: string, link: string | undefined): boolean =>
  isMark(key) ? link !== undefined && hasKey(text, link) : hasKey(text, key)

/** Returns the text of a line with more keys. The link to the page of keys stands last, in place of any earlier link. */
function textWith(shown: string | null, keys: string[], link: string | undefined): string {
  const there = shown?.split('\n') ?? []
  const rest = link === undefined ? there : there.filter((text) => !isLink(text))
  return [...rest, ...keys.filter((key) => !isMark(key)), ...(link === undefined ? [] : [link])].join('\n')
}

/** Whether a key has characters that WordPress changes in the mail of a completed order. */
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
  { by, complete }: HandOverShop['handOver'],
): HandOverShop['handOver']['by'] {
  if (by === 'note' || !complete || order.status === 'completed') return 'note'
  return keys.some(isFragile) ? 'note' : 'completed_mail'
}

/**
 * Whether all units of an order, except refunded units, were handed over. Only such an order may be completed.
 *
 * @param replacements keys that come in place of others, and bring no unit
 */
const isHandedOver = (order: ShopOrder, { ofLine }: Refunded, replacements: string[]): boolean =>
  order.line_items.every((line) => {
    const units = keysOf(line).filter((key) => !replacements.includes(key)).length
    return units >= line.quantity - (ofLine.get(String(line.id)) ?? 0)
  })

/** Returns the keys of a line as a note has them. WordPress changes quotes and dashes in a note, and leaves them alone in `code`. */
export function keysNote(label: string, line: Pick<ShopLine, 'name' | 'sku'> | undefined, keys: string[]): string {
  const name = plainText(line?.name ?? '')
  const about = [name, ...(line?.sku ? [`(${line.sku})`] : [])].filter((word) => word !== '').join(' ')
  const heading = about === '' ? `${label}:` : `${label}: ${about}`
  const shown = keys.filter((key) => !isMark(key))
  return [escaped(heading), ...shown.map((key) => `<code>${escaped(key)}</code>`)].join('\n')
}

/**
 * Returns the text of a note. The link to the page of keys stands below all keys. The fragment of the link, which no browser sends,
 * has the marks that the note is about, so that a repeat finds them.
 */
export function noteText(label: string, lines: NotedKeys[], link: string | undefined): string {
  const texts = new Set(lines.map(({ line, keys }) => keysNote(label, line, keys)))
  const marks = lines.flatMap(({ keys }) => keys.filter(isMark))
  return [...texts, ...(link === undefined ? [] : [linkText(link, marks)])].join('\n\n')
}

const linkText = (link: string, marks: string[] = []): string => {
  const target = marks.length === 0 ? link : `${link}#${marks.join(',')}`
  return `<a href="${target}"><code>${link}</code></a>`
}

/** Whether a note has brought a key to the customer, or the link to the page of keys for a key of which there is the mark alone. */
export const noteHas = (note: string, key: string, link?: string): boolean =>
  isMark(key)
    ? note.includes(key) && note.includes(`${link ?? ''}#`)
    : hasKey(plainText(note).replaceAll('\r', ''), key)

const shopNotes = z.array(z.object({ note: z.string(), customer_note: z.boolean().catch(false) }))

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

async function readOrder(shop: Shop, reference: string): Promise<Read<ShopOrder>> {
  if (!/^\d{1,15}$/.test(reference)) return refused(404, 'this is no order of the shop')
  const read = await readShopOrder(shop, reference)
  return read.outcome === 'ignored' ? refused(404, read.detail) : read
}

const readNotes = async (shop: Shop, order: number) =>
  readAs(await call(shop, { method: 'GET', path: `/orders/${order}/notes` }), shopNotes, notAnOrder())

async function postNote(shop: Shop, order: number, note: string, isForCustomer: boolean): Promise<PushResult> {
  const body = { note, customer_note: isForCustomer }
  return pushed(await call(shop, { method: 'POST', path: `/orders/${order}/notes`, body }))
}

const pushed = (answer: ShopAnswer): PushResult => (answer.ok ? CONFIRMED : answer.failure)

/** Returns the link to the page of keys of an order: that of the call, or the link that waits in a line. */
const linkOf = (shop: HandOverShop, order: ShopOrder): string | undefined =>
  shop.link ?? order.line_items.flatMap((line) => linkIn(shownOf(line, shop)) ?? [])[0]

/**
 * Returns a function that says whether a note for the customer has a key, in any form that still shows it.
 *
 * @param anyPage also a note with a link to a page that is gone counts
 */
async function readNoted(
  shop: HandOverShop,
  order: ShopOrder,
  anyPage = false,
): Promise<Read<(key: string) => boolean>> {
  const notes = await readNotes(shop, order.id)
  if (notes.outcome !== 'read') return notes
  const sent = notes.value.filter(({ customer_note }) => customer_note)
  const has = (key: string, link: string | undefined) => sent.some(({ note }) => noteHas(note, key, link))
  const link = linkOf(shop, order)
  return asRead((key: string) => {
    if (anyPage) return formsOf(shop, key).some((form) => has(form, undefined))
    const other = shop.otherForms?.get(key)
    return has(key, link) || (other !== undefined && isOpen(shop, other) && has(other, shop.page))
  })
}

/** Whether a key can reach a customer in this form: a mark needs the page of keys. */
const isOpen = ({ page }: HandOverShop, form: string): boolean => !isMark(form) || page !== undefined

/** Sends the customer these keys in one note, except keys that a note has already. */
async function noteKeys(shop: HandOverShop, order: ShopOrder, ...lines: NotedKeys[]): Promise<PushResult> {
  const isNoted = await readNoted(shop, order)
  if (isNoted.outcome !== 'read') return isNoted
  const unsent = lines.flatMap(({ line, keys }) => {
    const rest = keys.filter((key) => !isNoted.value(key))
    return rest.length === 0 ? [] : [{ line, keys: rest }]
  })
  if (unsent.length === 0) return CONFIRMED
  return postNote(shop, order.id, noteText(shop.handOver.label, unsent, linkOf(shop, order)), true)
}

/** Returns the keys that wait in lines for the mail of the completed order, except keys that the mail has brought before. */
const waitingKeys = (shop: HandOverShop, order: ShopOrder): KeysOfLine[] =>
  order.line_items.flatMap((line) => {
    const shown = shownOf(line, shop)
    const keys = keysOf(line)
      .slice(sentOf(order, line))
      .filter((key) => shows(shown, key, linkIn(shown)))
    return keys.length === 0 ? [] : [{ line, keys }]
  })

/** Returns how many keys of a line the customer was sent when the order was completed, or by notes after that. */
function sentOf(order: ShopOrder, line: ShopLine): number {
  const mark = jsonIn(String(metaOf(order, COMPLETED_META)))
  if (typeof mark === 'number') return mark === order.line_items.flatMap(keysOf).length ? mark : 0
  return z.record(z.string(), z.number()).safeParse(mark).data?.[line.id] ?? 0
}

/** Whether Quayside has completed an order, and all keys of the order were sent. */
const isMailed = (order: ShopOrder): boolean =>
  isCompletedByUs(order) && order.line_items.every((line) => sentOf(order, line) >= keysOf(line).length)

/** Returns the mark which says that the customer has all keys of the lines of an order, and the keys in `fresh`. */
function markOf(order: ShopOrder, fresh: KeysOfLine[] = []) {
  const sent = order.line_items.map((line) => [line.id, keysOf(line).length + keysFor(line, fresh).length])
  return { meta_data: [{ key: COMPLETED_META, value: JSON.stringify(Object.fromEntries(sent)) }] }
}

const keysFor = ({ id }: ShopLine, from: KeysOfLine[]): string[] =>
  from.filter(({ line }) => line.id === id).flatMap(({ keys }) => keys)

/**
 * Sends the customer keys by note. The mail of the note also prints the keys that wait in the lines. Therefore the note has those
 * keys too, and they are then removed from the lines. Keys that an earlier note has are removed first.
 */
async function sendByNote(shop: HandOverShop, given: ShopOrder, fresh: KeysOfLine[]): Promise<PushResult> {
  const cleared = await clearNoted(shop, given)
  if (cleared.outcome !== 'read') return cleared
  const order = cleared.value
  const waiting = order.status === 'completed' ? [] : waitingKeys(shop, order)
  if (fresh.length + waiting.length === 0) return CONFIRMED
  const noted = await noteKeys(shop, order, ...waiting, ...fresh)
  if (noted.outcome !== 'confirmed') return noted
  const lines = order.line_items.flatMap((line) => {
    const sent = waiting.find((one) => one.line.id === line.id)
    const more = keysFor(line, fresh)
    if (!sent && more.length === 0) return []
    return [{ line, ...(sent && without(shop, sent)), all: [...keysOf(line), ...more] }]
  })
  // The mark also counts the keys of this note. Otherwise Quayside would complete the order again, and the mail repeat its keys.
  const mark = isCompletedByUs(order) ? markOf(order, fresh) : {}
  return afterKeys(pushed(await putLines(shop, order, lines, mark)))
}

/** Returns a line that no longer shows these of its waiting keys. The link leaves the line with the last of them. */
function without(shop: HandOverShop, { line, keys }: KeysOfLine, gone = keys): StoredLine {
  const isLast = gone.length === keys.length
  const rest = shownOf(line, shop)
    ?.split('\n')
    .filter((text) => !gone.includes(text) && !(isLast && isLink(text)))
  return { line, all: keysOf(line), shown: rest?.join('\n') || null }
}

/** Removes from the lines the keys that a note has, so that no later mail repeats them. @returns the order without those keys */
async function clearNoted(shop: HandOverShop, order: ShopOrder, mayBeSent = false): Promise<Read<ShopOrder>> {
  const waiting = waitingKeys(shop, order)
  // If the only key of an open order waits for the mail, no note has it, unless one of the updates behind `mayBeSent` has sent it.
  const isSingle = order.line_items.length === 1 && order.line_items.flatMap(keysOf).length === 1
  if (waiting.length === 0 || (isSingle && !mayBeSent && order.status !== 'completed')) return asRead(order)
  const isNoted = await readNoted(shop, order)
  if (isNoted.outcome !== 'read') return isNoted
  const noted = waiting
    .map((one) => without(shop, one, one.keys.filter(isNoted.value)))
    .filter(({ line, shown }) => shown !== shownOf(line, shop))
  if (noted.length === 0) return asRead(order)
  return readAs(await putLines(shop, order, noted), shopOrder, notAnOrder(true))
}

/** Stores the keys of lines that were handed over. */
const putLines = (
  shop: HandOverShop,
  order: ShopOrder,
  lines: StoredLine[],
  mark: Partial<ReturnType<typeof markOf>> = {},
) =>
  put(shop, order, {
    ...mark,
    line_items: lines.map(({ line, all, shown }) => {
      const entry = (key: string, value: string | null) => {
        const there = line.meta_data.find((meta) => meta.key === key)
        return { ...(there ? { id: there.id } : {}), key, value }
      }
      const hidden = entry(KEYS_META, JSON.stringify(all))
      return { id: line.id, meta_data: shown === undefined ? [hidden] : [entry(shop.handOver.label, shown), hidden] }
    }),
  })

async function put(shop: Shop, { id }: ShopOrder, body: object): Promise<ShopAnswer> {
  const answer = await call(shop, { method: 'PUT', path: `/orders/${id}`, body })
  if (answer.ok) noteWritten(shop, id, answer.body)
  return answer
}

/**
 * Checks whether the customer may have these keys, none of which is in the line. If a note has some of them already, this call
 * finishes the hand-over all the same. Money refunded since the order was read may be for these units, so the keys are held back.
 *
 * @returns undefined where the keys can be handed over
 */
async function keptHere(
  shop: HandOverShop,
  order: ShopOrder,
  id: string,
  { keys, unanswered = [], replaces, replacements = [] }: KeysUpdate,
): Promise<FulfilResult | undefined> {
  const isAsRead = hasKnownRefunds(shop, order)
  const refunded = await readRefunds(shop, order)
  if ('outcome' in refunded) return refunded
  const { standing, because, fault, lines } = storeOrderOf(order, { refunded, statuses: shop.statuses })
  const line = lineOf(order, id)
  const units = lines.find((one) => one.id === id)?.quantity ?? 0
  const hold = fault ?? (refunded.unnamed > 0n && !isAsRead ? 'money was refunded since it was read' : undefined)
  const stands = standing === 'paid' && hold !== undefined ? 'held' : standing
  // A key that comes in place of another one brings no unit.
  const had = (line ? keysOf(line) : []).filter((key) => !replacements.includes(key))
  const fresh = replaces ? 0 : keys.length
  const hasRoom = (noted: number) => stands === 'paid' && had.length + noted + fresh <= units
  // A note may have brought these keys of the line although its answer, and so the line itself, says nothing of them.
  const others = unanswered.filter((key) => !had.includes(key))
  if (hasRoom(others.length)) return undefined
  const isNoted = await readNoted(shop, order, true)
  if (isNoted.outcome !== 'read') return isNoted
  if (hasRoom(others.filter(isNoted.value).length)) return undefined
  if (keys.some(isNoted.value))
    return line ? sendByNote(shop, order, [{ line, keys }]) : noteKeys(shop, order, { line, keys })
  const notPaid = because ?? (hold === undefined ? `is ${order.status} in the shop` : `waits: ${hold}`)
  const why = stands === 'paid' ? `has ${units} of line ${id} now` : notPaid
  const detail = `the order ${order.id} ${why}: its keys stay here`
  return { outcome: 'not_entitled', standing: stands, units, detail }
}

type KeysUpdate = Parameters<Store['fulfil']>[0]

export async function fulfil(given: HandOverShop, update: KeysUpdate): Promise<FulfilResult> {
  const { keys, replaces } = update
  const [{ reference }, { id }] = [update.order, update.line]
  const shop = shopFor(given, update)
  if (keys.length === 0) return CONFIRMED
  const read = await readOrder(shop, reference)
  if (read.outcome !== 'read') return read
  const order = read.value
  const line = lineOf(order, id)
  if (!line) return (await keptHere(shop, order, id, update)) ?? refused(404, `the order has no line ${id}`)
  const [all, shown] = [keysOf(line), shownOf(line, shop)]
  const fresh = keys.filter((key) => !formsOf(shop, key).some((form) => all.includes(form)))
  if (fresh.length === 0) return bringAgain(shop, order, { line, all, shown }, keys)
  const kept = fresh.length === keys.length ? await keptHere(shop, order, id, update) : undefined
  if (kept) return kept
  if (replaces || wayOf(order, fresh, shop.handOver) === 'note') return sendByNote(shop, order, [{ line, keys: fresh }])
  return sendByMail(shop, order, { line, all: [...all, ...fresh], shown }, fresh)
}

/** Gives the customer those keys of a line that may not have reached them, and the link that is valid now. */
async function bringAgain(
  shop: HandOverShop,
  order: ShopOrder,
  { line, all, shown = null }: StoredLine,
  keys: string[],
): Promise<FulfilResult> {
  // The shop has a link of a lost database: that page is gone. The mail of the completed order can still bring the new link.
  const page = shop.link ?? shop.page
  const old = linkIn(shown)
  const isOld = old !== undefined && page !== undefined && old !== page
  const text = isOld ? textWith(shown, [], page) : shown
  const byUs = isCompletedByUs(order)
  const isMailed = order.status === 'completed' || byUs
  // Not Quayside but someone else completed the order, so its mail may have left before these keys were in the line.
  const mayLack = order.status === 'completed' && !byUs
  const isShown = (key: string) => formsOf(shop, key).some((form) => shows(isMailed ? shown : text, form, page))
  const unseen = mayLack ? keys : keys.filter((key) => !isShown(key))
  const noted = unseen.length === 0 ? CONFIRMED : afterKeys(await noteKeys(shop, order, { line, keys: unseen }))
  if (noted.outcome !== 'confirmed' || !isOld) return noted
  return afterKeys(pushed(await putLines(shop, order, [{ line, all, shown: text }])))
}

/** Puts keys on a line: the mail of the completed order prints them. @param stored the line, with the text that it shows now */
async function sendByMail(
  shop: HandOverShop,
  order: ShopOrder,
  { line, all, shown = null }: StoredLine,
  fresh: string[],
): Promise<FulfilResult> {
  const unseen = fresh.filter((key) => !hasKey(shown, key))
  const text = textWith(shown, unseen, shop.link)
  const put = await putLines(shop, order, [{ line, all, shown: text }])
  const after = readAs(put, shopOrder, notAnOrder(true))
  if (after.outcome !== 'read') return after
  const stored = lineOf(after.value, String(line.id))
  const left = stored ? shownOf(stored, shop) : null
  const isKept = (key: string) => stored && keysOf(stored).includes(key) && shows(left, key, shop.link)
  if (!fresh.every(isKept) || (shop.link !== undefined && !hasKey(left, shop.link))) {
    // A plug-in changes the text of lines. Therefore the customer gets the keys by note, and the line gets its former text back.
    const noted = await noteKeys(shop, order, { line, keys: fresh })
    if (noted.outcome !== 'confirmed') return afterKeys(noted)
    return afterKeys(pushed(await putLines(shop, order, [{ line: stored ?? line, all, shown }])))
  }
  // The merchant completed the order meanwhile, so its mail may have left without these keys.
  return after.value.status === 'completed' ? afterKeys(await noteKeys(shop, order, { line, keys: fresh })) : CONFIRMED
}

/** Leaves a private note for the merchant, once. */
export async function remark(shop: Shop, reference: string, id: string, words: string): Promise<PushResult> {
  const read = await readOrder(shop, reference)
  if (read.outcome !== 'read') return read
  const mark = remarkMark(id)
  const notes = await readNotes(shop, read.value.id)
  if (notes.outcome !== 'read') return notes
  if (notes.value.some(({ note }) => note.includes(mark))) return CONFIRMED
  return postNote(shop, read.value.id, `${escaped(words)} ${mark}`, false)
}

/** The statuses in which WooCommerce waits for money, or for a person to look at the order. */
const UNPAID = ['pending', 'on-hold', 'failed']

const notPaid = ({ id, status }: ShopOrder, what: string): FulfilResult => ({
  outcome: 'not_entitled',
  standing: isCancelled(status) ? 'cancelled' : 'held',
  units: 0,
  detail: `the order ${id} is ${status} in the shop now: ${what} once it is paid`,
})

/** Sends by note the keys that wait in the lines for the mail of the completed order. */
export async function sendWaiting(shop: HandOverShop, reference: string): Promise<FulfilResult> {
  const read = await readOrder(shop, reference)
  if (read.outcome === 'refused' && read.status === 404) return CONFIRMED
  if (read.outcome !== 'read') return read
  const order = read.value
  if (isCancelled(order.status) || isMailed(order)) return CONFIRMED
  if (UNPAID.includes(order.status)) return notPaid(order, 'its keys are mailed')
  // The refunds read here are not remembered: a hand-over must still see that they are newer than the reading of the order.
  const refunded = await readRefunds(shop, order, new Map())
  if ('outcome' in refunded) return refunded
  const line_items = order.line_items.filter(({ id }) => !refunded.ofLine.has(String(id)))
  // If any other line has keys, the note also has those of refunded lines: its mail prints the lines in any case.
  return waitingKeys(shop, { ...order, line_items }).length === 0 ? CONFIRMED : sendByNote(shop, order, [])
}

/**
 * Writes to the customer, once, that keys of their order are late. The mail of that note prints the lines. Therefore all keys that wait
 * there go by note first, also those of refunded lines, which `sendWaiting` leaves for the mail of the completed order.
 */
export async function reportLate(
  shop: HandOverShop,
  { reference, words, keysUrl }: Parameters<NonNullable<Store['reportLate']>>[0],
): Promise<FulfilResult> {
  const read = await readOrder(shop, reference)
  if (read.outcome === 'refused' && read.status === 404) return CONFIRMED
  if (read.outcome !== 'read') return read
  const order = read.value
  // Someone else completed the order, most likely after they gave the customer a key by hand.
  const isByHand = order.status === 'completed' && !isCompletedByUs(order)
  if (isCancelled(order.status) || isByHand) return CONFIRMED
  if (UNPAID.includes(order.status)) return notPaid(order, 'its customer learns that keys are late')
  const notes = await readNotes(shop, order.id)
  if (notes.outcome !== 'read') return notes
  const [late] = words.map(escaped)
  if (notes.value.some(({ note, customer_note }) => customer_note && note.startsWith(late ?? ''))) return CONFIRMED
  const sent = isMailed(order) ? CONFIRMED : await sendByNote(shop, order, [])
  if (sent.outcome !== 'confirmed') return sent
  const text = words.map(escaped).join(' ')
  return postNote(shop, order.id, keysUrl === undefined ? text : `${text}\n${linkText(keysUrl)}`, true)
}

export async function closeOrder(
  shop: HandOverShop,
  { id, order: { reference }, state, mayBeSent, replacements = [] }: Pushed<OrderClosed> & Closing,
): Promise<FulfilResult> {
  const read = await readOrder(shop, reference)
  if (read.outcome !== 'read') return read
  const order = read.value
  const refunded = await readRefunds(shop, order)
  if ('outcome' in refunded) return refunded
  const mayComplete = state === 'fulfilled' && shop.handOver.complete
  // The order was completed, even if a merchant changed its status since. Completing it again would mail the same keys again.
  if (mayComplete && (order.status === 'completed' || isMailed(order))) return CONFIRMED
  // An unpaid order must not be completed: it would then count as paid.
  if (mayComplete && (UNPAID.includes(order.status) || isCancelled(order.status)))
    return notPaid(order, 'it is completed')
  if (mayComplete && isHandedOver(order, refunded, replacements)) {
    const cleared = await clearNoted(shop, order, mayBeSent)
    if (cleared.outcome !== 'read') return cleared
    return pushed(await put(shop, order, { status: 'completed', ...markOf(order) }))
  }
  // Quayside does not complete this order. Keys that wait for the mail of a completed order go by note, and leave the lines.
  if (!isCancelled(order.status) && !isMailed(order)) {
    const sent = await sendByNote(shop, order, [])
    if (sent.outcome !== 'confirmed') return sent
  }
  return state === 'fulfilled' ? CONFIRMED : remark(shop, reference, id, closingRemarks[state])
}

export async function resend(shop: HandOverShop, order: ResentOrder & OfKeys): Promise<ResendResult> {
  const link = order.by === undefined ? undefined : order.keysUrl
  const read = await readOrder(shop, order.reference)
  if (read.outcome !== 'read') return read
  const lines = order.lines.map(({ id, keys }) => ({ line: lineOf(read.value, id), keys }))
  const noted = await postNote(shop, read.value.id, noteText(shop.handOver.label, lines, link), true)
  if (noted.outcome !== 'confirmed' || link === undefined) return noted
  const what = order.by === 'link' ? 'the link to their page of keys' : 'the keys and the link to their page'
  return { ...noted, detail: `The shop has sent the customer a note with ${what}.` }
}
