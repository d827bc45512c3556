/** The PostgreSQL server of a torture run, and the standby that takes its place without what was stored last. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, rmSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { freePort } from '../../support/free-port.ts'
import { newestBinaries, ownFolder, whenUp } from '../../support/postgres-server.ts'
import { startProxy } from './proxy.ts'

export type Servers = Awaited<ReturnType<typeof startServers>>

export interface Server {
  data: string
  port: number
  process: ChildProcess
}

export const urlOf = (port: number): string => `postgres://quayside@127.0.0.1:${port}/postgres`

/** How long a standby may take to have all that the primary has. */
const CATCH_UP_MS = 20_000

/** @param logFile what the servers write */
export async function startServers(logFile: string) {
  const { folder, execute, newData, initialised, run, end } = serversIn('torture', openSync(logFile, 'a'), {
    // Enough for a standby that was cut off.
    wal_keep_size: '1GB',
    wal_retrieve_retry_interval: '200ms',
  })

  const data = await initialised()
  let primary = await run(data, await freePort())
  const replication = await startProxy({ targetPort: () => primary.port, damage: () => ({ kind: 'none' }) })
  let standby = await followed()

  /** Makes a standby of the primary, which follows it through a way that can be cut. */
  async function followed(): Promise<Server> {
    const copy = newData()
    const from = `host=127.0.0.1 port=${replication.port} user=quayside`
    await execute('pg_basebackup', ['-D', copy, '-d', from, '-c', 'fast', '-R', '--no-sync'])
    return run(copy, await freePort())
  }

  /** Until the standby has all that is stored now. */
  async function caughtUp(): Promise<void> {
    const [now] = await ask(primary.port, 'select pg_current_wal_insert_lsn() as at')
    for (const until = performance.now() + CATCH_UP_MS; performance.now() < until; await sleep(20)) {
      const [row] = await ask(standby.port, 'select pg_last_wal_replay_lsn() >= $1::pg_lsn as done', [now?.at])
      if (row?.done === true) return
    }
    throw new Error('the standby does not follow the primary')
  }

  return {
    url: () => urlOf(primary.port),
    /** Of the standby, which only reads. */
    standbyUrl: () => urlOf(standby.port),
    port: () => primary.port,
    /** Of the lease of the worker: one more with each process that takes it. */
    epoch: async () => Number((await ask(primary.port, 'select epoch from worker_lease'))[0]?.epoch ?? 0),
    /** As `pg_ctl restart -m` does it. */
    restart: async (how: 'fast' | 'immediate') => {
      await end(primary, how === 'fast' ? 'SIGINT' : 'SIGQUIT')
      primary = await run(primary.data, primary.port)
    },
    /** Copies the files of the server, as the snapshot of a machine has them. @returns puts the copy in their place */
    copy: async (): Promise<() => Promise<void>> => {
      const kept = newData()
      const from = `host=127.0.0.1 port=${primary.port} user=quayside`
      await execute('pg_basebackup', ['-D', kept, '-d', from, '-c', 'fast', '--no-sync'])
      return async () => {
        await end(primary, 'SIGQUIT')
        rmSync(primary.data, { recursive: true, force: true })
        primary = await run(kept, primary.port)
      }
    },
    caughtUp,
    /**
     * From here on the standby gets nothing; after `ms` the primary ends at once and the standby takes its place.
     *
     * @param between called when there is no server
     * @returns bytes of the log that no server has any more
     */
    failOver: async (ms: number, between: () => Promise<unknown>): Promise<number> => {
      await replication.away()
      await sleep(ms)
      const [last] = await ask(primary.port, 'select pg_current_wal_insert_lsn() as at')
      await end(primary, 'SIGQUIT')
      await between()
      const [lost] = await ask(
        standby.port,
        'select $1::pg_lsn - greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) as bytes, pg_promote(true, 60) as promoted',
        [last?.at],
      )
      if (lost?.promoted !== true) throw new Error('the standby does not become the primary')
      rmSync(primary.data, { recursive: true, force: true })
      primary = standby
      return Number(lost.bytes)
    },
    /** A standby of the new primary. */
    follow: async () => {
      await replication.back()
      // One that follows what was put back in the place of its primary is ahead of it.
      if (standby !== primary) await end(standby, 'SIGQUIT')
      standby = await followed()
    },
    close: async () => {
      await replication.close()
      await Promise.all([end(primary, 'SIGQUIT'), end(standby, 'SIGQUIT')])
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/**
 * Servers whose files lie in one folder.
 *
 * @param log where they write
 * @param beneath where that folder is made
 */
export function serversIn(name: string, log: number | 'ignore', settings: Record<string, string>, beneath?: string) {
  const { folder, owner } = ownFolder(name, beneath)
  const bin = newestBinaries()
  const execute = (program: string, args: string[]) => promisify(execFile)(path.join(bin, program), args, owner)
  let made = 0
  const newData = (): string => {
    made += 1
    return path.join(folder, `data-${made}`)
  }
  return {
    folder,
    execute,
    newData,
    /** Files of a new server. */
    initialised: async (...more: string[]): Promise<string> => {
      const data = newData()
      await execute('initdb', ['-D', data, '-U', 'quayside', '-A', 'trust', '-E', 'UTF8', '--no-sync', ...more])
      return data
    },
    run: async (data: string, port: number): Promise<Server> => {
      const all = { listen_addresses: '127.0.0.1', port, unix_socket_directories: folder, ...settings }
      const options = Object.entries(all).flatMap(([key, value]) => ['-c', `${key}=${value}`])
      const process = spawn(path.join(bin, 'postgres'), ['-D', data, ...options], {
        ...owner,
        stdio: ['ignore', log, log],
      })
      await whenUp(urlOf(port), process)
      return { data, port, process }
    },
    end: async ({ process }: Server, signal: NodeJS.Signals): Promise<void> => {
      if (process.exitCode !== null || process.signalCode !== null) return
      const ended = once(process, 'exit')
      process.kill(signal)
      await ended
    },
  }
}

async function ask(port: number, text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: urlOf(port) })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text, values)).rows
  } finally {
    await client.end()
  }
}
