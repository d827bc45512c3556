/** A channel by e-mail, over the mail server that the owner names. */
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../errors.ts'
import type { Secret } from '../secret.ts'
import type { Channel, SendResult } from './channel.ts'

export interface EmailChannelOptions {
  /** The address of the mail server, with user and password: `smtps://user:password@mail.example`. */
  address: Secret
  from: string
  to: readonly string[]
}

/** The longest wait for one answer of the mail server. A message takes a handful of commands, each with an answer. */
const ANSWER_MS = 15_000
/** The time limit of a whole message, for servers that answer a byte at a time and so never seem silent. */
const DEADLINE_MS = 60_000

/** Opens the channel. A message counts as sent once the mail server has taken it for at least one of the addresses. */
export function emailChannel({ address, from, to }: EmailChannelOptions): Pick<Channel, 'send' | 'close'> {
  const url = new URL(address.reveal())
  const domain = from.slice(from.lastIndexOf('@') + 1)
  const transport = async () => {
    // Most installations send no e-mail: the library is loaded with the first one.
    const { createTransport } = await import('nodemailer')
    return createTransport({
      url: url.href,
      // A password is never sent in clear text to another machine.
      requireTLS: url.username !== '' && !isLoopback(url.hostname),
      connectionTimeout: ANSWER_MS,
      greetingTimeout: ANSWER_MS,
      socketTimeout: ANSWER_MS,
      dnsTimeout: ANSWER_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
    })
  }
  const closed = Promise.withResolvers<undefined>()
  return {
    send: async (message): Promise<SendResult> => {
      const mail = await transport()
      const sending = mail.sendMail({
        from,
        to: [...to],
        subject: `[Quayside] ${message.title}`,
        text: `${message.text}\n`,
        messageId: `<${message.id}@${domain}>`,
        headers: { 'Auto-Submitted': 'auto-generated' },
      })
      try {
        const sent = await Promise.race([sending, closed.promise, sleep(DEADLINE_MS, undefined, { ref: false })])
        if (!sent) return { outcome: 'not_sent', detail: `${url.host} took longer than ${DEADLINE_MS / 1_000} s` }
        if (sent.rejected.length === 0) return { outcome: 'sent' }
        // A second try would send the message twice to the addresses that took it.
        return { outcome: 'sent', detail: `${url.host} refuses ${sent.rejected.length} of ${to.length} addresses` }
      } catch (error) {
        return { outcome: 'not_sent', detail: causeOf(error, url.host) }
      } finally {
        sending.catch(() => {})
        mail.close()
      }
    },
    close: async () => closed.resolve(undefined),
  }
}

const isLoopback = (host: string): boolean => /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(host)

/** Says in a sentence why a message was not sent. The server's words are left out: they may repeat what was sent to it. */
function causeOf(error: unknown, host: string): string {
  const { code, responseCode } = error as { code?: string; responseCode?: number }
  if (code === 'EAUTH') return `${host} refuses user or password`
  if (code === 'ETLS') return `${host} offers no encryption, without which no password is sent`
  if (code === 'ETIMEDOUT') return `${host} did not answer within ${ANSWER_MS / 1_000} s`
  if (responseCode !== undefined) return `${host} answered ${responseCode}`
  if (code === 'EDNS' || code === 'ENOTFOUND') return `the name of ${host} cannot be resolved`
  if (code === 'ESOCKET' || code === 'ECONNECTION') return `${host} cannot be reached`
  return `${host} did not take it: ${code ?? messageOf(error)}`
}
