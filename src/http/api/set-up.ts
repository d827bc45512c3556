import path from 'node:path'
import { z } from 'zod'
import { baseUrlFault, configShape, dialectFileOf, SECRETS, shippedDialects } from '../../config/config.ts'
import { readDialect } from '../../dialect/dialect.ts'
import { conflict } from '../../errors.ts'
import { unfreeze } from '../../ordering/actions.ts'
import { Secret } from '../../secret.ts'
import type { SettingsDocument } from '../../settings/document.ts'
import { editSettings } from '../../settings/settings.ts'
import { productView, type SupplierAccess, type SupplierTest, testSupplier } from '../../settings/supplier-trial.ts'
import { currentFreeze, SET_UP_CAUSE } from '../../storage/freezes.ts'
import { storeKinds } from '../../stores/kinds.ts'
import type { StoreKind } from '../../stores/store-kind.ts'
import { invalidField, startSellingBody, trySupplierBody } from '../input.ts'
import { type ApiContext, admin, ok, operation, viewer } from '../operation.ts'
import { count, finding, words } from './views.ts'

/** What the demo does when a person sets up a shop in it. */
export interface FirstRun {
  /**
   * Writes the configuration, the key-encryption key and the database of a new installation, and makes its only link. Once the answer has
   * gone out, the demo ends and the installation takes its ports.
   *
   * @throws Failure that leaves nothing behind
   */
  found: (supplier: FoundSupplier, person: string) => Promise<{ link: string; file: string }>
}

export interface FoundSupplier {
  baseUrl: string
  /** The name of a dialect that comes with Quayside. */
  dialect: string
  apiKey: Secret
}

const phases = ['first_run', 'under_way', 'done'] as const
type Phase = (typeof phases)[number]
export const setUpSteps = ['supplier', 'shop', 'products', 'prices', 'guards', 'live'] as const
type Step = (typeof setUpSteps)[number]

const Kind = z.object({
  kind: z.string(),
  label: z.string(),
  isShop: z.boolean(),
  address: z.string().describe('What its address is'),
  credentialsFrom: words.describe('How its owner gets credentials; null for a backend, which needs none'),
  parts: z.array(z.string()).describe('What the parts of the credentials are called'),
})

const SetUp = z.object({
  phase: z
    .enum(phases)
    .describe(
      '`first_run`: a demo, in which a shop can be set up; `under_way`: nothing is bought before its last step',
    ),
  by: words.describe('The one person who sets it up; null: anyone who may'),
  done: z.array(z.enum(setUpSteps)).describe('The steps that are done'),
  dialects: z.array(z.object({ name: z.string(), about: z.string() })).describe('Those that come with Quayside'),
  kinds: z.array(Kind).describe('The kinds of stores that can be connected'),
  supplier: z.object({ baseUrl: z.string(), dialect: z.string(), currency: z.string() }).nullable(),
  keyFile: z.string().describe('Where the key-encryption key is'),
})

const Tested = z.object({
  findings: z.array(finding),
  products: z.array(
    z.object({ productId: z.string(), sku: z.string(), name: z.string(), cost: z.string(), stock: z.string() }),
  ),
  balance: words,
  correct: words.describe('What a person most likely has to correct: `key`, `address`, `dialect` or `again`'),
})

/** Another person may begin after the first one has done nothing for so long. */
const AWAY_MS = 10 * 60_000

/** What the one person at the set-up has tested and not confirmed yet. The key is kept in memory alone. */
interface Trial {
  /** Their name: the same person may come back by another link. */
  person: string
  at: number
  /** `by`: the session in which its products were shown to a person. */
  supplier?: FoundSupplier & { by: string }
}

/** The operations of a set-up. In a demo, one person tests a supplier and founds the installation that takes the demo's place. */
export function setUpOperations(context: ApiContext) {
  const { ordering, stores, settings, config, firstRun } = context
  const { db, now } = ordering
  let trial: Trial | undefined
  const isAway = ({ at }: Trial): boolean => now() - at >= AWAY_MS
  /** @throws Failure `conflict` where this is no demo, or another person is at it */
  const begin = (actor: string): FirstRun => {
    if (!firstRun)
      throw conflict('set_up_done', 'this installation has its supplier already: change it in the settings')
    const person = nameIn(actor)
    const own = trial?.person === person ? trial : undefined
    if (trial && !own && !isAway(trial)) {
      const message = `another person is at the set-up: ${trial.person}. It is free again ten minutes after the last step there`
      throw conflict('set_up_taken', message)
    }
    trial = { ...own, person, at: now() }
    return firstRun
  }
  return {
    viewSetUp: operation({
      route: 'GET /set-up',
      allowed: viewer,
      summary: 'How far the set-up of this installation is, and who is at it.',
      answer: SetUp,
      success: { 200: 'As of now' },
      async handle() {
        const cause = (await currentFreeze(db))?.causes.find(({ id }) => id === SET_UP_CAUSE)
        const phase: Phase = firstRun ? 'first_run' : cause || stores.length === 0 ? 'under_way' : 'done'
        const by = (trial && !isAway(trial) ? trial.person : cause?.actor) ?? null
        return ok({ phase, by, dialects: dialectsNow(), kinds: kindsNow(), ...(await stateOf(context, phase)) })
      },
    }),
    trySupplier: operation({
      route: 'POST /set-up/supplier/try',
      allowed: admin,
      body: trySupplierBody,
      summary: 'In a demo: test a supplier. Reads its balance and three products, buys nothing and stores nothing.',
      answer: Tested,
      success: { 200: 'What was found; the key is not kept where something failed' },
      failures: { 409: '`set_up_taken`: another person is at it; `set_up_done`: this is no demo' },
      async handle({ caller, body: { baseUrl, dialect, apiKey } }) {
        begin(caller.actor)
        const supplier = { baseUrl, dialect, apiKey: new Secret(apiKey) }
        const tested = await testSupplier(accessOf(supplier))
        trial = {
          person: nameIn(caller.actor),
          at: now(),
          ...(tested.correct === null && { supplier: { ...supplier, by: caller.actor } }),
        }
        return ok(viewOf(tested))
      },
    }),
    foundInstallation: operation({
      route: 'POST /set-up/supplier',
      allowed: admin,
      summary:
        'In a demo: found an installation with the supplier that was tested last. It takes the place of the demo, and buys nothing yet.',
      answer: z.object({
        link: z.string().describe('Signs this person in to the new installation, once'),
        file: z.string().describe('The configuration that was written'),
      }),
      success: { 200: 'Founded; the demo ends now' },
      failures: { 409: '`set_up_untried`: test a supplier first; `set_up_taken`; `set_up_done`' },
      async handle({ caller }) {
        const { found } = begin(caller.actor)
        const supplier = trial?.supplier
        if (supplier?.by !== caller.actor)
          throw conflict('set_up_untried', 'no supplier was tested here, or its test failed: test it first')
        const made = await found(supplier, nameIn(caller.actor))
        trial = { person: nameIn(caller.actor), at: now() }
        return ok(made)
      },
    }),
    startSelling: operation({
      route: 'POST /set-up/start',
      needsWorker: true,
      allowed: admin,
      body: startSellingBody,
      summary: 'End the set-up: switch its stores on, and let Quayside buy.',
      answer: z.object({ revision: count }),
      success: { 200: 'Prices and stock go out now; with `buy`, orders from now on are bought' },
      failures: { 409: '`settings_in_file`, `settings_changed`' },
      async handle({ caller, body: { buy, keyBegins } }) {
        if (!config.keyEncryptionKey.reveal().startsWith(keyBegins)) {
          throw invalidField('keyBegins', 'does not begin so: open the file, and keep a copy of it elsewhere')
        }
        const isOff = ({ selling }: Pick<SettingsDocument['stores'][number], 'selling'>): boolean => selling === 'off'
        const { document, revision } = await settings.read()
        const made = document.stores.some(isOff)
          ? await editSettings(settings, { actor: caller.actor, why: 'set-up: live' }, (now) => ({
              ...now,
              stores: now.stores.map((one) => (isOff(one) ? { ...one, selling: 'on' } : one)),
            }))
          : { revision }
        if (buy) await unfreeze(ordering, caller.actor, [SET_UP_CAUSE])
        return ok({ revision: made.revision })
      },
    }),
  }
}

/** The dialects that come with Quayside, the usual one first. */
const dialectsNow = () => {
  const usual = configShape.shape.supplier.shape.dialect.parse(undefined)
  const known = shippedDialects().map(({ name, about }) => ({ name, about }))
  return known.toSorted((one, other) => Number(other.name === usual) - Number(one.name === usual))
}

/** What can be said of each kind of store before one is connected. */
const kindsNow = (): z.input<typeof Kind>[] =>
  (storeKinds as readonly StoreKind[]).map(({ kind, label, shop }) => ({
    kind,
    label,
    isShop: shop !== null,
    address: shop?.help.url ?? 'where its callbacks go: the address of your server',
    credentialsFrom: shop?.help.credentialsFrom ?? null,
    parts: [...(shop?.help.parts ?? [])],
  }))

export const WHY = {
  products: 'set-up: products',
  prices: 'set-up: prices',
  guards: 'set-up: caps and alerts',
} as const

/** What the settings and the revisions say about the steps. */
async function stateOf({ config, stores, settings }: ApiContext, phase: Phase) {
  const hasStore = phase !== 'first_run' && stores.length > 0
  const reasons = new Set((await settings.revisions({ limit: 100 })).map(({ why }) => why))
  const passed: [Step, boolean][] = [
    ['supplier', phase !== 'first_run'],
    ['shop', hasStore],
    ['products', hasStore && (phase === 'done' || reasons.has(WHY.products))],
    ['prices', hasStore && (phase === 'done' || reasons.has(WHY.prices))],
    ['guards', phase === 'done' || reasons.has(WHY.guards)],
    ['live', phase === 'done'],
  ]
  return {
    done: passed.flatMap(([step, isDone]) => (isDone ? [step] : [])),
    supplier: phase === 'first_run' ? null : { ...config.supplier, currency: config.dialectFacts.money.currency },
    keyFile: path.join(path.dirname(path.resolve(config.file)), 'secrets', SECRETS.keyEncryptionKey.file),
  }
}

/** The name of a person: `mira` of `mira (console 0198…)`. */
const nameIn = (actor: string): string => actor.replace(/ \(console .*\)$/, '')

const viewOf = ({ products, ...tested }: SupplierTest) => ({ ...tested, products: products.map(productView) })

/** @throws Failure `invalid` that names the field */
function accessOf({ baseUrl, dialect: name, apiKey }: FoundSupplier): SupplierAccess {
  const dialect = shippedDialects().find((one) => one.name === name)
  if (!dialect) throw invalidField('dialect', 'must be one of the dialects that come with Quayside')
  const address = baseUrlFault(baseUrl, dialect)
  if (address !== undefined) throw invalidField('baseUrl', `must be ${address}`)
  return { baseUrl, dialect: readDialect(dialectFileOf(name, '.')), apiKey }
}
