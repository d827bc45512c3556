import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  escapedCell,
  fileLimits,
  type LineProblem,
  type ListingLine,
  lineColumns,
  plainCell,
  shownColumns,
} from '../../src/domain/listing-csv.ts'
import { csvText, FILE_START, openListingFile } from '../../src/listings/links-file.ts'

const bytesOf = (text: string) => Buffer.from(text)
async function linesOf(file: string | Uint8Array, limits = fileLimits) {
  const opened = await openListingFile(typeof file === 'string' ? bytesOf(file) : file, limits)
  const lines: (ListingLine | LineProblem)[] = []
  for await (const one of opened.read()) lines.push(one)
  return lines
}
const line = (fields: Partial<ListingLine>): ListingLine => ({
  line: 2,
  variant: 'V1',
  sku: 'A',
  product: '',
  variation: null,
  action: 'link',
  ...fields,
})

/** Cells as supplier and stores may have them, and as they should not. */
const hostileText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom(
      ...['=', '+', '-', '@', "'", '"', ',', ';', '\t', '\r', '\n', '\r\n', ' ', 'A', '\uff1d', '\0'],
    ),
  }),
)

describe('a cell', () => {
  test.each([
    ['=HYPERLINK("http://evil.example";"x")', `'=HYPERLINK("http://evil.example";"x")`],
    ['+1', "'+1"],
    ['-1', "'-1"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['\t=1', "'\t=1"],
    ['\r=1', "'\r'=1"],
    ['Game\n=HYPERLINK("x")', `Game\n'=HYPERLINK("x")`],
    ["Game\r\n'=1\r@2", "Game\r\n''=1\r'@2"],
    ['Game\n\n-1', "Game\n\n'-1"],
    ['Game\nEdition = 1', 'Game\nEdition = 1'],
    ["'=1", "''=1"],
    ['\uff1d1', "'\uff1d1"],
    ["'tis", "'tis"],
    ['A=1', 'A=1'],
    ['', ''],
  ])('%j is written as %j and read as it was', (text, written) => {
    expect(escapedCell(text)).toBe(written)
    expect(plainCell(written)).toBe(text)
  })

  test('is never a formula once written, and reads as it was', () => {
    fc.assert(
      fc.property(hostileText, (text) => {
        for (const line of escapedCell(text).split(/[\r\n]/)) expect(line).not.toMatch(/^[=+\-@\t]/)
        expect(plainCell(escapedCell(text))).toBe(text)
      }),
    )
  })
})

describe('a file', () => {
  test('that was written, read and written again is the same file', async () => {
    const cell = hostileText
    const row = fc.tuple(
      cell.filter((text) => text !== ''),
      cell,
      cell,
      cell,
      fc.constantFrom('link', 'ignore', ''),
    )
    const header = [...lineColumns]
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 8 }), async (rows) => {
        const text = FILE_START + csvText([header, ...rows])
        const read = await linesOf(text)
        const again = read.map((one) => {
          if (!('variant' in one)) throw new Error(one.message)
          return [one.variant, one.sku, one.product, one.variation ?? '', one.action ?? '']
        })
        expect(again).toEqual(rows)
        expect(FILE_START + csvText([header, ...again])).toBe(text)
      }),
      { numRuns: 300 },
    )
  })

  test.each([
    ['commas', 'variant,sku\nV1,A\n'],
    ['semicolons', 'variant;sku\nV1;A\n'],
    ['tabs', 'variant\tsku\nV1\tA\n'],
    ['a byte order mark', '\ufeffvariant,sku\nV1,A\n'],
    ['a quoted header behind a byte order mark', '\ufeff"variant","sku"\n"V1","A"\n'],
    ['CR LF', 'variant,sku\r\nV1,A\r\n'],
    ['CR alone', 'variant,sku\rV1,A'],
    ['names in capitals, with spaces', ' VARIANT , Sku \nV1,A'],
    ['columns in another sequence', 'sku,variant\nA,V1'],
    ['cells that are missing or empty behind the last', 'variant,sku,product\nV1,A\n'],
    ['more empty cells than columns', 'variant,sku\nV1,A,,,\n'],
    ['columns that an export shows', 'name,variant,price,sku\nGame,V1,12.00,A\n'],
  ])('with %s is understood', async (_what, text) => {
    expect(await linesOf(text)).toEqual([line({})])
  })

  test('with line ends of all kinds, empty lines and cells of several lines names the line of an editor', async () => {
    const text = 'variant,sku,variation\r\nV1,A,"two\r\nlines"\n\r\n\rV2,B,\n"V3",C,"a\nb\r"\r\n,,\nV4,D,\r\n'
    const found = await linesOf(text)
    expect(found.map((one) => [one.line, 'variant' in one && one.variant])).toEqual([
      [2, 'V1'],
      [6, 'V2'],
      [7, 'V3'],
      [11, 'V4'],
    ])
  })

  test('names columns that it does not know, and reads the others', async () => {
    const { header } = await openListingFile(bytesOf(`variant,sku,prodcut,Title,prodcut,,${shownColumns.join(',')}\n`))
    expect(header.unknown).toEqual(['prodcut', 'title'])
  })

  test('names the lines of a variant that it has twice', async () => {
    const { repeated, lines } = await openListingFile(bytesOf('variant,sku\nV1,A\nV2,B\nV1,C\nV1,A\n'))
    expect([lines, Object.fromEntries(repeated)]).toEqual([4, { V1: [2, 4, 5] }])
  })

  test.each<[string, string, Partial<LineProblem>]>([
    ['a variant that is empty', ',A,', { column: 'variant', message: expect.stringContaining('the cell is empty') }],
    ['an action that there is not', 'V1,A,buy', { column: 'action', message: expect.stringContaining('link, ignore') }],
    ['more cells than columns', 'V1,A,link,x', { column: null, message: expect.stringContaining('has 4 cells') }],
  ])('says of one line that it has %s', async (_what, cells, problem) => {
    const found = await linesOf(`variant,sku,action\n${cells}\nV2,B,\n`)
    expect(found).toEqual([{ line: 2, ...problem }, line({ line: 3, variant: 'V2', sku: 'B', action: null })])
  })
})

describe('an unreadable file', () => {
  const utf16 = Buffer.from('\ufeffvariant,sku\nV1,A\n', 'utf16le')
  test.each<[string, string | Uint8Array, string]>([
    ['is empty', '', 'the file is empty'],
    ['has empty lines only', '\n\r\n\n', 'the file is empty'],
    ['has no header', 'V1,A\nV2,B\n', 'the column variant is missing'],
    ['has a variant and nothing to link it to', 'variant,name\nV1,x\n', 'sku, product and action are missing'],
    ['has a column twice', 'variant,sku,SKU\nV1,A,B\n', 'the column sku is there twice'],
    ['is UTF-16', utf16, 'line 1 is not UTF-8'],
    ['is UTF-16 without a mark', utf16.subarray(2), 'line 1 is not UTF-8'],
    ['is Latin-1', Buffer.from('variant,sku\nV1,A\nV2,Fu\xdfball\n', 'latin1'), 'line 3 is not UTF-8'],
    ['is a picture', Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), 'line 1 is not UTF-8'],
    ['never closes a quote', 'variant,sku\nV1,A\nV2,"B\nV3,C\n', 'line 3 opens a quote'],
    ['has a quote within a cell', 'variant,sku\n\nV1,5" disk\n', 'line 3 has a quote within a cell'],
    ['has a quote within quotes', 'variant,sku\n"V1","5" disk"\n', 'line 2 has a quote within a quoted cell'],
    ['has a cell beyond all measure', `variant,sku\nV1,"${'x\n'.repeat(40_000)}"\n`, 'line 2 is too long'],
    ['has a million columns', `variant,sku\nV1${','.repeat(1_000_000)}\n`, 'more than 64 KiB in line 2'],
    ['has a header of a million columns', `variant${',x'.repeat(1_000_000)}\n`, 'more than 64 KiB in line 1'],
  ])('is refused when it %s', async (_what, file, message) => {
    await expect(linesOf(file)).rejects.toMatchObject({ code: 'invalid', message: expect.stringContaining(message) })
  })

  test('is refused beyond its limits, and read at them', async () => {
    const text = 'variant,sku\nV1,A\nV2,B\n'
    const limits = { bytesMax: text.length, linesMax: 2, lineBytesMax: 11 }
    expect(await linesOf(text, limits)).toHaveLength(2)
    for (const [name, less] of Object.entries({
      ...limits,
      bytesMax: text.length - 1,
      linesMax: 1,
      lineBytesMax: 10,
    })) {
      const refused = linesOf(text, { ...limits, [name]: less })
      await expect(refused, name).rejects.toMatchObject({ code: 'invalid', reason: 'too_large' })
    }
  })
})
