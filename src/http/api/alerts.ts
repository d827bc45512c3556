import { z } from 'zod'
import { acknowledge, mute, tryChannels } from '../../alerts/actions.ts'
import { readChannels } from '../../alerts/channel.ts'
import { type StandingAlert, standingOf } from '../../alerts/standing.ts'
import type { StoredKind } from '../../domain/alert-kinds.ts'
import { severities } from '../../domain/alert-notice.ts'
import { alertWords } from '../../domain/labels.ts'
import { Failure } from '../../errors.ts'
import { alertById, allAlertChannels, listAlerts } from '../../storage/alerts.ts'
import { need } from '../../storage/database.ts'
import { alertBody, alertStates, alertTestBody, choice, muteBody } from '../input.ts'
import { type ApiContext, ok, operation, operator, viewer } from '../operation.ts'
import { listOperation } from './list-operation.ts'
import { at, component, count, maybeAt, meaningsText, view, words } from './views.ts'

const NAMES = `Name of the alert; another version may have others\n\n${meaningsText(alertWords)}`

export const Alert = view(
  component('Alert', {
    id: z.string(),
    type: z.custom<StoredKind>().meta({ description: NAMES, examples: ['freeze'], override: { type: 'string' } }),
    severity: z.enum(severities).describe('`critical`: money or keys are at stake, or nothing is sold'),
    subject: words.describe('The id of what it is about; null for the service as a whole'),
    order: words.describe('The number of the order in its store; null where it is about none'),
    note: words,
    advice: z.string().describe('What to do'),
    command: z.string().meta({ description: 'The command to begin with', examples: ['quayside reviews'] }),
    at,
    state: z.enum(alertStates).describe('Ended when what it reports is over'),
    endedAt: maybeAt.describe('When it was found to be over'),
    acknowledgedAt: maybeAt.describe('When a person said that it is being looked after'),
    acknowledgedBy: words,
    mutedUntil: maybeAt.describe('No channel is sent anything of it until then'),
  }),
  ({ isOver, ...alert }: StandingAlert) => ({ ...alert, state: isOver ? ('ended' as const) : ('open' as const) }),
)

export const AlertChannel = component('AlertChannel', {
  channel: z.string(),
  kind: z.enum(['webhook', 'slack', 'email']),
  least: z.enum(severities).describe('Less severe alerts are not sent to it'),
  sentAt: maybeAt.describe('When it last took a message'),
  failingSince: maybeAt.describe('Since then it takes none'),
  nextTryAt: maybeAt,
  error: words.describe('Why it takes none, or for whom the last message was not taken'),
})

const Tried = z.object({
  channel: z.string(),
  kind: z.enum(['webhook', 'slack', 'email']),
  outcome: z.enum(['sent', 'not_sent']),
  detail: words.describe('Why it was not sent, or for whom'),
  ms: count.describe('How long it took, in milliseconds'),
})

export function alertOperations({ ordering, alerting }: ApiContext) {
  const { db } = ordering
  const alertAt = async (id: string) => standingOf(await need(db, alertById(id), 'alert', id))
  const act = { allowed: operator, answer: Alert, failures: { 404: 'unknown id' } } as const
  return {
    listAlerts: listOperation({
      route: 'GET /alerts',
      allowed: viewer,
      filters: { state: choice(alertStates, 'Only alerts that are open, or that ended') },
      summary: 'Alerts, newest first: what each is about, what to do, and who looks after it.',
      item: Alert,
      success: { 200: 'A page of alerts; those that ended go after 90 days' },
      db,
      read: listAlerts,
      show: async (rows) => rows.map((row) => standingOf(row)),
    }),
    listAlertChannels: operation({
      route: 'GET /alerts/channels',
      allowed: viewer,
      summary: 'The channels by which people are notified of alerts, and how sending to each goes.',
      answer: z.object({ items: z.array(AlertChannel) }),
      success: { 200: 'All that the configuration names' },
      handle: async () => ok({ items: readChannels(await db.query(allAlertChannels()), alerting.channels) }),
    }),
    acknowledgeAlert: operation({
      route: 'POST /alerts/:id/acknowledge',
      ...act,
      body: alertBody,
      summary: 'Look after an alert: it is not sent again; that it is over is.',
      success: { 200: 'Acknowledged' },
      failures: { ...act.failures, 409: 'it is over' },
      async handle({ caller, path: { id }, body: { reason } }) {
        await acknowledge(ordering, id, caller.actor, reason)
        return ok(await alertAt(id))
      },
    }),
    muteAlert: operation({
      route: 'POST /alerts/:id/mute',
      ...act,
      body: muteBody,
      summary: 'Send nothing of this kind of alert about this subject for a while, also not of the next one.',
      success: { 200: 'Muted' },
      async handle({ caller, path: { id }, body: { hours, reason } }) {
        await mute(ordering, id, hours * 3_600_000, caller.actor, reason)
        return ok(await alertAt(id))
      },
    }),
    unmuteAlert: operation({
      route: 'POST /alerts/:id/unmute',
      ...act,
      body: alertBody,
      summary: 'Send what stands of this kind of alert about this subject again.',
      success: { 200: 'Not muted' },
      async handle({ caller, path: { id }, body: { reason } }) {
        await mute(ordering, id, 0, caller.actor, reason)
        return ok(await alertAt(id))
      },
    }),
    testAlertChannels: operation({
      route: 'POST /alerts/test',
      needsWorker: true,
      allowed: operator,
      body: alertTestBody,
      summary: 'Send a test message to every channel, or to one.',
      answer: z.object({ items: z.array(Tried) }),
      success: { 200: 'What became of each; empty where no channel is configured' },
      failures: { 404: 'no such channel' },
      async handle({ caller, body: { channel } }) {
        if (channel !== undefined && !alerting.channels.some(({ name }) => name === channel)) {
          throw new Failure('not_found', `the configuration has no channel ${channel}`)
        }
        return ok({ items: await tryChannels(ordering, alerting.channels, channel, caller.actor) })
      },
    }),
  }
}
