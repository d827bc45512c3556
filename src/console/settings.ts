/** The page of settings: the settings in force, which secrets are set, how secrets are rotated, and the tokens of the API. */

import { counted } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import type { AnswerOf, ItemOf } from '../http/api/table.ts'
import { actOf, hidden, needsRole, notNow, reasonField, selectField, textField, textsIn, typedFor } from './forms.ts'
import { notice, section } from './lists.ts'
import { mark } from './marks.ts'
import { byAdmin, byOperator, done, type Page, type Visit } from './page.ts'
import { testedPart } from './stores.ts'
import { type Column, table } from './tables.ts'
import { ago, clockTag, type StoreNames, storeName, storeNames } from './words.ts'

type SettingsView = AnswerOf<'viewSettings'>
type Document = AnswerOf<'viewSettingsDocument'>['document']
type TokenView = ItemOf<'listTokens'>

export const settingsPage: Page = {
  path: '/settings',
  navigation: { group: 'This installation', label: 'Settings' },
  show: async (visit) => ({ title: 'Settings', main: await settingsMain(visit) }),
  actions: {
    'rotate-webhook': byAdmin(async ({ call }) => {
      const { webhook, replaces } = await call('rotateWebhook')
      const text = `The webhook ${webhook.id} has a new secret. Remove ${replaces.join(', ')} at the supplier, then retire it here; until then both are valid.`
      return done('Rotated', text)
    }),
    'test-webhook': byOperator(async (visit) => {
      const tested = await visit.call('testWebhook', { body: {} })
      return { title: 'Webhook, tested', main: await settingsMain(visit, testedPart(tested)) }
    }),
    'retire-webhook': byAdmin(async ({ call, form }) => {
      const { id } = await call('retireWebhook', { path: { id: form.get('webhook') } })
      return done('Retired', `Later deliveries through ${id} are counted and have no effect.`)
    }),
    'rotate-key': byAdmin(async ({ call }) => {
      const { before, after } = await call('rotateKeys')
      const text = `The database is sealed under ${after} instead of ${before}. Make the next key the key-encryption key before the next start.`
      return done('Rotated', text)
    }),
    'rotate-api-key': byAdmin(async ({ call, form }) => {
      await call('rotateApiKey', { body: textsIn(form, 'apiKey', 'reason') })
      return done(
        'Rotated',
        'The supplier took the new API key, and Quayside uses it. Revoke the one before at the supplier.',
      )
    }),
    change: byAdmin(async ({ call, form }) => {
      const value = form.has('default') ? null : (form.get('value') ?? '')
      const body = { ...textsIn(form, 'name', 'reason'), value }
      const { revision, changes } = await call('changeSetting', { version: form.get('revision') ?? '', body })
      const [one] = changes
      const said = one
        ? `${one.field} is ${one.after ?? 'its default'} instead of ${one.before ?? 'its default'}`
        : 'Nothing is different'
      return done('Changed', `${said}. It is revision ${revision}, in force now.`)
    }),
    undo: byAdmin(async ({ call, form }) => {
      const { revision } = await call('undoSettings', { version: form.get('revision') ?? '' })
      return done('Undone', `The settings before are in force again, as revision ${revision}.`)
    }),
    'create-token': byAdmin(async (visit) => {
      const { form } = visit
      const { expiresInDays: days, ...whose } = textsIn(form, 'name', 'role', 'expiresInDays')
      const expires = days !== '' && { expiresInDays: /^\d+$/.test(days) ? Number(days) : days }
      const made = await visit.call('createToken', { body: { ...whose, ...expires } })
      const main = await settingsMain({ ...visit, form: new URLSearchParams() }, tokenMade(made))
      return { title: 'New token', main }
    }),
    'revoke-token': byAdmin(async ({ call, form }) => {
      const { name, hint } = await call('revokeToken', { path: { id: form.get('token') } })
      return done('Revoked', `The token ${hint}… of ${name} is worth nothing any more.`)
    }),
  },
}

async function settingsMain(visit: Visit, first?: Html): Promise<Html> {
  const isAdmin = visit.caller.role === 'admin'
  const [settings, webhooks, names, tokens, revisions] = await Promise.all([
    visit.call('viewSettings'),
    visit.call('listWebhooks'),
    storeNames(visit),
    isAdmin ? visit.call('listTokens') : { items: [] },
    visit.call('listSettingsRevisions', { query: { limit: '5' } }),
  ])
  const open = webhooks.items.filter(({ state }) => state !== 'retired')
  // Only tokens that still work are shown. The API's list and the audit keep the others.
  const good = tokens.items.filter(
    ({ revokedAt, expiresAt }) => revokedAt === null && (expiresAt === null || Date.parse(expiresAt) > visit.now),
  )
  return html`<header class="title"><h1>Settings</h1><p>${headline(settings)} ${homeText(settings)}</p><p class="small">The supplier is read by the dialect <code>${settings.dialect.name}</code>. <span class="quiet">${settings.dialect.about}</span></p></header>
${first}
<div class="split"><div class="stack wide">${secretsPart(settings, open, visit.now)}</div>
<div class="stack">${section('secret-actions-h', 'Test and rotate', rotations(visit, settings, open))}</div></div>
<div class="split"><div class="stack wide">${tokensPart(visit, tokens.items.length, good, names)}</div>
<div class="stack">${section('token-actions-h', 'Make and revoke', tokenActions(visit, good, names))}</div></div>
${settings.home === 'database' && revisionsPart(visit, revisions.items)}
${settingsPart(visit, settings)}`
}

const homeText = ({ home, file }: SettingsView): Html =>
  home === 'file'
    ? html`<span class="quiet">They are lines of <code>${file}</code>: change the file, then restart. <code>quayside settings adopt</code> moves them here.</span>`
    : html`<span class="quiet">A change is tried, then in force at once. What belongs to this process is in <code>${file}</code>.</span>`

/** Edits the settings in force, and applies the result. @throws Failure as `applySettings` does */
export async function editSettings({ call }: Visit, reason: string, edit: (document: Document) => Partial<Document>) {
  const { document, revision } = await call('viewSettingsDocument')
  const body = { document: { ...document, ...edit(document) }, reason }
  return call('applySettings', { version: String(revision), body })
}

type StoreSettings = Document['stores'][number]

/** Edits one store of the settings in force. @throws Failure as `applySettings` does */
export const editStore = (visit: Visit, id: string, reason: string, edit: (store: StoreSettings) => object) =>
  editSettings(visit, reason, ({ stores }) => ({
    stores: stores.map((one) => (one.id === id ? { ...one, ...edit(one) } : one)),
  }))

/** The newest revisions, and what undoes the newest one. */
function revisionsPart(visit: Visit, revisions: readonly ItemOf<'listSettingsRevisions'>[]): Html {
  const [newest] = revisions
  return section(
    'revisions-h',
    'Changes',
    html`${table<ItemOf<'listSettingsRevisions'>>({
      none: ['No change yet', 'Each change of a setting is a line here.'],
      caption: 'The newest changes',
      rows: revisions,
      columns: [
        ['Revision', ({ revision }) => String(revision), 'number'],
        ['Made', ({ at, actor }) => html`<span>${ago(at, visit.now)} <small>by ${actor}</small></span>`],
        ['Why', ({ reason }) => reason],
        [
          'What',
          ({ changes }) =>
            html`<span>${changes.slice(0, 3).map(({ field, before, after }) => html`<code>${field}</code> ${before ?? 'default'} → ${after ?? 'default'} `)}${changes.length > 3 && html`<small>and ${changes.length - 3} more</small>`}</span>`,
        ],
      ],
    })}${
      visit.caller.role === 'admin' &&
      newest &&
      newest.revision > 1 &&
      actOf(visit, {
        to: '/settings/undo',
        about: `Puts the settings before revision ${newest.revision} in force again, as a revision of their own.`,
        fields: hidden('revision', String(newest.revision)),
        effect: { Store: 'Prices and stock follow.', Undo: 'Undo that one.' },
        button: `Undo revision ${newest.revision}`,
      })
    }`,
  )
}

/** The form that changes one setting: the one that the address names. */
function changePart(visit: Visit, { settings, revision }: SettingsView): Html | undefined {
  const name = visit.form.get('name') ?? visit.query.get('change')
  const setting = settings.find((one) => one.name === name)
  if (!setting || setting.fileOnly !== null || revision === null || visit.caller.role !== 'admin') return undefined
  const elsewhere = [...visit.faults].filter(([field]) => field !== 'reason')
  return html`<form method="post" action="/settings/change" id="change" class="stack"><h3>Change <code>${setting.name}</code></h3>${hidden('name', setting.name)}${hidden('revision', String(revision))}
<p class="quiet">Now: <code>${setting.value}</code></p>
${textField(visit, { label: 'New value', name: 'value', value: setting.value, maxLength: 20_000 })}
${elsewhere.map(([field, text]) => html`<p class="fault small">${field}: ${text}</p>`)}
<label><input type="checkbox" name="default" value="yes"> Its default instead</label>
${reasonField(visit, 'change')}<button class="go">Change this setting</button></form>`
}

function headline({ secrets, keyInUse, keyConfigured }: SettingsView): Html | string {
  const fault = secrets.find((secret) => secret.fault !== null)
  if (fault) return `${fault.name} cannot be read: ${fault.fault}`
  if (keyInUse !== keyConfigured) {
    return html`The next start needs the key-encryption key <span class="id">${keyInUse}</span>, and the setting still has <span class="id">${keyConfigured}</span>.`
  }
  return 'Every secret that is needed is set.'
}

type SecretRow = Record<'name' | 'about' | 'state' | 'more', Piece>

function secretsPart(
  { secrets, keyInUse }: SettingsView,
  webhooks: readonly ItemOf<'listWebhooks'>[],
  now: number,
): Html {
  const rows: SecretRow[] = [
    ...secrets.map(({ name, file, about, isSet, keyName, fault }) => ({
      name: html`<code>${name}</code>`,
      about,
      state: fault ? mark('stop', 'unreadable') : isSet ? mark('done', 'set') : mark('off', 'unset'),
      more:
        fault ??
        (keyName
          ? html`key <span class="id">${keyName}</span>${keyName === keyInUse && ', in use'}`
          : html`or the file <code>${file}</code>`),
    })),
    ...webhooks.map(({ id, state, createdAt, received, lastReceivedAt }) => ({
      name: html`webhook <span class="id">${id}</span>`,
      about: 'signs what the supplier sends',
      state: state === 'live' ? mark('done', 'set') : mark('held', 'replaced'),
      more: html`since ${clockTag(createdAt, now, 'minutes')}, ${lastReceivedAt ? html`last used ${ago(lastReceivedAt, now)}` : received === 0 && 'not used since the start'}`,
    })),
  ]
  return section(
    'secrets-h',
    'Secrets',
    table<SecretRow>({
      caption: 'Secrets',
      rows,
      columns: [
        ['Secret', ({ name, about }) => html`<span>${name} <small>${about}</small></span>`],
        ['State', ({ state }) => state, 'top'],
        ['More', ({ more }) => html`<span>${more}</span>`],
      ],
    }),
    html`<span class="small quiet">no text of them is ever shown</span>`,
  )
}

function rotations(visit: Visit, settings: SettingsView, webhooks: readonly ItemOf<'listWebhooks'>[]): Html {
  const isAdmin = visit.caller.role === 'admin'
  const next = settings.secrets.find(({ name }) => name === 'QUAYSIDE_NEXT_KEY_ENCRYPTION_KEY')
  const replaced = webhooks.filter(({ state }) => state === 'replaced')
  const isReached = settings.settings.some(({ name, value }) => name === 'publicUrl' && value !== 'null')
  const isReady = next?.keyName != null && next.keyName !== settings.keyInUse
  const why = !next?.isSet
    ? `write one to ${next?.file} beside the configuration; openssl rand -base64 32 makes one`
    : (next.fault ?? 'the next key is the one in use')
  return html`<div>${
    isAdmin &&
    settings.home === 'database' &&
    actOf(visit, {
      summary: 'Rotate the API key of the supplier…',
      to: '/settings/rotate-api-key',
      about: 'Tries a new API key at the supplier. Where it is refused, the one before stays.',
      fields: html`${textField(typedFor(visit, 'rotate-api-key'), { label: 'New API key', name: 'apiKey', isRequired: true, isSecret: true, maxLength: 2_000 })}${reasonField(typedFor(visit, 'rotate-api-key'), 'rotate-api-key')}`,
      effect: {
        Orders: 'Purchases under way end first; orders are taken meanwhile.',
        Then: 'Revoke the key before at the supplier.',
        Undo: 'Undo the revision, while the key before works.',
      },
      button: 'Use this API key',
    })
  }${
    visit.caller.role !== 'viewer' &&
    isReached &&
    webhooks.length > 0 &&
    actOf(visit, {
      summary: 'Test the webhook…',
      to: '/settings/test-webhook',
      about: 'Sends a signed delivery to its public address, as the supplier would, and shows whether it arrives.',
      effect: {
        Deliveries: 'It is none of them: it has no effect and is stored nowhere.',
        Money: 'Nothing is bought.',
      },
      button: 'Send a test delivery',
    })
  }${
    isAdmin &&
    isReached &&
    webhooks.length > 0 &&
    actOf(visit, {
      to: '/settings/rotate-webhook',
      about: 'Creates a second webhook at the supplier, with a new secret, and verifies both from then on.',
      effect: {
        Deliveries: 'None is lost: an event that comes through both has one effect.',
        Then: 'Remove the old webhook at the supplier and retire it here.',
        Undo: 'Retire the other one.',
      },
      button: 'Rotate the webhook secret',
    })
  }${
    isAdmin &&
    replaced.length > 0 &&
    actOf(visit, {
      summary: 'Retire a replaced webhook…',
      to: '/settings/retire-webhook',
      about: 'Takes its secret out of use. Remove it at the supplier first.',
      fields: selectField({
        label: 'Webhook',
        name: 'webhook',
        options: replaced.map(({ id }) => id),
        chosen: visit.form.get('webhook') ?? '',
      }),
      effect: { Deliveries: 'Later ones through it are counted and have no effect.', Undo: 'None.' },
      button: 'Retire this webhook',
      stops: true,
    })
  }${
    isAdmin &&
    isReady &&
    actOf(visit, {
      summary: 'Rotate the key-encryption key…',
      to: '/settings/rotate-key',
      about: html`Puts the database under the next key, <span class="id">${next?.keyName}</span>.`,
      effect: {
        Service: 'Goes on; it needs the new key from its next start on.',
        Backups: 'Those made before need the key that they were made under: keep it.',
        Undo: 'Rotate back, with the old key as the next one.',
      },
      button: `Rotate to ${next?.keyName}`,
    })
  }</div>
${notNow(
  !isAdmin && needsRole('Rotate', 'admin', visit),
  isAdmin && webhooks.length === 0 && 'Rotate the webhook secret: there is no webhook yet.',
  isAdmin &&
    webhooks.length > 0 &&
    !isReached &&
    'Rotate the webhook secret: the configuration has no publicUrl, under which the supplier would reach this service.',
  isAdmin && replaced.length === 0 && 'Retire a webhook: none is replaced.',
  isAdmin && !isReady && `Rotate the key-encryption key: ${why}.`,
  settings.home === 'file' &&
    'Rotate the API key of the supplier: get a new one there, put it in its file, and restart.',
)}
<p class="small quiet">Secrets of callbacks are rotated on the page of each <a href="/stores">store</a>.</p>`
}

function tokensPart({ caller, now }: Visit, total: number, good: readonly TokenView[], names: StoreNames): Html {
  if (caller.role !== 'admin') {
    const why = `Tokens: seeing them needs the role admin; you are ${caller.role}.`
    return section('tokens-h', 'Tokens of the API', notNow(why))
  }
  return section(
    'tokens-h',
    'Tokens of the API',
    table({
      none: [
        'No token',
        html`Stores and people call the API with one. <code>quayside tokens create</code> makes one, and so does this page.`,
      ],
      caption: 'Tokens that are good',
      rows: good,
      columns: [
        ['Name', ({ name, hint }) => html`<span>${name} <small><code>${hint}…</code></small></span>`],
        ['Role', ({ role }) => role, 'top'],
        [
          'For',
          ({ store, scopes }) =>
            store && html`<span>${storeName(names, store)} <small>${scopes.join(', ')}</small></span>`,
        ],
        ['Created', ({ createdAt }) => ago(createdAt, now)],
        ['Expires', ({ expiresAt }) => (expiresAt ? clockTag(expiresAt, now, 'minutes') : 'never')],
      ],
    }),
    html`<span class="small quiet">${counted(good.length, 'token')} in use${total > good.length && `, ${total - good.length} over`}</span>`,
  )
}

function tokenActions(visit: Visit, good: readonly TokenView[], names: StoreNames): Piece {
  const { caller, form } = visit
  if (caller.role !== 'admin') return notNow(needsRole('Create, revoke', 'admin', visit))
  return html`<div>${actOf(visit, {
    summary: 'Create a token for a person…',
    to: '/settings/create-token',
    about: 'Makes a token of the API. Its text is shown once, on the page that follows.',
    fields: html`${textField(typedFor(visit, 'create-token'), { label: 'Whose it is', name: 'name', isRequired: true, maxLength: 100 })}${selectField(
      {
        label: 'Role',
        name: 'role',
        options: [
          ['viewer', 'viewer: sees, changes nothing'],
          ['operator', 'operator: decides, releases, retries, freezes'],
          ['admin', 'admin: everything'],
        ],
        chosen: typedFor(visit, 'create-token').form.get('role') ?? 'viewer',
      },
    )}${textField(typedFor(visit, 'create-token'), { label: 'Days until it expires (empty: never)', name: 'expiresInDays', value: '90', isShort: true })}`,
    effect: {
      Stores: html`Tokens of stores are made by <code>quayside tokens create --store</code>.`,
      Undo: 'Revoke it.',
    },
    button: 'Create the token',
  })}${
    good.length > 0 &&
    actOf(visit, {
      summary: 'Revoke a token…',
      to: '/settings/revoke-token',
      about: 'Ends a token at once.',
      fields: selectField({
        label: 'Token',
        name: 'token',
        options: good.map(
          ({ id, name, hint, role, store }) =>
            [id, `${name}, ${hint}…, ${store === null ? role : storeName(names, store)}`] as const,
        ),
        chosen: form.get('token') ?? '',
      }),
      effect: {
        Store: 'One of a store: it places no more orders until it has another token.',
        Undo: 'None: create another one.',
      },
      button: 'Revoke this token',
      stops: true,
    })
  }</div>
${notNow(good.length === 0 && 'Revoke a token: there is none.')}`
}

const tokenMade = ({ name, role, token }: AnswerOf<'createToken'>): Html =>
  html`${notice({ kind: 'done', word: 'Created', text: `A token of the role ${role} for ${name}.` })}
<section class="sheet stack" aria-labelledby="new-h"><h2 id="new-h">The new token, shown this once</h2><pre tabindex="0" id="token">${token}</pre><p class="small quiet">Hand it over now. When you leave this page it is gone.</p></section>`

type Setting = SettingsView['settings'][number]

function settingsPart(visit: Visit, view: SettingsView): Html {
  const { settings, secrets, revision } = view
  const mayChange = revision !== null && visit.caller.role === 'admin'
  const databaseIsSecret = secrets.some(({ name }) => name === 'QUAYSIDE_DATABASE_URL')
  const fromOf = ({ name, isDefault, fileOnly }: Setting): Html | string => {
    if (isDefault) return html`<span class="quiet">default</span>`
    if (name === 'database.url' && databaseIsSecret) return 'secret'
    return revision !== null && fileOnly === null ? 'revision' : 'configuration'
  }
  const own = settings.filter(({ isDefault }) => !isDefault)
  return section(
    'settings-h',
    'Settings in force',
    html`${changePart(visit, view)}${settingsTable('Settings that are named', own, fromOf, mayChange)}
<details class="more"><summary>All ${settings.length} settings, with the defaults</summary>${settingsTable('All settings', settings, fromOf, mayChange)}</details>`,
    html`<span class="small quiet">${counted(own.length, 'setting')} of ${settings.length} ${own.length === 1 ? 'is' : 'are'} named by the configuration</span>`,
  )
}

const settingsTable = (
  caption: string,
  rows: readonly Setting[],
  fromOf: (row: Setting) => Html | string,
  mayChange: boolean,
): Html =>
  table<Setting>({
    caption,
    rows,
    columns: [
      ['Setting', ({ name }) => html`<code>${name}</code>`],
      ['Value', ({ value }) => html`<code>${value}</code>`],
      ['From', fromOf, 'top'],
      ...(mayChange ? [['Change', changeLink] satisfies Column<Setting>] : []),
    ],
  })

/** A setting that stays in the file says why. */
const changeLink = ({ name, fileOnly }: Setting): Html =>
  fileOnly === null
    ? html`<a href="/settings?change=${encodeURIComponent(name)}#change">Change…</a>`
    : html`<span class="quiet">file only: ${fileOnly}</span>`
