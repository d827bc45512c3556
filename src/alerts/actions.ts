/** What people do about alerts: acknowledge, mute, and try the channels. */
import type { Context } from '../context.ts'
import { Failure } from '../errors.ts'
import { acknowledgeAlert, alertById, muteAlerts, unmuteAlerts } from '../storage/alerts.ts'
import { need } from '../storage/database.ts'
import { audited } from '../storage/evidence.ts'
import type { Channel } from './channel.ts'
import { testMessage } from './message.ts'
import { takeAlerts } from './watcher.ts'

type Acting = Pick<Context, 'db' | 'now' | 'newId'>

/** @throws Failure `not_found` */
async function alertNamed(acting: Acting, id: string) {
  // The lists of alerts also show alerts that are raised and not in the table of alerts yet.
  await takeAlerts(acting)
  return need(acting.db, alertById(id), 'alert', id)
}

/**
 * Records that a person takes care of the alert. Channels send no reminder of it any more, only its end.
 *
 * @throws Failure `not_found`; `conflict` when the alert is over
 */
export async function acknowledge(acting: Acting, id: string, actor: string, reason?: string): Promise<void> {
  const { endedAt } = await alertNamed(acting, id)
  if (endedAt !== null) throw new Failure('conflict', 'the alert is over')
  const { db, now } = acting
  const acknowledged = { acknowledgedAt: now(), acknowledgedBy: actor }
  await db.commit([acknowledgeAlert(id, acknowledged), audited(acting, actor, 'alert.acknowledge', id, reason)])
}

/**
 * Mutes the alert for a while, and with it any later alert of its kind and subject. No channel sends a muted alert.
 *
 * @param ms how long; 0 ends the muting
 * @throws Failure `not_found`
 */
export async function mute(acting: Acting, id: string, ms: number, actor: string, reason?: string): Promise<void> {
  const { db, now } = acting
  const { type, subject } = await alertNamed(acting, id)
  if (ms === 0) {
    await db.commit([unmuteAlerts(type, subject, now()), audited(acting, actor, 'alert.unmute', id, reason)])
    return
  }
  const until = now() + ms
  const detail = `until ${new Date(until).toISOString()}${reason ? `: ${reason}` : ''}`
  await db.commit([muteAlerts(type, subject, until), audited(acting, actor, 'alert.mute', id, detail)])
}

/** Sends a test message to every channel, or to the named channel only. @returns what became of each message */
export async function tryChannels(
  acting: Acting & Pick<Context, 'monotonic'>,
  channels: readonly Channel[],
  name: string | undefined,
  actor: string,
) {
  const { db, newId, monotonic } = acting
  const tried = channels.filter((channel) => name === undefined || channel.name === name)
  if (tried.length > 0) await db.commit([audited(acting, actor, 'alert.test', name ?? 'channels')])
  return Promise.all(
    tried.map(async (channel) => {
      const began = monotonic()
      const { outcome, detail = null } = await channel.send(testMessage(newId()))
      return { channel: channel.name, kind: channel.kind, outcome, detail, ms: Math.round(monotonic() - began) }
    }),
  )
}
