/**
 * A kind of store as one value: all that the program knows of the kind before it opens such a store. `kinds.ts` lists the kinds.
 * A kind loads its adapter when a store is opened, and its questions when `stores add` runs.
 */

import type { z } from 'zod'
import type { StorePolicy } from '../domain/listing.ts'
import type { KeyWay } from '../domain/store-update.ts'
import type { Secret } from '../secret.ts'
import type { Connecting } from './connection.ts'
import type { NotConfirmed, Store, StoreFinding, StoreVariant } from './store.ts'
import type { everyShop, everyStore } from './store-settings.ts'

type StoreShape = z.ZodObject<{ kind: z.ZodLiteral<string> } & typeof everyStore>
type ShopShape = z.ZodObject<{ kind: z.ZodLiteral<string> } & typeof everyStore & typeof everyShop>

/**
 * The parts of a kind. `addressOf` and `open` are methods, because TypeScript lets the methods of a kind take its own settings.
 * They never get other settings: `kindOf` finds the kind by the `kind` in the settings.
 */
export interface StoreKind<Shape extends StoreShape = StoreShape> {
  /** The name of the kind in the configuration and the commands. */
  kind: z.infer<Shape>['kind']
  /** The name of the kind in texts for people. */
  label: string
  /** The settings of such a store in the configuration: `everyStore`, for a shop also `everyShop`, and those of the kind. */
  settings: Shape
  /** Returns where a store is: the address that its callbacks go to, or the address of the shop. */
  addressOf(settings: z.infer<Shape>): string
  open(store: Configured<z.infer<Shape>> & { credentials: ShopCredentials }, needs: StoreNeeds): Promise<Store>
  /** How keys reach the customers of a new store of this kind, where there is a public address. */
  deliver: KeyWay
  shop: ShopAccess | null
}

/** A backend posts its orders with a token of ours, and gets signed callbacks. */
export type BackendKind<Shape extends StoreShape = StoreShape> = StoreKind<Shape> & { shop: null }
/** Quayside calls a shop with the shop's credentials, and reads its products and orders. */
export type ShopKind<Shape extends ShopShape = ShopShape> = StoreKind<Shape> & { shop: ShopAccess }

/** Settings of a store, with the values that are added when the configuration is read. */
export type Configured<Settings> = Settings & {
  currency: string
  policy: StorePolicy
  address: string
  /** Undefined for a backend. */
  credentials: ShopCredentials | undefined
}

/** The things that an adapter needs in addition to the settings of its store. */
export interface StoreNeeds extends Connecting {
  newId: () => string
  /** Returns the secrets with which callbacks to the store with this id are signed now. */
  secretsOf: (store: string) => readonly Buffer[]
  /** Returns the secret that the shop with this id signs its deliveries with. It has letters and digits only. */
  webhookSecretOf: (store: string) => string
  /** Returns when Quayside first saw the present `previousSecret` of the shop with this id, epoch ms. Default: now. */
  earlierSecretSince?: (store: string) => number | undefined
  /** Default: a timer of this machine. */
  sleep?: ((ms: number) => Promise<void>) | undefined
}

export interface ShopCredentials {
  key: Secret
  secret: Secret
  /** The secret before a rotation. The shop may sign with it for a while. */
  previousSecret?: Secret
}

/** The credentials of a kind of shop, and the texts and questions of `stores add`, the command that connects a shop. */
export interface ShopAccess {
  /** The names of the credentials, as a message shows them: `must be …, joined by a colon`. */
  credentials: string
  /** Reads the credentials from the text of their file; undefined where the text is something else. */
  readCredentials: (text: string) => ShopCredentials | undefined
  /** The texts in the help of `stores add <kind>`. */
  help: {
    about: string
    /** The help for `--url`. `keyFile` is the help for `--key-file`. */
    url: string
    keyFile: string
    /** Options of the command, by the name of the setting that each gives: `location: ['--location <number>', …]`. */
    options: Record<string, [flags: string, about: string]>
    credentialsFrom: string
    /** What the two parts of the credentials are called, for the fields of a form. */
    parts: readonly [key: string, secret: string]
    exampleUrl: string
  }
  questions: () => Promise<ShopQuestions>
}

export interface ShopQuestions {
  /** Says where the address of a shop is found. */
  aboutAddress: string
  /** Reads an address as a person writes it. @returns the address for the configuration, or what is wrong with the text */
  readAddress: (text: string) => { url: string } | { fault: string }
  /** Reads credentials as `ShopAccess` does, and may also refuse credentials that no shop takes. */
  readCredentials: ShopAccess['readCredentials']
  askCredentials: (ask: AskHidden) => Promise<ShopCredentials>
  /** Returns what a person most likely has to correct after a failed check. */
  correctionOf: (failed: StoreFinding) => ShopCorrection
  look: (answers: ShopAnswers, now: () => number) => NewShop
  /** Says what the merchant of a new shop still has to do, by how keys reach its customers; null: nothing. */
  remaining: ((deliver: KeyWay) => string) | null
}

/** Asks for a part of the credentials, and does not show what is typed. `fault`: says what is wrong with a typed text. */
export type AskHidden = (question: {
  about: string
  what: string
  fault: (text: string) => string | undefined
}) => Promise<string>

export interface ShopAnswers {
  url: string
  credentials: ShopCredentials
  /** The answers that were given as options of the command. */
  settings: Record<string, string>
}

/** What a person can do about a shop that does not work yet: correct the key or the address, try again, or stop. */
export type ShopCorrection = 'key' | 'address' | 'again' | 'stop'

/** What `stores add` reads from a shop, of any kind, before the shop is in the configuration. */
export interface NewShop {
  /** Tries the credentials. Nothing changes in the shop. */
  test: () => Promise<ShopStanding>
  /** Reads the variants of the shop. `isWhole`: false where the shop has more variants than were read. */
  variants: () => ReturnType<typeof firstVariants>
  close: () => Promise<void>
}

export interface ShopStanding {
  findings: StoreFinding[]
  /** ISO 4217; null where the currency cannot be read. */
  currency: string | null
  /** Why Quayside cannot put products on sale in the shop; null: it can. Matters only for the setting `create: "publish"`. */
  cannotPublish: string | null
}

/** Reads the variants of a shop. @param pagesMax the most pages that are read: a person is waiting for the result */
export async function firstVariants(
  variants: NonNullable<Store['variants']>,
  pagesMax: number,
): Promise<{ outcome: 'read'; items: StoreVariant[]; isWhole: boolean } | NotConfirmed> {
  const items: StoreVariant[] = []
  let cursor: string | null = null
  for (let pages = 0; pages < pagesMax; pages += 1) {
    const page = await variants(cursor)
    if (page.outcome !== 'read') return page
    items.push(...page.items)
    if (page.next === null) return { outcome: 'read', items, isWhole: true }
    cursor = page.next
  }
  return { outcome: 'read', items, isWhole: false }
}
