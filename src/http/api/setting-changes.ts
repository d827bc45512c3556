import { z } from 'zod'
import { createToken, tokenOfStore } from '../../access/tokens.ts'
import { tryChannels } from '../../alerts/actions.ts'
import { openChannels } from '../../alerts/alerts.ts'
import { alertsShape, channelAddress, channelSource } from '../../config/alert-settings.ts'
import { credentialsFault, credentialsSource, SECRETS } from '../../config/config.ts'
import { ENCRYPT, isClearText } from '../../config/warnings.ts'
import { conflict, Failure } from '../../errors.ts'
import { assertIdle, retireStore } from '../../ordering/actions.ts'
import { Secret } from '../../secret.ts'
import { type SettingsDocument, withSetting } from '../../settings/document.ts'
import { newStoreId } from '../../settings/set-up-files.ts'
import { editSettings } from '../../settings/settings.ts'
import { hasFailed, tryShop } from '../../settings/trial.ts'
import { openCallbackSecrets, secretText } from '../../stores/backend/signature.ts'
import { failed } from '../../stores/findings.ts'
import { kindOf } from '../../stores/kinds.ts'
import type { StoreFinding } from '../../stores/store.ts'
import type { StoreKind } from '../../stores/store-kind.ts'
import {
  addStoreBody,
  apiKeyBody,
  channelBody,
  credentialsBody,
  invalidField,
  reasonBody,
  sellingBody,
  settingBody,
} from '../input.ts'
import { type ApiContext, configuredStore, ok, operation } from '../operation.ts'
import { CONFLICTS, changing, ifMatch, revisionIn } from './settings.ts'
import { finding, words } from './views.ts'

const AddedStore = z.object({
  store: words.describe('Its permanent id; null: something failed, and nothing was kept'),
  findings: z.array(finding),
  token: words.describe('For a backend, shown this once: it sends the token with each order'),
  callbackSecret: words.describe('For a backend, shown this once: callbacks are signed with it'),
})

/** Operations that change one thing of the settings. Each is a revision: it is tried first, and can be undone. */
export function settingChangeOperations(context: ApiContext) {
  const { ordering, settings, randomBytes } = context
  const { db, now, newId, vault } = ordering
  const change = async (by: Parameters<typeof editSettings>[1], edit: Parameters<typeof editSettings>[2]) =>
    ok(await editSettings(settings, by, edit))
  const channelsEdited =
    (edit: (channels: SettingsDocument['alerts']['channels']) => object) => (document: SettingsDocument) => ({
      ...document,
      alerts: { ...document.alerts, channels: edit(document.alerts.channels) },
    })
  /** Sends a test alert by a channel that is not kept yet. @throws Failure `invalid` where it is not taken */
  const assertTaken = async (name: string, settings: object, address: string, actor: string): Promise<void> => {
    const channel = alertsShape.shape.channels.safeParse({ [name]: settings })
    const [fault] = channel.error?.issues ?? []
    if (!channel.data) throw invalidField(String(fault?.path.at(1) ?? 'kind'), fault?.message ?? 'unknown')
    const reached = channelAddress(channel.data[name]?.kind ?? 'webhook', address)
    if (typeof reached === 'string') throw invalidField('address', reached)
    const alerts = { alerts: { channels: channel.data }, alertAddresses: new Map([[name, reached]]) }
    const opened = openChannels(alerts, now)
    const [tried] = await tryChannels(ordering, opened, name, actor)
    await Promise.all(opened.map((one) => one.close()))
    if (tried?.outcome === 'sent') return
    const why = tried?.detail ?? 'no answer'
    throw invalidField('address', `the test alert was not sent: ${why}. Correct the address, then try again`)
  }

  return {
    addStore: operation({
      ...changing,
      route: 'POST /stores',
      summary:
        'Connect a store: it is tried, and kept where nothing failed. Nothing is written to it before it is switched on.',
      body: addStoreBody,
      answer: AddedStore,
      success: { 200: 'What was found' },
      async handle({ caller: { actor }, body }) {
        const kind = kindOf(body)
        assertNewName((await settings.read()).document, body.name)
        const { settings: known, findings, sealed } = await meet(kind, body, now)
        const none = { store: null, token: null, callbackSecret: null, findings }
        if (hasFailed(findings)) return ok(none)
        const { name } = body
        const id = newStoreId(name, randomBytes)
        const deliver = context.config.publicUrl === null ? 'keys' : kind.deliver
        const pricing = { markup: { percent: body.markup } }
        const store = { selling: 'off', deliver, ...body.settings, ...known, id, kind: kind.kind, name, pricing }
        const secrets = sealed && { [credentialsSource(id).file]: sealed }
        const stores = (document: SettingsDocument) => {
          // Another request of the same name may have come while this one was tried.
          assertNewName(document, name)
          return { ...document, stores: [...document.stores, store] }
        }
        await editSettings(settings, { actor, why: `adds the store ${name}`, secrets }, stores)
        if (kind.shop) return ok({ ...none, store: id })
        const { token } = await createToken({ db, now, newId, randomBytes }, tokenOfStore(id, `${name} (first)`), actor)
        const [secret] = (await openCallbackSecrets({ db, vault, now, newId })).of(id)
        const callbackSecret = secret ? secretText(secret) : null
        return ok({ store: id, findings, token: token.reveal(), callbackSecret })
      },
    }),
    changeSetting: operation({
      ...changing,
      route: 'POST /settings/change',
      summary: 'Change one setting, without a restart.',
      ifMatch,
      body: settingBody,
      async handle({ caller, version, body: { name, value, reason } }) {
        const { document } = await settings.read()
        const edited = withSetting(document, name, value)
        if ('fault' in edited) throw invalidField('name', edited.fault)
        const wanted = { base: revisionIn(version), document: edited.document, why: reason }
        return ok(await settings.apply(wanted, caller.actor))
      },
    }),
    setSelling: operation({
      ...changing,
      route: 'POST /stores/:store/selling',
      summary: 'Pause a store, or let it sell. A paused store shows no stock; orders are taken and bought as before.',
      body: sellingBody,
      failures: { 404: 'no such store', 409: CONFLICTS },
      handle({ caller: { actor }, path, body: { selling, reason } }) {
        const { id, selling: before } = configuredStore(context, path.store)
        if (before === 'off' && selling === 'paused')
          throw conflict('store_off', `the store ${id} is not live yet: nothing is sold there that could be paused`)
        return change({ actor, why: reason }, ({ stores, ...others }) => ({
          ...others,
          stores: stores.map((one) => (one.id === id ? { ...one, selling } : one)),
        }))
      },
    }),
    changeCredentials: operation({
      ...changing,
      route: 'POST /stores/:store/credentials',
      summary:
        'Give Quayside new credentials of a shop. They are tried first, and the ones before stay if the shop refuses.',
      body: credentialsBody,
      failures: { 404: 'no such store, or it is a backend', 409: CONFLICTS },
      handle({ caller: { actor }, path, body: { key, secret, reason } }) {
        const store = configuredStore(context, path.store)
        const { shop } = kindOf(store)
        if (!shop) throw new Failure('not_found', `the store ${store.id} is a backend, which has no credentials here`)
        const text = `${key}:${secret}`
        const before = store.credentials?.secret.reveal()
        // The shop may sign with its secret of before for a while.
        const both = before !== undefined && before !== secret ? `${text}:${before}` : text
        const sealed = shop.readCredentials(both) ? both : text
        if (!shop.readCredentials(sealed)) throw invalidField('key', credentialsFault(shop, text))
        const secrets = { [credentialsSource(store.id).file]: new Secret(sealed) }
        return change({ actor, why: reason, secrets }, (document) => document)
      },
    }),
    removeStore: operation({
      ...changing,
      route: 'POST /stores/:store/remove',
      summary:
        'Remove a store of which nothing is under way, and which sells nothing if it is a shop. Its orders and keys stay readable, and its tokens end.',
      body: reasonBody,
      success: { 200: 'Removed' },
      failures: {
        404: 'no such store',
        409: `\`store_under_way\`: pause a shop, and let what it has end first; ${CONFLICTS}`,
      },
      async handle({ caller: { actor }, path, body: { reason } }) {
        const { id, selling, ...store } = configuredStore(context, path.store)
        const sells = kindOf(store).shop !== null && selling === 'on'
        await assertIdle(ordering, id, sells)
        const by = { actor, why: reason, also: () => retireStore(ordering, id, sells, actor, reason) }
        return change(by, (document) => ({ ...document, stores: document.stores.filter((one) => one.id !== id) }))
      },
    }),
    rotateApiKey: operation({
      ...changing,
      route: 'POST /supplier/api-key',
      summary: 'Use another API key of the supplier. It is tried first, and the one before stays if it is refused.',
      body: apiKeyBody,
      handle: ({ caller: { actor }, body: { apiKey, reason } }) =>
        change({ actor, why: reason, secrets: { [SECRETS.apiKey.file]: new Secret(apiKey) } }, (document) => document),
    }),
    putAlertChannel: operation({
      ...changing,
      route: 'POST /alert-channels/:channel',
      summary: 'Add a channel for alerts, or change it. Without an address, that of before stays.',
      body: channelBody,
      async handle({ caller: { actor }, path, body: { address, reason, test, kind, least, from, to } }) {
        const channel = { kind, least, ...(kind === 'email' && { from, to }) }
        if (test) await assertTaken(path.channel, channel, address ?? '', actor)
        const secrets = address ? { [channelSource(path.channel).file]: new Secret(address) } : undefined
        return change(
          { actor, why: reason, secrets },
          channelsEdited((channels) => ({ ...channels, [path.channel]: channel })),
        )
      },
    }),
    removeAlertChannel: operation({
      ...changing,
      route: 'POST /alert-channels/:channel/remove',
      summary: 'Remove a channel for alerts.',
      body: reasonBody,
      failures: { 404: 'no such channel', 409: CONFLICTS },
      handle({ caller: { actor }, path, body: { reason } }) {
        return change(
          { actor, why: reason },
          channelsEdited((channels) => {
            const { [path.channel]: gone, ...others } = channels
            if (!gone) throw new Failure('not_found', `there is no channel ${path.channel}`)
            return others
          }),
        )
      },
    }),
  }
}

function assertNewName({ stores }: Pick<SettingsDocument, 'stores'>, wanted: string): void {
  if (stores.some(({ name }) => name === wanted))
    throw invalidField('name', 'is the name of a store that is connected already: give this one another')
}

interface MetStore {
  settings: object
  findings: StoreFinding[]
  /** The credentials of a shop, as they are sealed. */
  sealed?: Secret
}

/** Tries a store that is in no settings yet. */
async function meet(
  { shop }: StoreKind,
  { address, key = '', secret = '', settings: given }: z.output<typeof addStoreBody>,
  now: () => number,
): Promise<MetStore> {
  if (!shop) {
    if (!URL.canParse(address))
      throw invalidField('address', 'must be an address such as https://shop.example/callbacks')
    return { settings: { callbackUrl: address }, findings: clearText(address) }
  }
  const questions = await shop.questions()
  const place = questions.readAddress(address)
  if ('fault' in place) throw invalidField('address', `must be ${place.fault}`)
  const text = `${key}:${secret}`
  const credentials = questions.readCredentials(text)
  if (!credentials) throw invalidField('key', credentialsFault({ ...shop, ...questions }, text))
  const unsafe = clearText(place.url)
  if (unsafe.length > 0) return { settings: {}, findings: unsafe }
  const { findings, currency } = await tryShop(questions, { url: place.url, credentials, settings: given }, now)
  const settings = { url: place.url, ...(currency !== null && { currency }) }
  return { settings, findings, sealed: new Secret(text) }
}

/** Keys never leave this machine in clear text. */
const clearText = (address: string): StoreFinding[] =>
  isClearText(address)
    ? [failed('encryption', `keys would travel unencrypted to ${address}. Nothing was sent`, `Please ${ENCRYPT}.`)]
    : []
