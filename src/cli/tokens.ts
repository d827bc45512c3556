import { type Command, InvalidArgumentError } from 'commander'
import { age, asRow, cell, instant, type Row } from './cell.ts'
import { listCommand } from './list-command.ts'
import type { Session } from './program.ts'
import { serviceCommand } from './service-command.ts'

/** `tokens`: who may use the API. */
export function addTokens(root: Command, session: Session): void {
  const tokens = root.command('tokens').description('who may use the API: create, list, revoke')

  const create = tokens.command('create').description('make a token; its text is shown this once')
  create.requiredOption('--name <name>', 'who or what will use it')
  create.requiredOption('--role <role>', 'store, viewer, operator or admin')
  create.option('--store <id>', 'the one store that a store token speaks for')
  create.option('--scopes <scopes>', 'of a store token: orders, keys or orders,keys', 'orders,keys')
  create.option('--expires-in-days <days>', 'until it is revoked unless told', wholeText)
  create.addHelpText('after', EXAMPLES)
  serviceCommand(create, session, async (call) => {
    const days = call.option('expiresInDays')
    const token = asRow(
      await call.client.post(['tokens'], {
        name: call.option('name'),
        role: call.option('role'),
        ...(call.option('store') === undefined ? {} : { store: call.option('store') }),
        ...(call.option('role') === 'store'
          ? { scopes: (call.option('scopes') ?? '').split(/[\s,]+/).filter(Boolean) }
          : {}),
        ...(days === undefined ? {} : { expiresInDays: Number(days) }),
      }),
    )
    call.print(token, () => `${cell(token.token)}\nKeep it: it is not shown again. Its id is ${cell(token.id)}.\n`)
    return undefined
  })

  listCommand(tokens.command('list').description('tokens that were made'), session, {
    path: ['tokens'],
    whole: true,
    empty: 'No token was made yet; the owner token is none of them.',
    columns: ({ io }) => [
      { title: 'ID', of: (row) => cell(row.id), keep: true },
      { title: 'NAME', of: (row) => cell(row.name) },
      { title: 'ROLE', of: (row) => cell(row.role) },
      { title: 'STORE', of: (row) => cell(row.store) },
      { title: 'TOKEN', of: (row) => `${cell(row.hint)}…` },
      { title: 'STATE', of: (row) => stateOf(row, io.now()) },
    ],
  })

  const revoke = tokens.command('revoke').description('end a token at once').argument('<id>', 'its id')
  serviceCommand(revoke, session, async (call) => {
    const answer = await call.client.delete(['tokens', call.args[0] ?? ''])
    call.print(answer, () => 'Revoked. Whatever used it is refused from now on.\n')
    return undefined
  })
}

const EXAMPLES = `
Roles: a store hands in and reads its own orders; a viewer reads; an operator
also retries, cancels, replays and freezes; an admin also reveals bodies and
makes tokens and webhooks.

Examples:
  quayside tokens create --name shop --role store --store my-store-4f7k2m9q
  quayside tokens create --name anna --role operator --expires-in-days 90`

function stateOf(token: Row, now: number): string {
  if (token.revokedAt) return `revoked ${age(token.revokedAt, now)} ago`
  if (typeof token.expiresAt !== 'string') return 'good'
  return Date.parse(token.expiresAt) <= now ? 'expired' : `until ${instant(token.expiresAt, now).slice(0, 10)}`
}

/** The service sets the bounds; here a word must not become NaN. */
function wholeText(text: string): string {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError('Give a whole number of days.')
  return text
}
