/** The page of alerts: what is wrong now, who looks after it, and whether people are notified. */

import { type AlertAbout, aboutAlert, alertPath, alertText } from '../domain/alert-kinds.ts'
import { counted, duration } from '../domain/figures.ts'
import { type Html, html, type Piece } from '../domain/html.ts'
import { severalLabels } from '../domain/labels.ts'
import { Failure } from '../errors.ts'
import type { StatusView } from '../http/api/status.ts'
import type { ItemOf } from '../http/api/table.ts'
import { splitActor } from './audit.ts'
import {
  act,
  actOf,
  forOperators,
  maybeReason,
  reasonField,
  selectField,
  textField,
  textsIn,
  typedFor,
} from './forms.ts'
import { listPage } from './list-page.ts'
import { section } from './lists.ts'
import { mark } from './marks.ts'
import { byAdmin, byOperator, done, type Shown, type Visit } from './page.ts'
import { actOnSeveral, doToEach, tick } from './several.ts'
import { empty, table } from './tables.ts'
import { ago, clockTag, countedInWords, type StoreNames, sentenceOf } from './words.ts'

type AlertView = ItemOf<'listAlerts'>

/** Returns the open alerts: critical alerts first, then the others. Both groups have their newest alert first. */
const openOf = ({ alerts }: StatusView): AlertView[] =>
  alerts
    .filter(({ state }) => state === 'open')
    .sort((a, b) => Number(b.severity === 'critical') - Number(a.severity === 'critical'))

export const alertsPage = listPage({
  path: '/alerts',
  navigation: {
    group: 'Needs attention',
    label: 'Alerts',
    waiting: (status) => openOf(status).filter(({ acknowledgedAt }) => acknowledgedAt === null).length,
  },
  operation: 'listAlerts',
  nouns: ['alert', 'alerts'],
  ask: () => ({ query: { state: 'ended' } }),
  headline: ({ status }) => headline(openOf(status), status.alertChannels),
  above: ({ visit, status, mayAct, stores }) =>
    html`${section('open-h', 'Open', openPart(visit, openOf(status), mayAct, stores))}
${section('channels-h', 'Who is notified', html`${channelPart(status.alertChannels, mayAct, visit.now)}${visit.caller.role === 'admin' && channelActs(visit, status.alertChannels)}`)}`,
  heading: () => ['Over'],
  none: ['None was over yet', 'Alerts that ended stay here for 90 days.'],
  caption: 'Alerts that are over',
  columns: ({ now, stores }) => [
    ['Alert', ({ type }) => alertText(type)],
    ['About', (one) => aboutCell(one, stores)],
    ['What', alertNote],
    ['Raised', ({ at }) => clockTag(at, now)],
    ['Over', ({ endedAt }) => endedAt && clockTag(endedAt, now)],
  ],
  actions: {
    attend: byOperator(attend),
    channel: byAdmin(async ({ call, form }) => {
      const { channel, address, from, to, ...given } = textsIn(form, ...channelFields)
      const mail = given.kind === 'email' && { from, to: to.split(/[\s,]+/).filter(Boolean) }
      const body = { ...given, ...mail, ...(address && { address }) }
      await call('putAlertChannel', { path: { channel }, body })
      return done('Kept', `The channel ${channel} is in force. Send a test message now, and look whether it arrives.`)
    }),
    'remove-channel': byAdmin(async ({ call, form }) => {
      const channel = form.get('channel')
      await call('removeAlertChannel', { path: { channel }, body: textsIn(form, 'reason') })
      return done('Removed', `Nothing is sent to ${channel} any more.`)
    }),
    test: byOperator(async (visit): Promise<Shown> => {
      const { items } = await visit.call('testAlertChannels', { body: {} })
      return alertsPage.show(visit, triedPart(items))
    }),
  },
})

const channelFields = ['channel', 'kind', 'least', 'address', 'from', 'to', 'reason'] as const

interface Attending {
  text: string
  operation: 'acknowledgeAlert' | 'muteAlert' | 'unmuteAlert'
  body: object
  said: string
  done: string
}

/** What a person can do about alerts: each entry has an operation of the API, its body, and what is said of it afterwards. */
const attending: Record<string, Attending> = {
  acknowledge: {
    text: 'I look after them',
    operation: 'acknowledgeAlert',
    body: {},
    said: 'acknowledged',
    done: 'You look after them. People are notified once more, when they are over.',
  },
  ...Object.fromEntries(
    [1, 8, 24, 168].map((hours) => [
      `mute-${hours}`,
      {
        text: `Mute for ${hours === 168 ? 'a week' : counted(hours, 'hour')}`,
        operation: 'muteAlert',
        body: { hours },
        said: 'muted',
        done: `Nothing is said of them for ${hours === 168 ? 'a week' : counted(hours, 'hour')}, nor of the next ones about the same.`,
      },
    ]),
  ),
  unmute: {
    text: 'Mute no longer',
    operation: 'unmuteAlert',
    body: {},
    said: 'muted no longer',
    done: 'What stands of them is said again.',
  },
}

async function attend(visit: Visit): Promise<Shown> {
  const chosen = attending[visit.form.get('do') ?? '']
  if (!chosen) throw new Failure('invalid', 'choose what is to be done')
  const body = { ...chosen.body, ...maybeReason(visit.form) }
  const label = { ...severalLabels.attend, said: chosen.said, next: chosen.done }
  return doToEach(visit, label, '/alerts', ([, id]) => visit.call(chosen.operation, { path: { id }, body }))
}

function headline(open: readonly AlertView[], channels: readonly ItemOf<'listAlertChannels'>[]): string {
  const silent = channels.filter(({ failingSince }) => failingSince !== null).length
  const notified =
    channels.length === 0
      ? ' No channel is configured: people see them here alone.'
      : silent > 0
        ? ` ${countedInWords(silent, 'channel does', 'channels do')} not work.`
        : ''
  if (open.length === 0) return `Nothing is wrong that Quayside knows of.${notified}`
  const critical = open.filter(({ severity }) => severity === 'critical').length
  const which = critical === 0 ? '' : open.length === 1 ? ', and it is critical' : `, ${critical} of them critical`
  return `${countedInWords(open.length, 'alert is', 'alerts are')} open${which}.${notified}`
}

function aboutCell(one: AlertView, stores: StoreNames): Piece {
  const [about, path] = [aboutAlert(one, stores), alertPath(one)]
  return about && (path === undefined ? about : html`<a href="${path}"><bdi>${about}</bdi></a>`)
}

/** Says what an alert noted, without a command where a link leads to the same. */
export const alertNote = (one: AlertAbout & Pick<AlertView, 'note'>): string =>
  one.note ? sentenceOf(one.note.replace(alertPath(one) ? /[:;,] (?:then |run )?"?quayside [a-z][^;]*/g : '', '')) : ''

/** Says what to do, with the page that helps. A command stands only where no page does the same. */
function adviceCell(one: AlertView): Html {
  const path = alertPath(one)
  return html`<span>${sentenceOf(one.advice)} ${path === undefined ? html`<code>${one.command}</code>` : html`<a href="${path}">See it<span class="hide">: ${alertText(one.type)}</span></a>`}</span>`
}

function attended({ acknowledgedBy, acknowledgedAt, mutedUntil }: AlertView, now: number): Piece {
  const isMuted = mutedUntil !== null && Date.parse(mutedUntil) > now
  if (acknowledgedAt === null && !isMuted) return undefined
  return html`<span>${acknowledgedAt !== null && html`${acknowledgedBy && splitActor({ actor: acknowledgedBy }).name} looks after it. `}${isMuted && html`Muted until ${clockTag(mutedUntil, now)}.`}</span>`
}

function openPart(visit: Visit, items: readonly AlertView[], may: boolean, stores: StoreNames): Html {
  const { now } = visit
  if (items.length === 0) {
    return empty('No open alerts', 'What needs a person comes here, and goes when it is over.')
  }
  return html`${table({
    caption: 'Open alerts',
    rows: items,
    columns: [
      [
        'Alert',
        (one) =>
          html`${may && tick(visit, 'attend', [`${alertText(one.type)} of ${one.at}`, one.id])}${alertText(one.type)}`,
      ],
      ['Severity', ({ severity }) => mark(severity === 'critical' ? 'stop' : 'held', severity), 'top'],
      ['About', (one) => aboutCell(one, stores)],
      ['What', alertNote],
      ['Do', adviceCell],
      ['Since', ({ at }) => ago(at, now)],
      ['Looked after', (one) => attended(one, now)],
    ],
  })}${forOperators('Acknowledge, mute', visit, attendForm(visit))}`
}

const attendForm = (visit: Visit): Html =>
  actOnSeveral(visit, severalLabels.attend, '/alerts', 'attend', {
    isOpen: false,
    fields: html`${selectField({
      label: 'What',
      name: 'do',
      options: Object.entries(attending).map(([value, { text }]) => [value, text]),
      chosen: visit.form.get('do') ?? 'acknowledge',
    })}${textField(visit, { label: 'Reason, for the audit log (may be left out)', name: 'reason' })}`,
  })

function channelPart(channels: readonly ItemOf<'listAlertChannels'>[], may: boolean, now: number): Html {
  if (channels.length === 0) {
    return empty(
      'No channel',
      html`Add a webhook, Slack or e-mail here, or name one in the configuration under <code>alerts.channels</code>.`,
    )
  }
  return html`${table({
    caption: 'Channels of alerts',
    rows: channels,
    columns: [
      ['Channel', ({ channel }) => channel],
      [
        'State',
        ({ failingSince }) => (failingSince === null ? mark('done', 'works') : mark('stop', 'takes nothing')),
        'top',
      ],
      ['Kind', ({ kind }) => kind],
      ['Sent', ({ least }) => (least === 'critical' ? 'critical alerts' : 'all alerts')],
      ['Last message', ({ sentAt }) => (sentAt === null ? 'none yet' : ago(sentAt, now))],
      [
        'Why',
        ({ error, failingSince }) =>
          error &&
          html`<span>${sentenceOf(error)}${failingSince !== null && html` Since ${clockTag(failingSince, now)}.`}</span>`,
      ],
    ],
  })}${
    may &&
    html`<div>${act({
      summary: 'Send a test message…',
      to: '/alerts/test',
      about: `Sends a test message to ${channels.length === 1 ? 'the channel' : `all ${channels.length} channels`}, now.`,
      effect: { Money: 'Nothing is bought.', Undo: 'Not once it has left.' },
      button: channels.length === 1 ? 'Send it to the channel' : `Send it to all ${channels.length} channels`,
    })}</div>`
  }`
}

/** What adds, changes and removes a channel. Where the settings are in the file, the attempt says so. */
function channelActs(visit: Visit, channels: readonly ItemOf<'listAlertChannels'>[]): Html {
  return html`<div>${actOf(visit, {
    summary: 'Add or change a channel…',
    to: '/alerts/channel',
    about: 'Sends alerts to one more place, or to another one. A name that exists is changed.',
    fields: html`${textField(typedFor(visit, 'channel'), { label: 'Name, such as on-duty', name: 'channel', isRequired: true, isShort: true, at: 'channel' })}${selectField({ label: 'Kind', name: 'kind', options: ['webhook', 'slack', 'email'], chosen: typedFor(visit, 'channel').form.get('kind') ?? 'webhook' })}${selectField(
      {
        label: 'What is sent',
        name: 'least',
        options: [
          ['warning', 'all alerts'],
          ['critical', 'critical alerts'],
        ],
        chosen: typedFor(visit, 'channel').form.get('least') ?? 'warning',
      },
    )}${textField(typedFor(visit, 'channel'), { label: 'Address: https://… or smtps://user:password@host (empty: as before)', name: 'address', isSecret: true, maxLength: 2_000 })}${textField(typedFor(visit, 'channel'), { label: 'E-mail: sender', name: 'from' })}${textField(typedFor(visit, 'channel'), { label: 'E-mail: recipients', name: 'to' })}${reasonField(typedFor(visit, 'channel'), 'channel')}`,
    effect: {
      Secrets: 'The address is sealed, and never shown again.',
      Undo: 'Undo the revision, on the page of settings.',
    },
    button: 'Keep this channel',
  })}${
    channels.length > 0 &&
    actOf(visit, {
      summary: 'Remove a channel…',
      to: '/alerts/remove-channel',
      about: 'Sends nothing to it any more.',
      fields: html`${selectField({ label: 'Channel', name: 'channel', options: channels.map(({ channel }) => channel), chosen: typedFor(visit, 'remove-channel').form.get('channel') ?? '', at: 'remove' })}${reasonField(typedFor(visit, 'remove-channel'), 'remove-channel')}`,
      effect: { Alerts: 'They stay on this page.', Undo: 'Undo the revision, on the page of settings.' },
      button: 'Remove this channel',
      stops: true,
    })
  }</div>`
}

function triedPart(items: readonly ItemOf<'testAlertChannels'>[]): Html {
  return section(
    'tried-h',
    'The test',
    table({
      caption: 'What became of the test messages',
      rows: items,
      columns: [
        ['Channel', ({ channel }) => channel],
        ['Outcome', ({ outcome }) => (outcome === 'sent' ? mark('done', 'sent') : mark('stop', 'not sent')), 'top'],
        ['Took', ({ ms }) => duration(ms), 'number'],
        ['Why', ({ detail }) => detail && sentenceOf(detail)],
      ],
    }),
  )
}
