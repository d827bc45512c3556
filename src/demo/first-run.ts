/** How the demo becomes an installation: what is written, and what holds the port of the console while one ends and the other begins. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import path from 'node:path'
import { checkedConfig, SECRETS } from '../config/config.ts'
import { conflict } from '../errors.ts'
import type { FirstRun } from '../http/api/set-up.ts'
import { checkSetUp, hasDatabase, type SetUp, setUpOf } from '../installation.ts'
import { Secret } from '../secret.ts'
import { secretsOf, writeSetUp } from '../settings/set-up-files.ts'
import { placeName } from '../storage/database-place.ts'

export interface FirstRunParts {
  /** Where the configuration of the installation will be. */
  configFile: string
  env: Record<string, string | undefined>
  /** The ports of the demo, which the installation takes. */
  ports: { service: number; console: number }
  /** Called once everything is written. */
  handOver: (configFile: string) => void
}

/** How long the answer with the link may take to reach its browser before the demo ends. */
const ANSWERED_MS = 300

export function firstRunOf({ configFile: file, env, ports, handOver }: FirstRunParts): FirstRun {
  let isFounded = false
  return {
    found: async ({ baseUrl, dialect, apiKey }, person) => {
      if (isFounded || existsSync(file))
        throw conflict('set_up_done', `${file} is there already: restart Quayside to run it`)
      isFounded = true
      let undo: (() => void) | undefined
      let open: SetUp | undefined
      try {
        const process = {
          listen: { host: '127.0.0.1', port: ports.service },
          console: { listen: { port: ports.console } },
          identity: { supplier: baseUrl, stores: [] },
        }
        const document = { supplier: { baseUrl, dialect }, stores: [] }
        const stored = { revision: 1, document, secrets: new Map([[SECRETS.apiKey.file, apiKey]]) }
        const keyFile = path.join(secretsOf(file), 'key-encryption-key')
        const hasKey = Boolean(
          env.QUAYSIDE_KEY_ENCRYPTION_KEY || env.QUAYSIDE_KEY_ENCRYPTION_KEY_FILE || existsSync(keyFile),
        )
        const keyEncryptionKey = hasKey ? undefined : new Secret(randomBytes(32).toString('base64'))
        const config = checkedConfig(file, process, env, { keyEncryptionKey, stored })
        await checkSetUp(config)
        if (await hasDatabase(config))
          throw conflict('database_exists', `${placeName(config)} is there already: move it away`)
        const key = keyEncryptionKey && { file: keyFile, text: `${keyEncryptionKey.reveal()}\n`, mode: 0o600 }
        const settings = { file, text: `${JSON.stringify(process, undefined, 2)}\n`, mode: 0o644 }
        undo = writeSetUp(secretsOf(file), [...(key ? [key] : []), settings])
        open = await setUpOf(config)
        await open.beginSetUp(person, stored)
        const link = (await open.signInLink(person)).reveal()
        await open.close()
        setTimeout(() => handOver(file), ANSWERED_MS)
        return { file, link: `http://127.0.0.1:${ports.console}/signin?link=${link}&to=/setup` }
      } catch (error) {
        isFounded = false
        await open?.discard()
        undo?.()
        throw error
      }
    },
  }
}

/**
 * Answers every request at the port of the console with a page that asks again by itself, until the returned function is called. A
 * browser that follows the link while the demo ends and the installation begins would else find nothing there.
 */
export async function holdPort(host: string, port: number): Promise<() => Promise<void>> {
  const server = createServer((_request, response) => {
    const headers = {
      'content-type': 'text/plain; charset=utf-8',
      refresh: '1',
      'cache-control': 'no-store',
      connection: 'close',
    }
    response.writeHead(503, headers).end('Quayside starts with your supplier. This page goes on by itself.\n')
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
}
