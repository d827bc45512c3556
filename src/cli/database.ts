import type { Command } from 'commander'
import { loadConfig } from '../config.ts'
import { CONFIG_FILE } from './connection.ts'
import { exitCodes } from './exit-codes.ts'
import type { Session } from './program.ts'
import { print, shareOptions } from './service-command.ts'

/** `database`: creates what `serve` never creates by itself. */
export function addDatabase(root: Command, { io, program, end }: Session): void {
  const database = root.command('database').description('the database of a configured installation: create')
  const create = database.command('create').description('create the database, where there is none, and end')
  shareOptions(create)
  create.addHelpText('after', HELP)
  create.action(async (options: { config?: string; json?: true }) => {
    const file = options.config ?? (io.env.QUAYSIDE_CONFIG || CONFIG_FILE)
    const created = await program.createDatabase(loadConfig(file, io.env))
    print(io, options.json === true, created, () => `Created: ${created.database}\n`)
    end(exitCodes.ok)
  })
}

const HELP = `
\`quayside init\` creates the database of a new installation. This command is for
a configuration that was written by hand, and for a database that is lost
without a backup: then nothing is bought until the supplier's orders are
searched for orders of its stores.

Example:
  quayside database create`
