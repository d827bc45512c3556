/** The kinds of alerts, as they are stored and compared. `labels` lists them with their words. */
import { alertWords, plainName } from './labels.ts'
import { type WayIntoReview, waysIntoReview } from './purchase-table.ts'

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
