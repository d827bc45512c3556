import { type Command, InvalidArgumentError } from 'commander'
import { Failure } from '../errors.ts'
import type { Client } from './client.ts'
import { listCommand, serviceCommand } from './command.ts'
import { age, asRow, asRows, cell, countsText, instant, type Row, sentence } from './output.ts'
import type { Session } from './program.ts'

/** `stores`: where is sold, and the secrets that their callbacks are signed with. */
export function addStores(root: Command, session: Session): void {
  const stores = root.command('stores').description('where you sell: list; change the secret of callbacks')

  listCommand(stores.command('list').description('the configured stores'), session, {
    path: ['stores'],
    whole: true,
    empty: 'No store is configured. `npx quayside init` makes one.',
    columns: ({ io }) => [
      { title: 'ID', of: (row) => cell(row.id), keep: true },
      { title: 'NAME', of: (row) => cell(row.name) },
      { title: 'KIND', of: (row) => cell(row.kind) },
      { title: 'ADDRESS', of: (row) => cell(row.callbackUrl) },
      { title: 'SECRET', of: ({ callbackSecret }) => secretAge(callbackSecret, io.now()) },
      { title: 'LISTINGS', of: (row) => countsText(row.listings) },
    ],
    after: (rows, { io, width }) =>
      rows
        .flatMap((row) => notesOf(row, io.now()).map((note) => `${cell(row.id)}: ${note}`))
        .map((note) => sentence(note, width, { lead: '  ', hang: 4 }))
        .join(''),
  })

  const rotate = stores
    .command('rotate-secret')
    .description('sign callbacks with a new secret; the old one stays valid')
  rotate.argument('<store>', 'its id, or the name before the dash')
  rotate.option('--overlap-hours <hours>', 'how long the old one stays valid, 0 to 720 (default: 168)', wholeText)
  rotate.addHelpText(
    'after',
    `
Until the old secret ends, every callback carries both signatures, so that the
store accepts it with either. Install the new one in the store in this time.
Was the old one seen by others? --overlap-hours 0 ends it at once: callbacks
are refused and repeated until the store has the new one.`,
  )
  serviceCommand(rotate, session, async (call) => {
    const store = await storeNamed(call.client, call.args[0] ?? '')
    const hours = call.option('overlapHours')
    const body = hours === undefined ? {} : { overlapHours: Number(hours) }
    const rotated = asRow(await call.client.post(['stores', store, 'rotate-secret'], body))
    call.print(rotated, () => {
      const until = oldUntil(rotated, call.io.now())
      return [
        `${cell(rotated.secret)}\n`,
        sentence(`Install it in ${cell(rotated.store)} now: it is not shown again.`, call.width),
        sentence(until ? `The old secret is valid until ${until}.` : 'The old secret is out of use.', call.width),
      ].join('')
    })
    return undefined
  })
}

/** Nothing records when the first secret was made: it is derived from the data key. */
function secretAge(callbackSecret: unknown, now: number): string {
  const { changedAt } = asRow(callbackSecret)
  return typeof changedAt === 'string' ? `${age(changedAt, now)} old` : 'first'
}

/** What a person may have to do about a store. */
function notesOf({ callbackSecret, pausedUntil, error }: Row, now: number): string[] {
  const until = oldUntil(callbackSecret, now)
  const generation = cell(asRow(callbackSecret).generation)
  return [
    ...(until === undefined
      ? []
      : [`callbacks are signed with secret ${generation}, and with the old one until ${until}`]),
    ...(pausedUntil ? [`it takes no listings, next try ${instant(pausedUntil, now)}: ${cell(error)}`] : []),
  ]
}

/** Until when the secret before the newest is valid; undefined when it is not. */
export function oldUntil(callbackSecret: unknown, now: number): string | undefined {
  const { previousUntil } = asRow(callbackSecret)
  if (typeof previousUntil !== 'string' || Date.parse(previousUntil) <= now) return undefined
  return instant(previousUntil, now)
}

/** @throws Failure `not_found` where no store, or more than one, has the name */
async function storeNamed(client: Client, name: string): Promise<string> {
  const ids = asRows(asRow(await client.get(['stores'])).items).map(({ id }) => cell(id))
  if (ids.includes(name)) return name
  // An id is a name, a dash and eight characters.
  const [only, other] = ids.filter((id) => id.slice(0, -9) === name)
  if (only !== undefined && other === undefined) return only
  const which = other === undefined ? `there is no store ${name}` : `several stores are called ${name}`
  throw new Failure('not_found', `${which}; there are ${ids.join(', ')}`)
}

/** The service sets the bounds; here a word must not become NaN. */
function wholeText(text: string): string {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError('Give a whole number of hours.')
  return text
}
