/**
 * Loaded by `--import` before the service: counts how often it waits for the disk, which is once for each commit and twice for each
 * marker, its file and its folder; answers an IPC message with both.
 */
import { open } from 'node:fs/promises'
import Connection from 'better-sqlite3'

const counted = { commits: 0, files: 0 }

const { prepare } = Connection.prototype
Connection.prototype.prepare = function prepareCounted(this: Connection.Database, text: string) {
  const statement = prepare.call(this, text)
  if (text !== 'commit') return statement
  const run = statement.run as (...params: unknown[]) => Connection.RunResult
  statement.run = (...params: unknown[]) => {
    counted.commits += 1
    return run.apply(statement, params)
  }
  return statement
} as typeof prepare

const handle = await open(import.meta.filename)
const handles = Object.getPrototypeOf(handle) as { sync: () => Promise<void> }
await handle.close()
const { sync } = handles
handles.sync = function countedSync() {
  counted.files += 1
  return sync.call(this)
}

process.on('message', (asked) => {
  if (asked === 'syncs') process.send?.(counted)
})
process.channel?.unref()
