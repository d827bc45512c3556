/**
 * A kind of store, as one value: all that the program knows of it before it opens one. `kinds.ts` lists the kinds. A kind loads its
 * adapter when a store is opened, and its questions when `stores add` runs.
 */
import type { z } from 'zod'
import type { StorePolicy } from '../domain/listing.ts'
import type { Secret } from '../secret.ts'
import type { Connecting } from './connection.ts'
import type { NewShop } from './first-look.ts'
import type { Store, StoreFinding } from './store.ts'
import type { everyShop, everyStore } from './store-settings.ts'

type StoreShape = z.ZodObject<{ kind: z.ZodLiteral<string> } & typeof everyStore>
type ShopShape = z.ZodObject<{ kind: z.ZodLiteral<string> } & typeof everyStore & typeof everyShop>

/**
 * The parts of a kind. `addressOf` and `open` are methods, so that each kind takes settings of its own: `kindOf` finds the kind of a
 * store by the name that its shape has checked.
 */
export interface StoreKind<Shape extends StoreShape = StoreShape> {
  /** As the configuration and the commands name it. */
  kind: z.infer<Shape>['kind']
  /** As people call it. */
  label: string
  /** What the configuration has of such a store: `everyStore`, of a shop `everyShop`, and settings of its own. */
  settings: Shape
  /** Where a store is: where its callbacks go, or the address of the shop. */
  addressOf(settings: z.infer<Shape>): string
  /** Opens a store. */
  open(store: Configured<z.infer<Shape>> & { credentials: ShopCredentials }, needs: StoreNeeds): Promise<Store>
  shop: ShopAccess | null
}

/** A backend posts its orders with a token of ours, and gets signed callbacks. */
export interface BackendKind<Shape extends StoreShape = StoreShape> extends StoreKind<Shape> {
  shop: null
}

/** A shop lets us in with credentials of its own, and its products and orders are read from it. */
export interface ShopKind<Shape extends ShopShape = ShopShape> extends StoreKind<Shape> {
  shop: ShopAccess
}

/** Settings of a store, with what the reading of the configuration adds. */
export type Configured<Settings> = Settings & {
  currency: string
  policy: StorePolicy
  address: string
  /** Undefined for a backend. */
  credentials: ShopCredentials | undefined
}

/** What adapters are made with, in addition to the settings of their store. */
export interface StoreNeeds extends Connecting {
  newId: () => string
  /** The secrets that callbacks are signed with now, of the store with this id. */
  secretsOf: (store: string) => readonly Buffer[]
  /** The secret that the shop with this id signs its deliveries with: letters and digits. */
  webhookSecretOf: (store: string) => string
  /** Since when the installation has known the secret before that of the shop with this id, epoch ms. Default: since now. */
  earlierSecretSince?: (store: string) => number | undefined
  /** Default: a timer of this machine. */
  sleep?: ((ms: number) => Promise<void>) | undefined
}

/** What the API of a shop lets us in with. */
export interface ShopCredentials {
  key: Secret
  secret: Secret
  /** The secret before a rotation, with which the shop may sign for a while. */
  previousSecret?: Secret
}

/** How a shop lets us in, and how `stores add` connects one. */
export interface ShopAccess {
  /** What the credentials are, as the end of `must be …, joined by a colon`. */
  credentials: string
  /** Reads them as their file has them; undefined where the text is something else. */
  readCredentials: (text: string) => ShopCredentials | undefined
  /** What the help of `stores add <kind>` says. */
  help: {
    about: string
    /** What `--url` and `--key-file` are. */
    url: string
    keyFile: string
    /** Options that give a setting of this kind, by the name of the setting: `location: ['--location <number>', …]`. */
    options: Record<string, [flags: string, about: string]>
    /** Says where the credentials are made. */
    credentialsFrom: string
    exampleUrl: string
  }
  /** Loads what `stores add` asks. */
  questions: () => Promise<ShopQuestions>
}

export interface ShopQuestions {
  /** Says where the address of a shop is found. */
  aboutAddress: string
  /** Reads an address as a person writes it. @returns as the configuration has it, or what is wrong with it */
  readAddress: (text: string) => { url: string } | { fault: string }
  /** As that of the kind; it may also refuse what no shop takes. */
  readCredentials: ShopAccess['readCredentials']
  askCredentials: (ask: AskHidden) => Promise<ShopCredentials>
  /** What a person most likely corrects after a finding. */
  correctionOf: (failed: StoreFinding) => ShopCorrection
  look: (answers: ShopAnswers, now: () => number) => NewShop
  /** What a merchant of this kind still has to do; null: nothing. */
  remaining: string | null
}

/** Asks for a part of the credentials, which is not shown while it is typed. `fault`: what is wrong with it. */
export type AskHidden = (question: {
  about: string
  what: string
  fault: (text: string) => string | undefined
}) => Promise<string>

export interface ShopAnswers {
  url: string
  credentials: ShopCredentials
  /** The answers that options gave. */
  settings: Record<string, string>
}

/** What a person can do about a shop that does not work yet. */
export type ShopCorrection = 'key' | 'address' | 'again' | 'stop'
