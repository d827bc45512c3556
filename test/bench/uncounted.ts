/** Loaded by `--import` before the service: what it would add to the hourly counts is not written, and all else is. */
import Connection from 'better-sqlite3'

const written = { changes: 1, lastInsertRowid: 0 }
const { prepare } = Connection.prototype
Connection.prototype.prepare = function prepareUncounted(this: Connection.Database, text: string) {
  const statement = prepare.call(this, text)
  if (text.startsWith('insert into "hourly_counts"')) statement.run = () => written
  return statement
} as typeof prepare
