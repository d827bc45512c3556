/**
 * A program that takes deliveries until its standard input ends, and then closes its database:
 * `node receiver.ts <database file> <key> FULL|NORMAL` prints its port and process id.
 */
import Connection from 'better-sqlite3'
import type { Database } from '../../../src/storage/database.ts'
import { openDatabase } from '../../../src/storage/sqlite/open.ts'
import { sqliteDatabase } from '../../../src/storage/sqlite/sqlite.ts'
import { serveWebhooks } from '../../support/webhook-server.ts'

const [, , file = '', key = '', synchronous = ''] = process.argv
const now = () => 1_700_000_000_000

/** The same engine on a connection that answers before the disk has: what the program must never do. */
async function withoutSync(): Promise<Database> {
  await openDatabase({ file, now }).close()
  const connection = new Connection(file)
  connection.pragma('journal_mode = WAL')
  connection.pragma('synchronous = NORMAL')
  return sqliteDatabase(connection, {
    onFatal: (failure) => {
      throw failure
    },
  })
}

const db = synchronous === 'NORMAL' ? await withoutSync() : openDatabase({ file, now })
const { port, close } = await serveWebhooks(db, key, now)
process.stdin.resume().once('end', async () => {
  await close()
  await db.close()
})
process.stdout.write(`${port} ${process.pid}\n`)
