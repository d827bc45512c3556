/** The kinds of alerts, as they are stored and compared, and the page of the console about each. `labels` lists them with their words. */
import { alertWords, plainName } from './labels.ts'
import { type WayIntoReview, waysIntoReview } from './purchase.ts'

export type AlertKind = keyof typeof alertWords
export const alertKinds = Object.keys(alertWords) as AlertKind[]

declare const unknown: unique symbol
/** A kind that this version does not know. */
export type UnknownKind = string & { readonly [unknown]: true }

/**
 * A kind that the database may hold. Another version of Quayside may run on it too, and raise alerts of a kind that is unknown
 * here. Such an alert is shown and sent under its name as critical, and is open for three days.
 */
export type StoredKind = AlertKind | UnknownKind

const known: ReadonlySet<string> = new Set(alertKinds)
const ways: ReadonlySet<string> = new Set(waysIntoReview)

export const storedKind = (text: string): StoredKind => (isKnown(text) ? text : (text as UnknownKind))
export const isKnown = (kind: string): kind is AlertKind => known.has(kind)
export const isWayIntoReview = (kind: string): kind is WayIntoReview => ways.has(kind)

export const alertText = (kind: StoredKind): string => (isKnown(kind) ? alertWords[kind] : plainName(kind))

/** What an alert is about. */
export interface AlertAbout {
  type: StoredKind
  /** The command that the alert advises: `quayside balance`. */
  command: string
  subject: string | null
  /** The number of the order by which people know it; null where the alert is about none. */
  order: string | null
  /** The order itself, where it is stored here. */
  store?: string | undefined
  reference?: string | undefined
}

interface AlertPage {
  /** What the alert is about. */
  about: (subject: string, storeNames: ReadonlyMap<string, string>) => string
  path: (subject: string, alert: AlertAbout) => string | undefined
}

const ofOrder = ({ type, store, reference }: AlertAbout, name: string | null): string =>
  store === undefined || reference === undefined || neverTaken.includes(type)
    ? `/orders?q=${encodeURIComponent(name ?? '')}`
    : `/orders/${encodeURIComponent(store)}/${encodeURIComponent(reference)}`
const ofPurchase: AlertPage = { about: () => 'a purchase', path: (id) => (id === '' ? '/reviews' : `/reviews/${id}`) }
const ofStore = (path: (store: string) => string): AlertPage => ({
  about: (store, names) => names.get(store) ?? store,
  path: (store) => path(encodeURIComponent(store)),
})

/** The pages of alerts, by the command that an alert advises: `quayside balance` leads to `/balance`. */
const alertPages: Record<string, AlertPage> = {
  balance: { about: () => 'the balance', path: () => '/balance' },
  claims: { about: (number) => `claim ${number}`, path: (_, alert) => ofOrder(alert, alert.order) },
  deliveries: { about: () => 'a delivery', path: (id) => `/deliveries/${id}` },
  discrepancies: { about: () => '', path: () => '/discrepancies' },
  listings: ofStore((store) => `/listings?store=${store}&state=failed`),
  orders: { about: (reference) => `order ${reference}`, path: (name, alert) => ofOrder(alert, name) },
  outbox: { about: () => 'a message to a store', path: () => '/dead-letters' },
  purchases: ofPurchase,
  reviews: ofPurchase,
  stores: ofStore((store) => `/stores/${store}`),
  sync: { about: () => '', path: () => '/syncs' },
  webhooks: { about: () => 'a webhook at the supplier', path: () => undefined },
}

/** Alerts of these kinds are about an order that has no page: it was not taken. */
const neverTaken: readonly StoredKind[] = ['order_refused', 'order_before_connection']
/** Alerts of these kinds advise a command about the machine. They link to the refused deliveries instead, which say more. */
const refusals: readonly StoredKind[] = ['all_stale', 'deliveries_refused']

const pageOf = ({ command }: AlertAbout): AlertPage | undefined => alertPages[command.split(' ')[1] ?? '']

/** Returns the page of what an alert is about; undefined where only a command on the machine says more. */
export const alertPath = (alert: AlertAbout): string | undefined =>
  refusals.includes(alert.type) ? '/deliveries/refused' : pageOf(alert)?.path(alert.subject ?? '', alert)

/** Names what an alert is about, without an id; an empty text where it is about the service as a whole. */
export function aboutAlert(alert: AlertAbout, storeNames: ReadonlyMap<string, string>): string {
  if (alert.order !== null) return `order ${alert.order}`
  return alert.subject === null ? '' : (pageOf(alert)?.about(alert.subject, storeNames) ?? alert.subject)
}
