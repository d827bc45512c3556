import { z } from 'zod'
import { createToken, tokenOfStore } from '../../access/tokens.ts'
import { credentialsFault, credentialsSource } from '../../config/config.ts'
import { ENCRYPT, isClearText } from '../../config/warnings.ts'
import { passesFilter } from '../../domain/listing.ts'
import { availableStock } from '../../domain/offer.ts'
import { unfreeze } from '../../ordering/actions.ts'
import { Secret } from '../../secret.ts'
import type { SettingsDocument } from '../../settings/document.ts'
import { newStoreId } from '../../settings/set-up-files.ts'
import { editSettings } from '../../settings/settings.ts'
import { hasFailed, tryShop } from '../../settings/trial.ts'
import { SET_UP_CAUSE } from '../../storage/freezes.ts'
import { listOffers } from '../../storage/offers.ts'
import { openCallbackSecrets, secretText } from '../../stores/backend/signature.ts'
import { failed } from '../../stores/findings.ts'
import { kindOf } from '../../stores/kinds.ts'
import type { StoreFinding } from '../../stores/store.ts'
import type { ShopAccess, StoreKind } from '../../stores/store-kind.ts'
import { storePolicy } from '../../stores/store-settings.ts'
import { addStoreBody, countProductsBody, invalidField, startSellingBody } from '../input.ts'
import { type ApiContext, admin, configuredStore, ok, operation } from '../operation.ts'
import { count, finding, words } from './views.ts'

const AddedStore = z.object({
  store: words.describe('Its permanent id; null: something failed, and nothing was kept'),
  findings: z.array(finding),
  token: words.describe('For a backend, shown this once: it sends the token with each order'),
  callbackSecret: words.describe('For a backend, shown this once: callbacks are signed with it'),
})

const Counted = z.object({
  offered: count,
  chosen: count,
  inStock: count,
  categories: z.array(z.object({ category: words, offered: count, chosen: count, inStock: count })),
})

const Revised = z.object({ revision: count })

/** The markup of a new store, until a person chooses another one. */
const MARKUP = '20'

type Body<S extends z.ZodType> = z.output<S>

/** The operations of the steps of a set-up. Each tries a change of the settings, and puts it in force where nothing failed. */
export function setUpStepOperations(context: ApiContext) {
  const { ordering, settings, config, randomBytes } = context
  const { db, now, newId, vault } = ordering
  return {
    addStore: operation({
      route: 'POST /stores',
      needsWorker: true,
      allowed: admin,
      body: addStoreBody,
      summary:
        'Connect a store: it is tried, and kept where nothing failed. Nothing is written to it before it is switched on.',
      answer: AddedStore,
      success: { 200: 'What was found' },
      failures: { 409: '`settings_in_file`: the stores are lines of the configuration; `settings_changed`' },
      async handle({ caller, body }) {
        const kind = kindOf(body)
        const met = await meet(kind, body, now)
        const none = { store: null, token: null, callbackSecret: null }
        if (hasFailed(met.findings)) return ok({ ...none, findings: met.findings })
        const id = newStoreId(body.name, randomBytes)
        const deliver = config.publicUrl === null ? 'keys' : kind.deliver
        const store = {
          id,
          kind: kind.kind,
          name: body.name,
          selling: 'off',
          ...met.settings,
          deliver,
          pricing: { markup: { percent: MARKUP } },
        }
        const secrets = met.credentials && { [credentialsSource(id).file]: met.credentials }
        await editSettings(
          settings,
          { actor: caller.actor, why: `adds the store ${body.name}`, secrets },
          (document) => ({
            ...document,
            stores: [...document.stores, store],
          }),
        )
        if (kind.shop) return ok({ ...none, store: id, findings: met.findings })
        const wanted = tokenOfStore(id, `${body.name} (first)`)
        const { token } = await createToken({ db, now, newId, randomBytes }, wanted, caller.actor)
        const [secret] = (await openCallbackSecrets({ db, vault, now, newId })).of(id)
        return ok({
          store: id,
          findings: met.findings,
          token: token.reveal(),
          callbackSecret: secret ? secretText(secret) : null,
        })
      },
    }),
    countProducts: operation({
      route: 'POST /stores/:store/products/count',
      allowed: admin,
      body: countProductsBody,
      summary: 'Count the products that a store would list by other `listings`, by category. Nothing is changed.',
      answer: Counted,
      success: { 200: 'The counts; all are 0 before the catalogue was read' },
      failures: { 404: 'no such store' },
      handle: async ({ path, body: { listings } }) =>
        ok(await countOf(context, { ...configuredStore(context, path.store), listings })),
    }),
    startSelling: operation({
      route: 'POST /set-up/start',
      needsWorker: true,
      allowed: admin,
      body: startSellingBody,
      summary: 'End the set-up: switch its stores on, and let Quayside buy.',
      answer: Revised,
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

/** Tries a store that is in no settings yet. */
async function meet(kind: StoreKind, body: Body<typeof addStoreBody>, now: () => number) {
  if (!kind.shop)
    return { settings: { callbackUrl: body.address }, findings: clearText(body.address), credentials: undefined }
  return meetShop(kind.shop, body, now)
}

async function meetShop(
  shop: ShopAccess,
  { address, key = '', secret = '' }: Body<typeof addStoreBody>,
  now: () => number,
) {
  const questions = await shop.questions()
  const place = questions.readAddress(address)
  if ('fault' in place) throw invalidField('address', `must be ${place.fault}`)
  const text = `${key}:${secret}`
  const credentials = questions.readCredentials(text)
  if (!credentials) throw invalidField('key', credentialsFault({ ...shop, ...questions }, text))
  const unsafe = clearText(place.url)
  if (unsafe.length > 0) return { settings: {}, findings: unsafe, credentials: undefined }
  const { findings, currency } = await tryShop(questions, { url: place.url, credentials, settings: {} }, now)
  const settings = { url: place.url, ...(currency !== null && { currency }) }
  return { settings, findings, credentials: new Secret(text) }
}

/** Keys never leave this machine in clear text. */
const clearText = (address: string): StoreFinding[] =>
  isClearText(address)
    ? [failed('encryption', `keys would travel unencrypted to ${address}. Nothing was sent`, `Please ${ENCRYPT}.`)]
    : []

/** Counts by category what a store would list of what the supplier has. */
async function countOf({ ordering: { db }, config }: ApiContext, store: Parameters<typeof storePolicy>[0]) {
  const { filter } = storePolicy(store, config.rates, config.dialectFacts.money.currency)
  const categories = new Map<
    string | null,
    { category: string | null; offered: number; chosen: number; inStock: number }
  >()
  for (let after = ''; ; ) {
    const offers = await db.query(listOffers({ after, limit: 500 }))
    for (const offer of offers) {
      const of = categories.get(offer.category) ?? { category: offer.category, offered: 0, chosen: 0, inStock: 0 }
      const isChosen = passesFilter(offer, filter)
      of.offered += 1
      if (isChosen) of.chosen += 1
      if (isChosen && availableStock(offer) !== 0) of.inStock += 1
      categories.set(offer.category, of)
    }
    after = offers.at(-1)?.productId ?? after
    if (offers.length < 500) break
  }
  const rows = [...categories.values()].toSorted((a, b) => b.offered - a.offered)
  const sum = (name: 'offered' | 'chosen' | 'inStock') => rows.reduce((total, row) => total + row[name], 0)
  return { offered: sum('offered'), chosen: sum('chosen'), inStock: sum('inStock'), categories: rows.slice(0, 200) }
}
