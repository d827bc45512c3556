/** What `stores add` must know of a kind of shop: its questions, and how a shop of it is tried. */
import type { ShopCredentials } from '../config/config.ts'
import type { FieldFault } from '../errors.ts'
import type { NewShop } from '../stores/first-look.ts'
import type { StoreFinding } from '../stores/store.ts'
import type { Io } from './command.ts'
import type { Terminal } from './init-questions.ts'

/** What a person was asked, or said by options. */
export interface ShopAnswers {
  url: string
  credentials: ShopCredentials
}

/** What a person can do about a shop that does not work yet. */
export const corrections = ['key', 'address', 'again', 'stop'] as const
export type ShopCorrection = (typeof corrections)[number]

export interface ShopKind<Options = unknown> {
  kind: 'woocommerce' | 'shopify'
  /** Says where its address is found. */
  aboutAddress: string
  /** Reads an address as a person writes it. @returns as the configuration has it, or what is wrong with it */
  readAddress: (text: string) => { url: string } | { fault: string }
  /** What the credentials are, such as `key and secret`. */
  credentials: string
  /** Reads them as their file has them; undefined where the text is something else. */
  readCredentials: (text: string) => ShopCredentials | undefined
  askCredentials: (terminal: Terminal) => Promise<ShopCredentials>
  /** What a person most likely corrects after a finding. */
  correctionOf: (failed: StoreFinding) => ShopCorrection
  /** Settings that options of this kind alone give. */
  settingsOf: (options: Options) => object
  /** What is wrong with those options. */
  optionFaults: (options: Options) => FieldFault[]
  look: (io: Io, answers: ShopAnswers, options: Options) => NewShop
  /** What a merchant of this kind still has to do; null: nothing. */
  remaining: string | null
}

/** A part of the credentials: not shown while it is typed. @param fault as that of a question */
export const askHidden = (
  terminal: Terminal,
  question: { about: string; what: string; fault: (text: string) => string | undefined },
): Promise<string> =>
  terminal.put(
    {
      about: question.about,
      ask: `${question.what} (not shown while you type)`,
      before: '',
      fault: question.fault,
    },
    { hidden: true },
  )
