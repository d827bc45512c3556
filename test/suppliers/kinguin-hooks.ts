/** Kinguin's webhooks: the secret is in a header, several tries, no order among them. */
import { setTimeout as sleep } from 'node:timers/promises'

export interface HookOptions {
  /** Whether an answer with a body is a failure. The documents ask for "any 2xx status code and with empty body". */
  body?: 'counts as failure' | 'is ignored'
  /** How many tries: the documents say "several". */
  tries?: number
  /** The wait before the next try. */
  againMs?: number
  /** Up to this long a webhook is late, so that a later one may come first. */
  lateMs?: number
  /** As the documents write it, or as it should be written. */
  contentType?: 'aplication/json' | 'application/json'
}

export interface Target {
  url: string
  secret: string
}

export function createHooks(options: HookOptions = {}) {
  const { body = 'counts as failure', tries = 4, againMs = 200, lateMs = 30, contentType = 'aplication/json' } = options
  const closed = new AbortController()
  const counts = { sent: 0, taken: 0, givenUp: 0 }
  /** The answers to every try. */
  const answers: { status: number; body: string }[] = []
  let target: Target | undefined

  async function post(name: string, text: string, { url, secret }: Target): Promise<boolean> {
    try {
      const answer = await fetch(url, {
        method: 'POST',
        headers: {
          'content-type': contentType,
          'x-event-name': name,
          'x-event-secret': secret,
          connection: 'close',
        },
        body: text,
        redirect: 'manual',
        signal: AbortSignal.any([closed.signal, AbortSignal.timeout(5_000)]),
      })
      const said = await answer.text()
      answers.push({ status: answer.status, body: said })
      return answer.ok && (body === 'is ignored' || said === '')
    } catch {
      return false
    }
  }

  async function deliver(name: string, text: string, to: Target): Promise<void> {
    for (let tried = 0; tried < tries && !closed.signal.aborted; tried += 1) {
      await sleep(tried === 0 ? Math.random() * lateMs : againMs * tried)
      if (await post(name, text, to)) {
        counts.taken += 1
        return
      }
    }
    counts.givenUp += 1
  }

  return {
    counts,
    answers,
    /** What a person enters in the dashboard. */
    register: (to: Target | undefined) => {
      target = to
    },
    send: (name: 'order.status' | 'product.update', payload: object): void => {
      if (!target || closed.signal.aborted) return
      counts.sent += 1
      deliver(name, JSON.stringify(payload), target).catch(() => undefined)
    },
    close: () => closed.abort(),
  }
}
