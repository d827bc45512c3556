/** Channels over HTTP. The body is JSON, signed on request, or the text that an incoming webhook of Slack takes. */
import { Agent, request } from 'undici'
import type { Secret } from '../secret.ts'
import { signatureHeaders } from '../stores/backend/signature.ts'
import { causeOfNoAnswer, deadlineSignal, discard } from '../stores/connection.ts'
import type { Channel, SendResult } from './channel.ts'
import type { AlertMessage } from './message.ts'

export interface WebhookChannelOptions {
  format: 'json' | 'slack'
  /** The address of a Slack webhook is a secret: each person who has it can post messages to its channel. */
  address: Secret
  /** The key that signs JSON by Standard Webhooks; absent: the JSON is not signed. */
  key?: Buffer | undefined
  /** Epoch milliseconds. */
  now: () => number
}

/** A receiver that takes longer to answer gets the message again. */
const DEADLINE_MS = 15_000

/** Opens the channel. Every status 2xx confirms a message. Redirects are not followed: they would carry alerts elsewhere. */
export function webhookChannel({ format, address, key, now }: WebhookChannelOptions): Pick<Channel, 'send' | 'close'> {
  const agent = new Agent({ connections: 1 })
  return {
    send: async (message): Promise<SendResult> => {
      const url = address.reveal()
      const body = JSON.stringify(format === 'slack' ? slackBody(message) : jsonBody(message))
      const id = `msg_${message.id}`
      const signal = deadlineSignal(DEADLINE_MS)
      try {
        const answer = await request(url, {
          dispatcher: agent,
          method: 'POST',
          body,
          signal,
          headers: {
            'content-type': 'application/json',
            'user-agent': 'quayside',
            ...authorization(url),
            ...(key ? signatureHeaders([key], { id, at: now(), body }) : { 'webhook-id': id }),
          },
        })
        await discard(answer.body, signal)
        if (answer.statusCode >= 200 && answer.statusCode < 300) return { outcome: 'sent' }
        return { outcome: 'not_sent', detail: `answered ${answer.statusCode}${adviceFor(answer.statusCode)}` }
      } catch (error) {
        return { outcome: 'not_sent', detail: causeOfNoAnswer(error, new URL(url).host, DEADLINE_MS) }
      }
    },
    close: () => agent.destroy(),
  }
}

/** Returns the header with the user and the password of an address, as a browser sends them. */
function authorization(address: string): { authorization?: string } {
  const { username, password } = new URL(address)
  if (username === '' && password === '') return {}
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` }
}

const adviceFor = (status: number): string => {
  if (status >= 300 && status < 400) return ': redirects are not followed; set the address that it leads to'
  if (status === 404 || status === 410) return ': there is nothing at this address'
  return status === 401 || status === 403 ? ': it does not accept the address or the signature' : ''
}

const jsonBody = ({ type, severity, title, text, alerts, more }: AlertMessage): object => ({
  type: type === 'test' ? 'test' : 'alerts',
  data: { kind: type, severity, title, alerts, more, text },
})

/** Returns the body for Slack. Three characters that have a meaning of their own in Slack are escaped. */
const slackBody = ({ text }: AlertMessage): object => ({
  text: `Quayside\n${text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')}`,
})
