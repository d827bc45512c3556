/** A browser without pages: it keeps its cookie, sends what browsers send, and follows nothing. */
import { request } from 'node:http'
import { createLink, type PersonRole } from '../../src/access/sessions.ts'
import type { TokenContext } from '../../src/access/tokens.ts'

export interface ConsoleAnswer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
  /** Of the body, as it was sent: compressed, where that was asked for. */
  bytes: number
}

export type Form = Record<string, string | readonly string[]>

interface Sent {
  method?: string
  cookie?: string | undefined
  headers?: Record<string, string>
  /** Where the browser says that the request comes from (default: a page of the console); null: it says nothing. */
  site?: string | null
  /** Sent as a form. A field with several values is sent several times. */
  form?: Form
}

/** One request, with any Host. */
export function visit(address: string, path: string, sent: Sent = {}): Promise<ConsoleAnswer> {
  const { form, cookie, site = 'same-origin', method = form ? 'POST' : 'GET', headers = {} } = sent
  const fields = Object.entries(form ?? {}).flatMap(([name, value]) => [value].flat().map((one) => [name, one]))
  const body = form ? new URLSearchParams(fields as [string, string][]).toString() : undefined
  const all = {
    ...(site !== null && { 'sec-fetch-site': site }),
    connection: 'close',
    ...(cookie !== undefined && { cookie }),
    ...(body !== undefined && {
      'content-type': 'application/x-www-form-urlencoded',
      'content-length': String(Buffer.byteLength(body)),
    }),
    ...headers,
  }
  return new Promise((resolve, reject) => {
    const asked = request(`${address}${path}`, { method, headers: all, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: Buffer.concat(chunks).toString(),
          bytes: Buffer.concat(chunks).length,
        }),
      )
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

/** Makes a link and redeems it. @returns what the browser sends from then on */
export async function signedIn(
  { pages, access }: { pages: { address(): string | null }; access: TokenContext },
  role: PersonRole,
  name = 'mira',
): Promise<string> {
  const { link } = await createLink(access, { name, role }, 'test')
  const answer = await visit(pages.address() ?? '', '/signin', { form: { link: link.reveal() } })
  return cookieIn(answer)
}

/** The cookie that an answer sets, without its attributes. */
export const cookieIn = ({ headers }: ConsoleAnswer): string => String(headers['set-cookie']).split(';')[0] ?? ''
