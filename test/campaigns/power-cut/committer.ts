/** A program that commits one after the other: `node committer.ts <database file> <count>` says `committed-<n>` after each. */
import { settings } from '../../../src/storage/schema.ts'
import { openDatabase } from '../../../src/storage/sqlite/open.ts'
import { build } from '../../../src/storage/statement.ts'

const [, , file = '', count = ''] = process.argv
const db = openDatabase({ file, now: () => 1_700_000_000_000 })
for (let n = 1; n <= Number(count); n += 1) {
  const name = `committed-${String(n).padStart(6, '0')}`
  await db.commit([{ statement: build.insert(settings).values({ name, value: '', changedAt: 0 }), rows: 1 }])
  process.stdout.write(`${name}\n`)
}
await db.close()
