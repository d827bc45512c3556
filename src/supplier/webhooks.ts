import type { EventName, SupplierWebhook } from '../domain/placement.ts'
import { Failure } from '../errors.ts'
import { Secret } from '../secret.ts'
import { putAt } from './dialect.ts'
import { unreadField } from './fields.ts'
import { judge, type Link, postHeaders, send, unreadable } from './read.ts'
import { readWebhook, unwrap } from './records.ts'
import { ANSWER_MAX_BYTES } from './request.ts'

export interface CreatedWebhook {
  webhook: SupplierWebhook
  /** Those that were asked for: the wanted ones that the supplier has a name for. */
  events: EventName[]
  /** Shown by the supplier this once. */
  secret: Secret
}

/**
 * Registers a webhook, with one request: one made twice would send every delivery twice, once under an unknown secret.
 *
 * @throws Failure `unknown_outcome` when it may have been made and its secret did not reach us
 * @see Reseller API v1.1, section 4, POST /webhooks
 */
export async function createWebhook(
  link: Link,
  { url, events }: { url: string; events: EventName[] },
): Promise<CreatedWebhook> {
  const { dialect } = link
  const { names } = dialect.event
  const known = events.filter((event) => names[event] !== null)
  if (known.length === 0) throw new Failure('invalid', `the dialect ${dialect.name} names no event to be sent`)
  const body: Record<string, unknown> = {}
  putAt(body, dialect.webhookRequest.url, url)
  putAt(
    body,
    dialect.webhookRequest.events,
    known.map((event) => names[event]),
  )
  await link.pacer.turn()
  const ended = await send(link, link.agent, {
    method: 'POST',
    path: '/webhooks',
    headers: postHeaders(link),
    body: JSON.stringify(body),
    deadlineMs: link.fetchDeadlineMs,
    bodyMaxBytes: ANSWER_MAX_BYTES,
  })
  const answer = judge(link, ended)
  if ('failure' in answer) {
    const { code, reason } = answer.failure
    const refused =
      ended.stage === 'not_sent' ||
      (ended.stage === 'answered' && ended.status >= 400 && ended.status < 500 && ended.status !== 408) ||
      // Under 2xx the supplier has to say it in its envelope.
      (ended.stage === 'answered' && ended.status < 300 && (code === 'rejected' || reason === 'unauthorized'))
    throw refused ? answer.failure : unknownWebhook(answer.failure)
  }
  const data = unwrap(answer.json, dialect)
  const webhook = data.ok ? readWebhook(data.value, dialect) : data
  if (!webhook.ok) throw unknownWebhook(unreadable(webhook, answer.requestId))
  const { secret, ...rest } = webhook.value
  if (!secret)
    throw unknownWebhook(unreadable(unreadField('webhook.secret', dialect.webhook.secret, undefined), answer.requestId))
  return { webhook: rest, events: known, secret: new Secret(secret.reveal()) }
}

const unknownWebhook = (cause: Failure): Failure =>
  new Failure('unknown_outcome', `the webhook may have been made: ${cause.message}`, { cause })
