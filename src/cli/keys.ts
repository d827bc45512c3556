import path from 'node:path'
import type { Command } from 'commander'
import { asRow, cell } from './cell.ts'
import { CONFIG_FILE, configFileOf } from './connection.ts'
import type { Session } from './program.ts'
import { serviceCommand } from './service-command.ts'

/** `keys`: the key-encryption key, under which everything secret in the database lies. */
export function addKeys(root: Command, session: Session): void {
  const keys = root.command('keys').description('the key-encryption key of the database: rotate')

  const rotate = keys.command('rotate').description('put the database under the next key-encryption key')
  rotate.addHelpText('after', HELP)
  serviceCommand(rotate, session, async (call) => {
    const names = asRow(await call.client.post(['keys', 'rotate']))
    const source = configFileOf(call.option('config'), session.io.env)
    const folder = path.join(path.dirname(source?.file ?? CONFIG_FILE), 'secrets')
    call.print(names, () => rotatedText(cell(names.before), cell(names.after), folder))
    return undefined
  })
}

const HELP = `
The running service reads the next key from secrets/next-key-encryption-key
beside its configuration, or as QUAYSIDE_NEXT_KEY_ENCRYPTION_KEY (or _FILE)
says.

Example:
  umask 077
  openssl rand -base64 32 > config/secrets/next-key-encryption-key
  quayside keys rotate`

/** @param folder where the service looks for its secrets when no variable names them */
function rotatedText(before: string, after: string, folder: string): string {
  return `Rotated: the database is under the key-encryption key ${after}, no longer
under ${before}. Make it the key of the setting before the next start, such as

  cd ${folder}
  mv key-encryption-key key-${before}
  mv next-key-encryption-key key-encryption-key

Keep ${before} as long as a backup needs it: \`quayside backup list\` names the key
of each.
`
}
