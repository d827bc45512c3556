import type { Command } from 'commander'
import { Failure } from '../errors.ts'
import { cell, instant } from './cell.ts'
import { configFileOf } from './connection.ts'
import type { Session } from './program.ts'
import { print, shareOptions, widthOf } from './service-command.ts'
import { details, wrap } from './table.ts'

/** `restore`: puts a backup in the place of the database, while no service runs. */
export function addRestore(root: Command, { io, program, end }: Session): void {
  const restore = root.command('restore').description('put a backup back, while the service is stopped')
  restore.argument('<file>', 'path of a backup, or its name in the folder of the backups')
  restore.option('--key-file <file>', 'the key-encryption key that it was made under, when that is not the one set now')
  shareOptions(restore)
  restore.addHelpText('after', EXAMPLES)
  restore.action(async (file: string, options: { keyFile?: string; config?: string; json?: true }) => {
    const source = configFileOf(options.config, io.env)
    if (!source) throw new Failure('not_found', 'there is no configuration to restore into: name one by --config')
    const result = await program.restore({
      ...{ configFile: source.file, demo: source.demo, backup: file },
      ...(options.keyFile === undefined ? {} : { keyFile: options.keyFile }),
    })
    print(io, options.json === true, result, () => restoredText(result, io.now(), Math.min(widthOf(io), 80)))
    end(0)
  })
}

const EXAMPLES = `
Examples:
  quayside restore quayside-20260301T022000000Z.backup
  quayside restore /mnt/safe/old.backup --key-file ./old-key.txt`

/** What was done by `quayside restore`. */
export interface Restored {
  database: string
  /** ISO 8601. */
  madeAt: string
  epoch: number
  /** The database that was there; null when there was none. */
  replaced: string | null
}

function restoredText({ database, madeAt, epoch, replaced }: Restored, now: number, width: number): string {
  const head = details(
    [
      ['Restored', database],
      ['As of', instant(madeAt, now)],
      ['Epoch', cell(epoch)],
      ['Kept', replaced === null ? 'nothing: there was no database' : `${replaced}, the database that was there`],
    ],
    width,
  )
  return `${head}\n${NEXT.map((line) => wrap(line, width).join('\n')).join('\n')}\n`
}

const NEXT = [
  "Start the service. It buys nothing until the supplier's orders are mapped back, some minutes; `quayside status` says how far it is.",
  'Let your stores hand in again what came after the backup, orders and cancellations: what was bought for them is found, not bought again.',
  'Tokens that were revoked since are valid again, and freezes since are gone.',
]
