/** The exports, as files. Each piece is written to standard output as it comes. */
import { bodyColumns, deliveryColumns, keyColumns, orderColumns } from '../domain/data-export.ts'
import { printable } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import { type Call, type CommandRow, type Io, REASON } from './command.ts'
import { details, type Pair } from './facts.ts'

const bounds = { from: 'then or later: 2026-03-01, or 2026-03-01T09:30:00Z', to: 'before' }

const options = (came: string) => ({
  ...Object.fromEntries(Object.entries(bounds).map(([name, when]) => [`--${name} <instant>`, `${came} ${when}`])),
  '--state <state>': 'in this state only',
  '--json': 'a line of JSON for each row instead of CSV',
})

const HELP = `
Instants are in UTC, and a day means its beginning. Amounts are decimal text.
Several values stand below each other in one cell of CSV, and are a list in
JSON. In CSV a cell that a spreadsheet would run as a formula begins with an
apostrophe.
`

export const orderExport: CommandRow = {
  command: 'orders export',
  about: 'orders as CSV or JSON, a row for each line of an order',
  options: {
    ...options('taken'),
    '--store <id>': 'of this store only',
    '--keys': 'the licence keys too; takes the role admin and --reason',
    ...REASON,
  },
  help: `
Examples:
  quayside orders export --from 2026-03-01 --to 2026-04-01 > march.csv
  quayside orders export --state failed --json | jq -r .reference
${HELP}
${columnsText({ ...orderColumns, ...keyColumns })}`,
  act: (call) => exportRows(call, 'orders', 'keys', ['store', 'state']),
}

export const deliveryExport: CommandRow = {
  command: 'deliveries export',
  about: 'deliveries of the last ninety days as CSV or JSON',
  options: {
    ...options('arrived'),
    '--event <event>': 'of this event only, such as order.completed',
    '--store <id>': 'that this store sent only',
    '--bodies': 'their bodies too; takes the role admin and --reason',
    ...REASON,
  },
  help: `
Examples:
  quayside deliveries export --from 2026-03-01 > deliveries.csv
  quayside deliveries export --state dead --json | jq -r .lastError
${HELP}
${columnsText({ ...deliveryColumns, ...bodyColumns })}`,
  act: (call) => exportRows(call, 'deliveries', 'bodies', ['store', 'state', 'event']),
}

/** Writes an export. @param sealed the flag that asks for the sealed columns too */
async function exportRows(call: Call, what: 'orders' | 'deliveries', sealed: string, filters: string[]) {
  const { option, flag, json } = call
  const query = {
    ...call.values(...filters),
    ...Object.fromEntries(Object.keys(bounds).map((name) => [name, beginningOf(option(name))])),
    format: json ? 'jsonl' : 'csv',
  }
  const reason = option('reason')
  if (flag(sealed) && reason === undefined) {
    throw new Failure('invalid', `say why, for the audit: --${sealed} --reason '…'`)
  }
  const pieces = flag(sealed)
    ? call.client.download(`POST /exports/${what}`, { query, body: { reason } })
    : call.client.download(`GET /exports/${what}`, { query })
  await writeFile(call.io, await pieces)
  return undefined
}

/** Turns a day, as people write it, into the instant at which that day begins. */
const beginningOf = (instant: string | undefined): string | undefined =>
  instant !== undefined && /^\d{4}-\d\d-\d\d$/.test(instant) ? `${instant}T00:00:00Z` : instant

/** Writes a file as fast as its reader takes it, until the file ends or the reader leaves. */
export async function writeFile(
  { stdout, isTerminal }: Pick<Io, 'stdout' | 'isTerminal'>,
  pieces: AsyncIterable<Uint8Array>,
): Promise<void> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  for await (const piece of pieces) {
    const shown = isTerminal ? printable(decoder.decode(piece, { stream: true })) : piece
    // A reader that has seen enough, such as `head`, closes the pipe.
    const isTaken = await new Promise<boolean>((resolve) => {
      stdout.write(shown, (error) => resolve(!error))
    })
    if (!isTaken) return
  }
}

function columnsText(columns: Record<string, string>): string {
  const pairs = Object.entries(columns).map(([name, means]): Pair => [`  ${name}`, means])
  return `Columns, in their order:\n${details(pairs, 80).trimEnd()}`
}
