/** A program that takes deliveries until it is killed: `node inbox-child.ts <database file> <key> [dialect file]` prints its port. */
import { readDialect } from '../../src/dialect/dialect.ts'
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { serveWebhooks } from './webhook-server.ts'

const [, , file = '', key = '', dialect] = process.argv
const now = () => 1_700_000_000_000
const { port } = await serveWebhooks(
  openDatabase({ file, now }),
  key,
  now,
  dialect === undefined ? undefined : readDialect(dialect),
)
process.stdout.write(`${port}\n`)
