/** The settings of alerts: when they are raised, and the channels by which people are notified. */
import { z } from 'zod'
import { severities } from '../domain/alert-notice.ts'
import { Secret } from '../secret.ts'
import { amount } from '../stores/store-settings.ts'

/** A channel's name is part of the name of a variable and of a file. */
const channelName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,39}$/, 'a name of small letters, digits and dashes, such as "on-duty"')

/** The least severity that a channel is sent. Alerts of a lower severity are not sent to the channel. */
const least = z.enum(severities).default('warning')
const mailAddress = z.email('an e-mail address, such as "duty@shop.example"')

const channelShape = z.discriminatedUnion(
  'kind',
  [
    z.strictObject({ kind: z.literal('webhook'), least }),
    z.strictObject({ kind: z.literal('slack'), least }),
    z.strictObject({ kind: z.literal('email'), least, from: mailAddress, to: z.array(mailAddress).min(1).max(50) }),
  ],
  { unionFallback: true },
)
export type ChannelSettings = z.infer<typeof channelShape>

export const alertsShape = z.strictObject({
  /** The channels by name. The address that a channel sends to is a secret. */
  channels: z.record(channelName, channelShape).default({}),
  /** An open alert that no person has acknowledged is sent again after so many hours. */
  repeatHours: z.number().min(1).max(720).default(24),
  /** A balance below this amount, in the supplier's currency, is too low; null: no amount is too low. */
  balanceBelow: amount.nullable().default(null),
  /** A balance that lasts for fewer days than this is too low; null: days do not matter. The console always warns at 3 days. */
  balanceDays: z.number().positive().max(90).nullable().default(3),
  /** A catalogue that was not read for so many hours is stale; null: its schedule decides. */
  syncStaleHours: z.number().positive().max(720).nullable().default(null),
  /** The disk of the data folder is too full when it has less room than this; null: the disk is not looked at. */
  diskFreeMb: z.number().int().min(1).max(1_000_000).nullable().default(500),
})

export const channelSource = (name: string) => ({
  variable: `QUAYSIDE_ALERT_${name.toUpperCase().replaceAll('-', '_')}`,
  file: `alert-${name}`,
})

/** Where a channel sends to, and the key that signs its messages. */
export interface ChannelAddress {
  url: Secret
  /** The key of a webhook: it signs the messages by Standard Webhooks. */
  key?: Buffer
}

/** Reads the address of a channel. @returns the address, or a sentence that says what the text must be */
export function channelAddress(kind: ChannelSettings['kind'], text: string): ChannelAddress | string {
  const [address = '', secret, ...more] = text.trim().split(/\s+/)
  const isMail = kind === 'email'
  if (!isMail && kind !== 'slack' && secret !== undefined) {
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
    if (!/^whsec_[A-Za-z0-9+/]+=*$/.test(secret) || key.length < 24 || key.length > 64) {
      return 'the secret after the address must be whsec_ and 24 to 64 bytes in base64'
    }
    if (more.length === 0 && isAddress(address, /^https?:$/)) return { url: new Secret(address), key }
  } else if (secret === undefined && isAddress(address, isMail ? /^smtps?:$/ : /^https?:$/)) {
    return { url: new Secret(address) }
  }
  return isMail
    ? 'must be the address of a mail server, such as smtps://user:password@mail.example'
    : `must be an address that starts with https:// or http://${kind === 'slack' ? '' : ', alone or with a secret after a space'}`
}

const isAddress = (text: string, protocol: RegExp): boolean => {
  const url = URL.parse(text)
  return url !== null && protocol.test(url.protocol) && url.hostname !== ''
}
