/** What a life of the installation left behind: its secrets, everything that others can see, and what was theirs to see. */
import { randomBytes } from 'node:crypto'
import type { Secrets } from './finder.ts'
import type { CanaryInstallation } from './installation.ts'

export interface Ask {
  token?: string | undefined
  /** Sent as JSON; a text is sent as it is. */
  body?: unknown
  headers?: Record<string, string>
  /** The caller is entitled to the secrets in the answer. */
  entitled?: boolean
}

export interface Harvest {
  secrets: Secrets
  /** Must hold no secret: answers, logs, metrics, files, by name. */
  exposed: [where: string, content: Buffer | string][]
  /** Must hold secrets, or the search would find nothing anywhere. */
  entitled: [where: string, content: string][]
  /** A new secret text of a kind. */
  plant: (kind: string) => string
  /** Asks the running service, and keeps what it answers. */
  ask: (method: string, path: string, options?: Ask) => Promise<{ status: number; data: Record<string, unknown> }>
}

export function openHarvest({ url }: CanaryInstallation): Harvest {
  const secrets: Secrets = {}
  const exposed: Harvest['exposed'] = []
  const entitled: Harvest['entitled'] = []
  let planted = 0
  return {
    secrets,
    exposed,
    entitled,
    plant: (kind) => {
      planted += 1
      const text = randomBytes(16).toString('hex')
      secrets[`${kind} ${planted}`] = text
      return text
    },
    ask: async (method, path, { token, body, headers, entitled: shown = false } = {}) => {
      const answer = await fetch(`${url}${path}`, {
        method,
        headers: {
          connection: 'close',
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      })
      const text = await answer.text()
      const head = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join('\n')
      const where = `the answer ${answer.status} to ${method} ${path.split('?')[0]}`
      if (shown) entitled.push([where, text])
      else exposed.push([where, `${head}\n\n${text}`])
      const json = text.startsWith('{') ? (JSON.parse(text) as { data?: Record<string, unknown> }) : {}
      return { status: answer.status, data: json.data ?? {} }
    },
  }
}
