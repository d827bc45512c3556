import { isUtf8 } from 'node:buffer'
import { Readable } from 'node:stream'
import { setImmediate as pause } from 'node:timers/promises'
import { parse } from 'csv'
import { stringify } from 'csv/sync'
import {
  type CsvHeader,
  type Delimiter,
  delimiterOf,
  escapedCell,
  type LineProblem,
  type ListingLine,
  readHeader,
  readLine,
} from '../domain/listing-csv.ts'
import { Failure } from '../errors.ts'

/** What one file may hold. A listing has under 100 bytes, so that the bytes are reached first by strange files only. */
export const fileLimits = { bytesMax: 20 * 1024 * 1024, linesMax: 200_000, lineBytesMax: 64 * 1024 }

/** A file that can be read from its beginning to its end. */
export interface ListingFile {
  header: CsvHeader
  /** Lines with anything on them, below the header. */
  lines: number
  /** The first lines of each variant that stands in several. */
  repeated: ReadonlyMap<string, number[]>
  /** Its lines again, one at a time. */
  read(): AsyncGenerator<ListingLine | LineProblem>
}

/**
 * Reads a file once through, so that one which cannot be read is refused before its first line has changed anything.
 *
 * @throws Failure `invalid` with the line at fault: another encoding, quotes that do not match, no columns that mean
 *   anything; reason `too_large` when it goes beyond a limit
 */
export async function openListingFile(bytes: Uint8Array, limits = fileLimits): Promise<ListingFile> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const firstLine = await checkLines(buffer, limits)
  const delimiter = delimiterOf(firstLine)
  const first = await recordsOf(buffer, delimiter, limits).next()
  if (first.done) throw new Failure('invalid', 'the file is empty: its first line must name the columns')
  const header = readHeader(first.value.cells)
  if (typeof header === 'string') throw new Failure('invalid', header)
  const read = async function* () {
    const records = recordsOf(buffer, delimiter, limits)
    await records.next()
    for await (const { line, cells } of records) {
      if (cells.some((cell) => cell !== '')) yield readLine(header, line, cells)
    }
  }
  return { header, read, ...(await survey(read(), limits)) }
}

/** Lines of one variant that are kept: more of them tell a person nothing. */
export const REPEATS_MAX = 6

async function survey(lines: AsyncGenerator<ListingLine | LineProblem>, { linesMax }: typeof fileLimits) {
  const places = new Map<string, number>()
  const repeated = new Map<string, number[]>()
  let count = 0
  for await (const line of lines) {
    count += 1
    if (count > linesMax) throw tooLarge(`more than ${linesMax.toLocaleString('en-US')} listings; divide the file`)
    if (!('variant' in line)) continue
    const [before, found] = [places.get(line.variant), repeated.get(line.variant)]
    if (before === undefined) places.set(line.variant, line.line)
    else if (!found) repeated.set(line.variant, [before, line.line])
    else if (found.length < REPEATS_MAX) found.push(line.line)
  }
  return { lines: count, repeated }
}

const tooLarge = (what: string) => new Failure('invalid', `the file has ${what}`, { reason: 'too_large' })

const LF = 10
const CR = 13

/** Looks at each line as bytes. @returns the first one that is not empty */
async function checkLines(buffer: Buffer, { bytesMax, lineBytesMax }: typeof fileLimits): Promise<string> {
  if (buffer.length > bytesMax) throw tooLarge(`more than ${Math.floor(bytesMax / 1024 / 1024)} MiB; divide it`)
  let firstLine = ''
  let line = 1
  for (let start = 0; start < buffer.length; line += 1) {
    const end = lineEnd(buffer, start)
    const text = buffer.subarray(start, end)
    if (text.length > lineBytesMax) throw tooLarge(`more than ${lineBytesMax / 1024} KiB in line ${line}`)
    // A file in UTF-16 that has no mark at its beginning is all zero bytes, which UTF-8 allows.
    if (!isUtf8(text) || (firstLine === '' && text.includes(0))) {
      throw new Failure('invalid', `line ${line} is not UTF-8: save the file as "CSV UTF-8"`)
    }
    if (firstLine === '') firstLine = text.toString('utf8').replace(/^\ufeff/, '')
    start = end + lengthOfEnd(buffer, end)
    if (line % 5_000 === 0) await pause()
  }
  return firstLine
}

/** Where a line ends that begins at a place: at LF, CR or both, or with the file. */
function lineEnd(buffer: Buffer, start: number): number {
  for (let at = start; at < buffer.length; at += 1) if (buffer[at] === LF || buffer[at] === CR) return at
  return buffer.length
}
const lengthOfEnd = (buffer: Buffer, at: number): number => (buffer[at] === CR && buffer[at + 1] === LF ? 2 : 1)

interface CsvRecord {
  line: number
  cells: string[]
}

/** Bytes that are parsed before others have their turn. */
const SLICE_BYTES = 16 * 1024

async function* slicesOf(buffer: Buffer) {
  for (let at = 0; at < buffer.length; at += SLICE_BYTES) {
    yield buffer.subarray(at, at + SLICE_BYTES)
    await pause()
  }
}

/** Records with the line that each begins in; they end at LF, CR or both, as they come. */
async function* recordsOf(
  buffer: Buffer,
  delimiter: Delimiter,
  { lineBytesMax }: typeof fileLimits,
): AsyncGenerator<CsvRecord> {
  const parser = parse({
    ...{ bom: true, delimiter, record_delimiter: ['\r\n', '\n', '\r'], info: true },
    ...{ relax_column_count: true, skip_empty_lines: true, max_record_size: lineBytesMax },
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
  /** `bytes`: where the record ends, its line end taken with it. */
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
  // The parser drops the records before, when it has read them at the same time.
  if (typeof bytes === 'number') lines.goTo(bytes)
  return new Failure('invalid', `line ${lines.begin()} ${sentence}`, { cause: error })
}

/** The parser counts CR LF within quotes as two lines; editors do not. */
function lineCounter(buffer: Buffer) {
  let at = 0
  let line = 1
  const take = () => {
    line += 1
    at += lengthOfEnd(buffer, at)
  }
  return {
    /** The line of the next record: empty ones before it are passed over. */
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

/** The mark tells spreadsheets that a file is UTF-8. */
export const FILE_START = '\ufeff'

/** Lines of a file; cells that a spreadsheet would take for formulas are escaped. */
export const csvText = (rows: string[][]): string =>
  stringify(
    rows.map((row) => row.map(escapedCell)),
    { record_delimiter: 'windows', quoted_match: /[\r\n]/ },
  )
