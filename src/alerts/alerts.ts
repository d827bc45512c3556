/** Puts the parts of alerts together: the watcher, and each channel that the configuration names. */
import type { Config } from '../config/config.ts'
import type { Context } from '../context.ts'
import { forgetChannels } from '../storage/alerts.ts'
import { type Channel, type Notifying, notifyNext } from './channel.ts'
import { emailChannel } from './email-channel.ts'
import { type ConditionSources, limitsOf, readConditions, type ServiceFacts } from './facts.ts'
import { alertWatcher } from './watcher.ts'
import { webhookChannel } from './webhook-channel.ts'

export type Alerts = Awaited<ReturnType<typeof openAlerts>>

export interface AlertParts extends Pick<Context, 'db' | 'now' | 'newId' | 'log'> {
  config: Config
  service: Omit<ServiceFacts, 'conditions' | 'stores'>
  watched: Pick<ConditionSources, 'secretSuspect' | 'installedAt' | 'diskFreeMb'>
  wakeOutbox: () => void
}

const HOUR = 3_600_000

export async function openAlerts({ config, service: known, watched, wakeOutbox, ...context }: AlertParts) {
  const { db, now } = context
  const sources: ConditionSources = {
    ...watched,
    db,
    now,
    stores: config.stores,
    currency: config.dialectFacts.money.currency,
    limits: limitsOf(config),
    lastBackupAt: known.lastBackupAt,
  }
  const service: ServiceFacts = {
    ...known,
    stores: config.stores,
    conditions: (status) => readConditions(sources, status),
  }
  const channels = openChannels(config, now)
  await db.commit(forgetChannels(channels.map(({ name }) => name)))
  let closed = false
  let isChecked = false
  const watch = alertWatcher({ ...context, service, wakeOutbox })
  const notifying: Notifying = {
    ...context,
    repeatMs: config.alerts.repeatHours * HOUR,
    consoleUrl: config.console.url,
    isClosed: () => closed,
  }
  return {
    /** Facts of the running service, for `GET /status`. */
    service,
    /** The channels that the configuration names. */
    channels,
    /** For each worker, a function that does one batch. Each channel is a worker, so a slow channel delays no other channel. */
    work: [
      async () => {
        // If watching fails, the channels still send the alerts that are known.
        let taken = 0
        try {
          taken = await watch()
        } finally {
          isChecked ||= taken === 0
        }
        return taken
      },
      // No channel sends before the first check: it would report alerts as open that ended while the service was away.
      ...channels.map((channel) => async () => (isChecked ? notifyNext(notifying, channel) : 0)),
    ],
    /** Aborts the messages that are being sent, so that no channel delays the end of the service. */
    close: async () => {
      closed = true
      await Promise.all(channels.map((channel) => channel.close()))
    },
  }
}

/** @param config the channels, and where each sends to */
export function openChannels(
  { alerts, alertAddresses }: { alerts: Pick<Config['alerts'], 'channels'> } & Pick<Config, 'alertAddresses'>,
  now: () => number,
): Channel[] {
  return Object.entries(alerts.channels).flatMap(([name, settings]): Channel[] => {
    const address = alertAddresses.get(name)
    if (!address) return []
    const { kind, least } = settings
    if (kind === 'email') {
      return [{ name, kind, least, ...emailChannel({ address: address.url, from: settings.from, to: settings.to }) }]
    }
    const format = kind === 'slack' ? 'slack' : 'json'
    return [{ name, kind, least, ...webhookChannel({ format, address: address.url, key: address.key, now }) }]
  })
}
