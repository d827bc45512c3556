import { isUtf8 } from 'node:buffer'
import { Readable } from 'node:stream'
import { setImmediate as pause } from 'node:timers/promises'
import { parse } from 'csv-parse'
import { grouped } from '../domain/figures.ts'
import {
  type Delimiter,
  decideLine,
  delimiterOf,
  escapedCell,
  fileLimits,
  type LineOutcome,
  type LineProblem,
  type ListingLine,
  lineColumns,
  readHeader,
  readLine,
  shownColumns,
} from '../domain/listing-csv.ts'
import { formatDecimal } from '../domain/money.ts'
import { Failure } from '../errors.ts'
import { type Change, type Database, retryStale, StaleWrite } from '../storage/database.ts'
import { insertAudit } from '../storage/evidence.ts'
import { type ListingRow, listingsOfVariants, pageOfListings, putListings } from '../storage/listings.ts'
import { offersByProduct, offersBySku } from '../storage/offers.ts'
import { following, ignored, type Linking, linkedTo, unlinked } from './actions.ts'

export interface Import {
  store: string
  actor: string
  /** Whether the import only reports what would happen. */
  dryRun: boolean
}

type ImportReport = ReturnType<typeof newReport>

/** Says what became of a file: each of its lines is counted once. */
const newReport = (lines: number) => ({
  lines,
  linked: 0,
  unlinked: 0,
  ignored: 0,
  /** Lines whose listing was already as the line says. */
  unchanged: 0,
  /** Lines for which nothing was done; `problems` says why. */
  refused: 0,
  /** The problems in the order of the lines. Unknown columns are reported too. */
  problems: [] as LineProblem[],
  /** Whether there are more problems than are listed. */
  truncated: false,
})

export const PROBLEMS_MAX = 1_000

const BATCH_LINES = 100

/**
 * Links, unlinks and ignores listings as the lines of a CSV file say. The effect and the audit are the same as by hand.
 *
 * A refused line stops no other line. Lines are committed a hundred at a time. After a crash, a second import of the same file goes
 * on where the first one ended, because links and ignored variants that are there already are `unchanged`.
 *
 * @throws Failure `invalid` for a file that cannot be read; nothing has been changed then
 */
export async function importLinks(linking: Linking, wanted: Import, bytes: Uint8Array): Promise<ImportReport> {
  const file = await openListingFile(bytes)
  const report = newReport(file.lines)
  for (const column of file.header.unknown) {
    note(report, { line: 1, column, message: 'this column is unknown: it is left unread' })
  }
  for await (const batch of batchesOf(file)) {
    const outcomes = await settle(
      linking,
      wanted,
      batch.flatMap((one) => ('variant' in one ? [one] : [])),
    )
    for (const one of batch) count(report, 'variant' in one ? outcomes.get(one) : { outcome: 'refused', ...one })
  }
  if (!wanted.dryRun && report.linked + report.unlinked + report.ignored > 0) linking.wake()
  return report
}

type ListingFile = Awaited<ReturnType<typeof openListingFile>>

async function* batchesOf({ read, repeated }: ListingFile): AsyncGenerator<(ListingLine | LineProblem)[]> {
  let batch: (ListingLine | LineProblem)[] = []
  for await (const one of read()) {
    const others = 'variant' in one ? repeated.get(one.variant)?.filter((line) => line !== one.line) : undefined
    batch.push(others && 'variant' in one ? twice(one, others) : one)
    if (batch.length < BATCH_LINES) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

function twice({ line, variant }: ListingLine, others: number[]): LineProblem {
  const isCut = others.length >= REPEATS_MAX - 1
  const named = `${others.slice(0, REPEATS_MAX - 2).join(', ')}${isCut ? ' and more' : ''}`
  const message = `${variant} is in line ${named} too: which of them counts?`
  return { line, column: 'variant', message }
}

/** How often a batch is tried: publishing may have written one of its listings in between. */
const TRIES_MAX = 5

/** Decides on lines of different variants and commits what they change. */
async function settle(
  linking: Linking,
  wanted: Import,
  lines: ListingLine[],
): Promise<ReadonlyMap<ListingLine, LineOutcome>> {
  try {
    return await retryStale(TRIES_MAX, async () => {
      const { outcomes, changes } = await plan(linking, wanted, lines)
      if (!wanted.dryRun && changes.length > 0) await linking.db.commit(changes)
      return outcomes
    })
  } catch (error) {
    if (!(error instanceof StaleWrite)) throw error
    return new Map(lines.map((line) => [line, busy(line)]))
  }
}

const busy = ({ line, variant }: ListingLine): LineOutcome => {
  const message = `${variant}, or one of the lines around it, is being changed elsewhere; import the file again`
  return { outcome: 'refused', line, column: null, message }
}

async function plan(linking: Linking, { store, actor }: Import, lines: ListingLine[]) {
  const { db, newId, now: clock } = linking
  const filled = (texts: string[]) => [...new Set(texts)].filter((text) => text !== '')
  const [variants, products, skus] = [
    lines.map(({ variant }) => variant),
    filled(lines.map(({ product }) => product)),
    filled(lines.map(({ sku }) => sku)),
  ]
  const [rows, named, underSku] = await Promise.all([
    db.query(listingsOfVariants(store, variants)),
    products.length === 0 ? [] : db.query(offersByProduct(products)),
    skus.length === 0 ? [] : db.query(offersBySku(skus)),
  ])
  const listings = new Map(rows.map((row) => [row.variant, row]))
  const byProduct = new Map(named.map((offer) => [offer.productId, offer]))
  const bySku = Map.groupBy(underSku, ({ sku }) => sku)
  const now = clock()
  const outcomes = new Map<ListingLine, LineOutcome>()
  const [next, audits]: [ListingRow[], Change[]] = [[], []]
  for (const line of lines) {
    const { variant } = line
    const listing = listings.get(variant)
    const product = byProduct.get(line.product)
    const outcome = decideLine(line, { listing, product, bySku: bySku.get(line.sku) ?? [] })
    outcomes.set(line, outcome)
    const row = rowOf(outcome, listing, { store, variant })
    if (!row) continue
    next.push(following(listing, row, now))
    const [action, detail] = [`listing.${outcome.outcome}`, `line ${line.line} of a file`]
    const what = outcome.outcome === 'link' ? `${outcome.productId}, ${detail}` : detail
    audits.push(insertAudit({ id: newId(), at: now, actor, action, subject: `${store} ${variant}`, detail: what }))
  }
  return { outcomes, changes: [...putListings(next), ...audits] }
}

/** Returns the listing as the line makes it; undefined where the line changes nothing. */
function rowOf(outcome: LineOutcome, listing: ListingRow | undefined, named: { store: string; variant: string }) {
  if (outcome.outcome === 'link') return linkedTo(listing, named, { ...outcome, linkedBy: 'csv' })
  if (outcome.outcome === 'ignore') return ignored(listing, named, 'said so by a file')
  return outcome.outcome === 'unlink' && listing ? unlinked(listing) : undefined
}

const counters = {
  link: 'linked',
  unlink: 'unlinked',
  ignore: 'ignored',
  unchanged: 'unchanged',
  refused: 'refused',
} as const

function count(report: ImportReport, outcome: LineOutcome | undefined): void {
  if (!outcome) return
  report[counters[outcome.outcome]] += 1
  if (outcome.outcome !== 'refused') return
  const { line, column, message } = outcome
  note(report, { line, column, message })
}

function note(report: ImportReport, problem: LineProblem): void {
  if (report.problems.length < PROBLEMS_MAX) report.problems.push(problem)
  else report.truncated = true
}

/** How many listings are read and written together. Only so much of the file is in memory at once. */
const PAGE_LISTINGS = 500

/**
 * Yields the listings of a store as a CSV file, by variant, piece by piece. An import of the unchanged file changes nothing,
 * because a listing has no action in the file if its SKU alone decides its offer.
 */
export async function* exportLinks(db: Database, store: string): AsyncGenerator<string> {
  yield FILE_START + csvText([[...lineColumns, ...shownColumns]])
  for (let after: string | undefined; ; ) {
    const rows = await db.query(pageOfListings({ store, after, limit: PAGE_LISTINGS }))
    if (rows.length > 0) yield csvText(await cellsOf(db, rows))
    if (rows.length < PAGE_LISTINGS) return
    after = rows.at(-1)?.variant
  }
}

async function cellsOf(db: Database, rows: ListingRow[]): Promise<string[][]> {
  const unnamed = rows.flatMap(({ knownName, productId }) => (knownName === null && productId ? [productId] : []))
  const offers = unnamed.length === 0 ? [] : await db.query(offersByProduct([...new Set(unnamed)]))
  const names = new Map(offers.map(({ productId, name }) => [productId, name]))
  return rows.map((row) => {
    const { variant, sku, productId, variation, state, reason, knownPriceMinor: minor, knownCurrency: currency } = row
    const name = row.knownName ?? names.get(productId ?? '') ?? ''
    const price = minor === null || currency === null ? '' : formatDecimal({ minor, currency })
    return [
      ...[variant, sku, productId ?? '', variation ?? '', actionOf(row)],
      ...[name, state, reason ?? '', price, currency ?? '', row.knownStock === null ? '' : String(row.knownStock)],
    ]
  })
}

function actionOf({ state, linkedBy }: ListingRow): string {
  if (state === 'ignored') return 'ignore'
  return linkedBy === 'sku' ? '' : 'link'
}

/**
 * Reads a file once to its end, so that an unreadable file is refused before its first line has changed anything.
 *
 * @throws Failure `invalid`, with the line at fault, for another encoding, quotes that do not match, or a header without the
 *   needed columns; reason `too_large` when the file goes beyond a limit
 */
export async function openListingFile(bytes: Uint8Array, limits = fileLimits) {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const firstLine = await checkLines(buffer, limits)
  const delimiter = delimiterOf(firstLine)
  const first = await recordsOf(buffer, delimiter, limits).next()
  if (first.done) throw new Failure('invalid', 'the file is empty: its first line must name the columns')
  const header = readHeader(first.value.cells)
  if (typeof header === 'string') throw new Failure('invalid', header)
  /** Reads the lines of the file again, one at a time. */
  const read = async function* () {
    const records = recordsOf(buffer, delimiter, limits)
    await records.next()
    for await (const { line, cells } of records) {
      if (cells.some((cell) => cell !== '')) yield readLine(header, line, cells)
    }
  }
  return { header, read, ...(await survey(read(), limits)) }
}

/** How many line numbers of one variant are kept. More of them would help no reader. */
export const REPEATS_MAX = 6

async function survey(lines: AsyncGenerator<ListingLine | LineProblem>, { linesMax }: typeof fileLimits) {
  const firstLines = new Map<string, number>()
  /** The first line numbers of each variant that stands in several lines. */
  const repeated = new Map<string, number[]>()
  let count = 0
  for await (const line of lines) {
    count += 1
    if (count > linesMax) throw tooLarge(`more than ${grouped(linesMax)} listings; divide the file`)
    if (!('variant' in line)) continue
    const [before, found] = [firstLines.get(line.variant), repeated.get(line.variant)]
    if (before === undefined) firstLines.set(line.variant, line.line)
    else if (!found) repeated.set(line.variant, [before, line.line])
    else if (found.length < REPEATS_MAX) found.push(line.line)
  }
  // `lines`: how many lines below the header have anything on them.
  return { lines: count, repeated }
}

const tooLarge = (what: string) => new Failure('invalid', `the file has ${what}`, { reason: 'too_large' })

const LF = 10
const CR = 13

/** Checks each line as bytes. @returns the first line that is not empty */
async function checkLines(buffer: Buffer, { bytesMax, lineBytesMax }: typeof fileLimits): Promise<string> {
  if (buffer.length > bytesMax) throw tooLarge(`more than ${Math.floor(bytesMax / 1024 / 1024)} MiB; divide it`)
  let firstLine = ''
  let line = 1
  for (let start = 0; start < buffer.length; line += 1) {
    const end = lineEnd(buffer, start)
    const text = buffer.subarray(start, end)
    if (text.length > lineBytesMax) throw tooLarge(`more than ${lineBytesMax / 1024} KiB in line ${line}`)
    // A file in UTF-16 without a mark at its beginning is full of zero bytes, and UTF-8 allows zero bytes.
    if (!isUtf8(text) || (firstLine === '' && text.includes(0))) {
      throw new Failure('invalid', `line ${line} is not UTF-8: save the file as "CSV UTF-8"`)
    }
    if (firstLine === '') firstLine = text.toString('utf8').replace(/^\ufeff/, '')
    start = end + lengthOfEnd(buffer, end)
    if (line % 5_000 === 0) await pause()
  }
  return firstLine
}

/** Returns the index of the first LF or CR from `start` on, or the end of the file. */
function lineEnd(buffer: Buffer, start: number): number {
  for (let at = start; at < buffer.length; at += 1) if (buffer[at] === LF || buffer[at] === CR) return at
  return buffer.length
}
const lengthOfEnd = (buffer: Buffer, at: number): number => (buffer[at] === CR && buffer[at + 1] === LF ? 2 : 1)

interface CsvRecord {
  line: number
  cells: string[]
}

/** How many bytes are parsed before other work has its turn. */
const SLICE_BYTES = 16 * 1024

async function* slicesOf(buffer: Buffer) {
  for (let at = 0; at < buffer.length; at += SLICE_BYTES) {
    yield buffer.subarray(at, at + SLICE_BYTES)
    await pause()
  }
}

/** Yields each record with the line in which it begins. Records end at LF, CR or both, in any mixture. */
async function* recordsOf(
  buffer: Buffer,
  delimiter: Delimiter,
  { lineBytesMax }: typeof fileLimits,
): AsyncGenerator<CsvRecord> {
  const parser = parse({
    bom: true,
    delimiter,
    record_delimiter: ['\r\n', '\n', '\r'],
    info: true,
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: lineBytesMax,
  })
  const source = Readable.from(slicesOf(buffer))
  const lines = lineCounter(buffer)
  try {
    for await (const { record, info } of source.pipe(parser) as AsyncIterable<Parsed>) {
      const line = lines.begin()
      lines.goTo(info.bytes)
      yield { line, cells: record }
    }
  } catch (error) {
    throw readableFault(error, lines)
  } finally {
    source.destroy()
  }
}

interface Parsed {
  record: string[]
  /** `bytes`: the position at which the record ends, including its line end. */
  info: { bytes: number }
}

const faults: Record<string, string> = {
  CSV_QUOTE_NOT_CLOSED: 'opens a quote that is never closed',
  CSV_INVALID_CLOSING_QUOTE: 'has a quote within a quoted cell: write it twice',
  INVALID_OPENING_QUOTE: 'has a quote within a cell: put the cell in quotes and write the quote twice',
  CSV_MAX_RECORD_SIZE: 'is too long: is a quote not closed?',
}

function readableFault(error: unknown, lines: ReturnType<typeof lineCounter>): unknown {
  const { code, bytes } = error as { code?: unknown; bytes?: unknown }
  const sentence = faults[String(code)]
  if (sentence === undefined) return error
  // The parser drops the records that it has read just before the error, so the counter passes over them here.
  if (typeof bytes === 'number') lines.goTo(bytes)
  return new Failure('invalid', `line ${lines.begin()} ${sentence}`, { cause: error })
}

/** Counts lines as editors do. The parser would count CR LF within quotes as two lines. */
function lineCounter(buffer: Buffer) {
  let at = 0
  let line = 1
  const take = () => {
    line += 1
    at += lengthOfEnd(buffer, at)
  }
  return {
    /** Returns the line of the next record. Empty lines before the record are passed over. */
    begin: (): number => {
      while (buffer[at] === LF || buffer[at] === CR) take()
      return line
    },
    goTo: (end: number): void => {
      for (let next = lineEnd(buffer, at); next < end; next = lineEnd(buffer, at)) {
        at = next
        take()
      }
      at = Math.max(at, end)
    },
  }
}

/** This mark shows spreadsheets that a file is UTF-8. */
export const FILE_START = '\ufeff'

/** Returns rows as lines of a file. Cells that a spreadsheet would take for formulas are escaped. */
export const csvText = (rows: string[][]): string => rows.map((row) => `${row.map(csvCell).join(',')}\r\n`).join('')

function csvCell(cell: string): string {
  const text = escapedCell(cell)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
