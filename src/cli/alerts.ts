import { alertText, storedKind } from '../domain/alert-kinds.ts'
import type { Call, CommandRow } from './command.ts'
import { ago, asRows, cell, commandLine, exitCodes, instant, key, type Row, table } from './output.ts'
import { wholeText } from './stores.ts'

const REASON = { '--reason <text>': 'why, for the audit' }
const reasonOf = ({ option }: Call) => ({ reason: option('reason') })

/** A name, without the session or the token that follows it. */
export const nameIn = (actor: unknown): string => cell(actor).replace(/ \(.*$/, '')

/** The number of its order in the store, else the id of its subject. */
export const aboutOf = ({ order, subject }: Row): string => (order ? `order ${cell(order)}` : cell(subject))

/** What a person did about it, or that it is over. */
function stateOf({ state, acknowledgedAt, mutedUntil }: Row, now: number): string {
  if (state === 'ended') return 'ended'
  if (typeof mutedUntil === 'string' && Date.parse(mutedUntil) > now) return 'muted'
  return acknowledgedAt ? 'acknowledged' : 'open'
}

/** Alerts, and what people do about them. */
export const alerts: CommandRow[] = [
  { command: 'alerts', about: 'what is wrong, and who is notified: list, ack, mute, unmute, test' },
  {
    command: 'alerts list',
    about: 'alerts, the newest first',
    options: { '--state <state>': 'open or ended' },
    help: '\nWhat to do about each open one is in `quayside status`.\n\nExample:\n  quayside alerts list --state open',
    call: 'GET /alerts',
    filters: ['state'],
    empty: 'No alert.',
    columns: {
      ID: key('id'),
      SEVERITY: 'severity',
      ALERT: ({ type }) => alertText(storedKind(cell(type))),
      STATE: stateOf,
      AGE: ago('at'),
      ABOUT: aboutOf,
    },
  },
  {
    command: 'alerts ack <id>',
    about: 'look after an alert: it is not sent again; its end is',
    options: REASON,
    call: 'POST /alerts/{id}/acknowledge',
    body: reasonOf,
    text: ({ type, acknowledgedBy }) =>
      `${nameIn(acknowledgedBy)} looks after ${alertText(storedKind(cell(type)))}.\nIt is not sent again; its end is.\n`,
  },
  {
    command: 'alerts mute <id>',
    about: 'send nothing of its kind about its subject for a while',
    options: {
      '--hours <count>': { about: 'for how long, 1-720', fallback: '24', parse: wholeText('hours') },
      ...REASON,
    },
    call: 'POST /alerts/{id}/mute',
    body: (call) => ({ hours: Number(call.option('hours')), ...reasonOf(call) }),
    text: ({ type, mutedUntil }, { io, args }) =>
      `Nothing of ${alertText(storedKind(cell(type)))} is sent until ${instant(mutedUntil, io.now())}.\nTo end that: ${commandLine(`alerts unmute ${args[0]}`)}\n`,
  },
  {
    command: 'alerts unmute <id>',
    about: 'send what stands of it again',
    options: REASON,
    call: 'POST /alerts/{id}/unmute',
    body: reasonOf,
    text: ({ type }) => `What stands of ${alertText(storedKind(cell(type)))} is sent again.\n`,
  },
  {
    command: 'alerts test',
    about: 'send a test message to every channel',
    options: { '--channel <name>': 'to this one alone' },
    act: async (call) => {
      const tried = await call.client.post(['alerts', 'test'], { channel: call.option('channel') })
      const rows = asRows(tried.items)
      call.print(tried, () => triedText(rows, call))
      return rows.every(({ outcome }) => outcome === 'sent') ? exitCodes.ok : exitCodes.failed
    },
  },
]

function triedText(rows: Row[], { width, io }: Call): string {
  if (rows.length === 0) {
    return 'No channel is configured: no person is notified. See "alerts" in docs/configuration.md.\n'
  }
  return table(
    rows,
    {
      CHANNEL: key('channel'),
      KIND: 'kind',
      OUTCOME: ({ outcome }) => (outcome === 'sent' ? 'sent' : 'NOT SENT'),
      DETAIL: 'detail',
    },
    width,
    io.now(),
  )
}
