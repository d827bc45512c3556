/** A program that takes deliveries until it is killed: `node inbox-child.ts <database file> <key>` prints its port. */
import { openDatabase } from '../../src/storage/sqlite/open.ts'
import { serveWebhooks } from './webhook-server.ts'

const [, , file = '', key = ''] = process.argv
const now = () => 1_700_000_000_000
const { port } = await serveWebhooks(openDatabase({ file, now }), key, now)
process.stdout.write(`${port}\n`)
