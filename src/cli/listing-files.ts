import { readFileSync, statSync } from 'node:fs'
import type { Command } from 'commander'
import { fileLimits } from '../catalogue/listing-file.ts'
import { Failure, messageOf } from '../errors.ts'
import { asRow, asRows, cell, type Row } from './cell.ts'
import { exitCodes } from './exit-codes.ts'
import type { Io, Session } from './program.ts'
import { type Call, serviceCommand } from './service-command.ts'
import { columnsOf, details, wrap } from './table.ts'

const STORE = 'the store; needed where there are several'

/** `listings import` and `listings export`: the links of a store as a CSV file. */
export function addListingFiles(listings: Command, session: Session, storeOf: (call: Call) => Promise<string>): void {
  const load = listings.command('import').description('link, unlink and ignore as a CSV file says, line by line')
  load.argument('<file>', 'the file; - for standard input').option('--store <id>', STORE)
  load.option('--dry-run', 'only tell what would happen')
  serviceCommand(load, session, async (call) => {
    const bytes = await read(call.args[0] ?? '', call.io)
    const store = await storeOf(call)
    const dryRun = call.flag('dryRun')
    const query = { dry_run: dryRun || undefined }
    const report = asRow(await call.client.upload(['stores', store, 'listings', 'import'], bytes, query))
    call.print(report, () => reportText(report, dryRun, call.width))
    return report.refused === 0 ? exitCodes.ok : exitCodes.failed
  })

  const save = listings.command('export').description('the listings of a store as a CSV file, for `import`')
  save.option('--store <id>', STORE)
  serviceCommand(save, session, async (call) => {
    const store = await storeOf(call)
    const pieces = await call.client.download(['stores', store, 'listings', 'export'])
    if (call.json) {
      const all: Uint8Array[] = []
      for await (const piece of pieces) all.push(piece)
      call.print({ store, csv: Buffer.concat(all).toString('utf8') }, () => '')
      return undefined
    }
    for await (const piece of pieces) await write(call.io, piece)
    return undefined
  })
}

async function read(file: string, io: Io): Promise<Uint8Array<ArrayBuffer>> {
  if (file === '-') return readAll(io.stdin)
  try {
    if (statSync(file).size > fileLimits.bytesMax) throw tooLarge(file)
    return new Uint8Array(readFileSync(file))
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure('invalid', `the file cannot be read: ${messageOf(error)}`, { cause: error })
  }
}

async function readAll(stdin: NodeJS.ReadableStream): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of stdin) {
    pieces.push(Buffer.from(piece as Buffer | string))
    size += pieces.at(-1)?.length ?? 0
    if (size > fileLimits.bytesMax) throw tooLarge('standard input')
  }
  return new Uint8Array(Buffer.concat(pieces))
}

const tooLarge = (what: string) =>
  new Failure('invalid', `${what} is larger than ${fileLimits.bytesMax / 1024 / 1024} MiB: divide it`)

/** Waits until the reader of a pipe has taken what it was given. */
const write = async ({ stdout }: Io, piece: Uint8Array): Promise<void> => {
  if (!stdout.write(piece)) await new Promise((resolve) => stdout.once('drain', resolve))
}

function reportText(report: Row, dryRun: boolean, width: number): string {
  const counts = ['lines', 'linked', 'unlinked', 'ignored', 'unchanged', 'refused'].map((name): [string, string] => [
    `${name[0]?.toUpperCase()}${name.slice(1)}`,
    cell(report[name]),
  ])
  const problems = asRows(report.problems)
  return [
    dryRun ? 'Nothing was changed. Without --dry-run it would be:\n\n' : '',
    details(counts, width),
    problems.length === 0 ? '' : `\n${problemTable(problems, width)}`,
    report.truncated === true ? `There are more: mend these first, then import the file again.\n` : '',
  ].join('')
}

/** Sentences are wrapped under each other and never cut. */
function problemTable(problems: Row[], width: number): string {
  const cells = problems.map(({ line, column }) => [cell(line), cell(column)] as const)
  const left = Math.max(4, ...cells.map(([line]) => line.length))
  const middle = Math.min(16, Math.max(6, ...cells.map(([, column]) => columnsOf(column))))
  const indent = left + middle + 4
  const line = (at: string, column: string, why: string) => {
    // A column that nobody knows may have a long name; its sentence begins below it then.
    const name = columnsOf(column) > middle ? `${column}\n${' '.repeat(left + middle + 2)}` : column.padEnd(middle)
    return `${at.padStart(left)}  ${name}  ${wrap(why, width - indent).join(`\n${' '.repeat(indent)}`)}\n`
  }
  const lines = problems.map((row, place) => line(cells[place]?.[0] ?? '', cells[place]?.[1] ?? '', cell(row.message)))
  return line('LINE', 'COLUMN', 'WHY') + lines.join('')
}
