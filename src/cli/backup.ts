import type { Command } from 'commander'
import { age, asRow, cell, type Row } from './cell.ts'
import { listCommand } from './list-command.ts'
import type { Session } from './program.ts'
import { serviceCommand } from './service-command.ts'
import { wrap } from './table.ts'

/** A database of several gigabytes is copied, checked and sealed within this time. */
const DEADLINE_MS = 15 * 60_000

/** `backup`: a whole, checked and sealed copy of the database, made by the running service. */
export function addBackup(root: Command, session: Session): void {
  const backup = root.command('backup').description('back up the database now; see the backups that are kept')
  backup.addHelpText('after', EXAMPLES)
  serviceCommand(backup, session, async (call) => {
    const made = asRow(await call.client.post(['backups'], undefined, undefined, DEADLINE_MS))
    const { file, bytes, keyName } = asRow(made.backup)
    call.print(made, () => {
      const text = `${sizeText(bytes)}, sealed under the key-encryption key ${cell(keyName)}. Keep both, apart from each other.`
      return `Backed up: ${cell(made.folder)}/${cell(file)}\n${wrap(text, call.width).join('\n')}\n`
    })
    return undefined
  })

  listCommand(backup.command('list').description('backups that are kept, the newest first'), session, {
    path: ['backups'],
    whole: true,
    empty: 'There is no backup yet. `quayside backup` makes one.',
    columns: ({ io }) => [
      { title: 'FILE', of: (row) => cell(row.file), keep: true },
      { title: 'AGE', of: (row) => (row.readable ? age(row.madeAt, io.now()) : 'unreadable'), right: true },
      { title: 'SIZE', of: (row) => sizeText(row.bytes), right: true },
      { title: 'EPOCH', of: (row) => cell(row.epoch), right: true },
      { title: 'KEY', of: (row) => cell(row.keyName) },
    ],
  })
}

const EXAMPLES = `
Examples:
  quayside backup             make one now; the schedule is backups.cron
  quayside backup list        what is kept, and the key that each needs`

/** Bytes in the largest unit in which they are at least one: `1.2 MiB`. */
export function sizeText(bytes: Row[string]): string {
  if (typeof bytes !== 'number') return '-'
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const place = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  const size = bytes / 1024 ** place
  return `${place === 0 ? size : size.toFixed(1)} ${units[place]}`
}
