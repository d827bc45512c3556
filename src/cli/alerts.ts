import { alertText } from '../domain/alert-kinds.ts'
import type { Answer } from './client.ts'
import { type CommandRow, REASON, wholeOf } from './command.ts'
import { ago, key } from './tables.ts'
import { cell, commandLine, instant } from './words.ts'

type Alert = Answer<'POST /alerts/:id/mute'>

/** Returns the name of an actor, without the session or the token that follows the name. */
export const nameIn = (actor: string | null): string => cell(actor).replace(/ \(.*$/, '')

export const aboutOf = ({ order, subject }: Pick<Alert, 'order' | 'subject'>): string =>
  order ? `order ${cell(order)}` : cell(subject)

function stateOf({ state, acknowledgedAt, mutedUntil }: Alert, now: number): string {
  if (state === 'ended') return 'ended'
  if (mutedUntil !== null && Date.parse(mutedUntil) > now) return 'muted'
  return acknowledgedAt ? 'acknowledged' : 'open'
}

export const alerts: CommandRow[] = [
  { command: 'alerts', about: 'what is wrong, and who is notified: list, ack, mute, unmute, test' },
  {
    command: 'alerts list',
    about: 'alerts, the newest first',
    options: { '--state <state>': 'open or ended' },
    help: '\nWhat to do about each open one is in `quayside status`.',
    examples: ['alerts list --state open'],
    call: 'GET /alerts',
    filters: ['state'],
    empty: 'No alert.',
    columns: {
      ID: key('id'),
      SEVERITY: 'severity',
      ALERT: ({ type }) => alertText(type),
      STATE: stateOf,
      AGE: ago('at'),
      ABOUT: aboutOf,
    },
  },
  {
    command: 'alerts ack <id>',
    about: 'acknowledge an alert: no reminders, only its resolution',
    options: REASON,
    call: 'POST /alerts/:id/acknowledge',
    body: ['reason'],
    text: ({ type, acknowledgedBy }) =>
      `${nameIn(acknowledgedBy)} looks after ${cell(alertText(type))}.\nIt is not sent again; its end is.\n`,
  },
  {
    command: 'alerts mute <id>',
    about: 'send nothing of its kind about its subject for a while',
    options: { '--hours <count>': { about: 'for how long, 1-720', fallback: 24, parse: wholeOf('hours') }, ...REASON },
    call: 'POST /alerts/:id/mute',
    body: ['hours', 'reason'],
    text: ({ type, mutedUntil }, { io, args }) =>
      `Nothing of ${cell(alertText(type))} is sent until ${instant(mutedUntil, io.now())}.\nTo end that: ${commandLine(`alerts unmute ${args[0]}`)}\n`,
  },
  {
    command: 'alerts unmute <id>',
    about: 'send what stands of it again',
    options: REASON,
    call: 'POST /alerts/:id/unmute',
    body: ['reason'],
    text: ({ type }) => `What stands of ${cell(alertText(type))} is sent again.\n`,
  },
  {
    command: 'alerts test',
    about: 'send a test message to every channel',
    options: { '--channel <name>': 'to this one alone' },
    call: 'POST /alerts/test',
    body: ['channel'],
    fails: ({ items }) => items.some(({ outcome }) => outcome !== 'sent'),
    page: null,
    empty: 'No channel is configured: no person is notified. See "alerts" in docs/configuration.md.',
    columns: {
      CHANNEL: key('channel'),
      KIND: 'kind',
      OUTCOME: ({ outcome }) => (outcome === 'sent' ? 'sent' : 'NOT SENT'),
      DETAIL: 'detail',
    },
  },
]
