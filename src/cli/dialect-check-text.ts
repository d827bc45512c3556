import type { SupplierOffer } from '../domain/placement.ts'
import { type DialectFinding, isFault, type Verdict } from '../supplier/dialect-check.ts'
import { cell, counted, plain } from './cell.ts'
import { productTable } from './product-sample.ts'
import { columnsOf, table, wrap } from './table.ts'

interface Checked {
  /** Its name. */
  dialect: string
  /** Its address. */
  supplier: string
  findings: DialectFinding[]
  /** Some of the products that could be read. */
  products: SupplierOffer[]
}

/** The check for people: what fits, what could not be seen, what to ask, and last, next to the sum, what is wrong. */
export function checkText({ dialect, supplier, findings, products }: Checked, width: number): string {
  // What an error answers is left to the supplier: Quayside goes by its code.
  const told = findings.filter(({ fact, verdict }) => verdict !== 'not_shown' || !/^errors\..*status$/.test(fact))
  const by = (...verdicts: Verdict[]) => told.filter(({ verdict }) => verdicts.includes(verdict))
  const [read, documented, faults] = [by('read'), by('documented'), findings.filter(isFault)]
  const doubted = by('none').filter(({ candidates = [] }) => candidates.length > 0)
  const [money, others] = [by('not_shown').filter(isMoney), by('not_shown').filter((one) => !isMoney(one))]
  const sections = [
    `What ${supplier} answers, by the dialect ${dialect}.\n`,
    read.length === 0 ? '' : readTable(read, width),
    productsText(products, width),
    listText('The document says the same', documented, width),
    ...noSampleTexts(by('no_sample'), width),
    listText('Shown by no answer: ask the supplier, for money rests on these', money, width, true),
    listText('Shown by no answer: ask the supplier, or see the first delivery', others, width),
    blocksText('Null in the dialect, and there is something', doubted, width),
    blocksText('In no answer: null, if the supplier has no such thing', by('missing'), width),
    blocksText('WRONG', faults, width),
  ]
  const fit = counted(read.length + documented.length, 'fact fits', 'facts fit')
  const wrong = counted(faults.length, 'is wrong', 'are wrong')
  return `${sections.filter(Boolean).join('\n')}\n${fit}, ${wrong}.\n`
}

/** A path that leads to another price is read without a fault: only a person who knows the price sees it. */
function productsText(products: SupplierOffer[], width: number): string {
  if (products.length === 0) return ''
  const count = products.length === 1 ? 'One product' : `${products.length} products`
  return `${count} as Quayside reads them. Are name, cost and stock right?\n${productTable(products, width)}`
}

const isMoney = ({ fact }: DialectFinding): boolean =>
  /Seconds$|Max$|^stock$/.test(fact) && !fact.startsWith('signature')

function readTable(findings: DialectFinding[], width: number): string {
  const columns = [
    { title: 'FACT', of: (row: object) => (row as DialectFinding).fact, keep: true as const },
    { title: 'DIALECT', of: (row: object) => settingText((row as DialectFinding).dialect) },
    { title: 'READ', of: (row: object) => (row as DialectFinding).value ?? '' },
  ]
  return table(
    findings.map((finding) => ({ ...finding })),
    columns,
    width,
  )
}

/** Values as the dialect file writes them, so that an empty text and null can be told apart. */
const settingText = (value: unknown): string =>
  typeof value === 'string' && value !== '' ? plain(value) : JSON.stringify(value)

/** Facts one after the other, as many as fit in a line. */
function listText(title: string, findings: DialectFinding[], width: number, withSetting = false): string {
  if (findings.length === 0) return ''
  const facts = findings.map(({ fact, dialect }) => (withSetting ? `${fact} (${cell(dialect)})` : fact))
  return linesOf([title, ...indented(facts.join(', '), 2, width)])
}

/** What could not be checked, by its reason: `No order yet: these fields could not be checked`. */
function noSampleTexts(findings: DialectFinding[], width: number): string[] {
  const reasons = Map.groupBy(findings, ({ value = 'no value' }) => value)
  return [...reasons].map(([reason, facts]) => {
    const what = facts.length === 1 ? 'this field' : 'these fields'
    return listText(`${reason.slice(0, 1).toUpperCase()}${reason.slice(1)}: ${what} could not be checked`, facts, width)
  })
}

/** Facts with what is there instead, and what to do. Those with the same trouble stand together. */
function blocksText(title: string, findings: DialectFinding[], width: number): string {
  if (findings.length === 0) return ''
  const same = Map.groupBy(findings, ({ value, hint, candidates }) => JSON.stringify([value, hint, candidates]))
  const blocks = [...same.values()].map((facts) => {
    const [{ value = '', hint, candidates = [] } = { candidates: [] }] = facts
    return linesOf([
      ...indented(facts.map(({ fact, dialect }) => `${fact} (${settingText(dialect)})`).join(', '), 2, width),
      ...(value === '' ? [] : indented(value, 4, width)),
      ...(hint === undefined ? [] : arrow(hint, width)),
      ...candidatesLines(candidates, width),
    ])
  })
  return `${title}\n${blocks.join('')}`
}

function candidatesLines(candidates: NonNullable<DialectFinding['candidates']>, width: number): string[] {
  const longest = Math.max(0, ...candidates.map(({ path }) => columnsOf(path)))
  return candidates.flatMap(({ path, value }, place) => {
    const lead = place === 0 ? '    -> could be ' : ' '.repeat('    -> could be '.length)
    const [first = '', ...more] = wrap(plain(value), width - lead.length - longest - 2)
    const rest = more.map((line) => ' '.repeat(lead.length + longest + 2) + line)
    return [`${lead}${path}${' '.repeat(longest - columnsOf(path) + 2)}${first}`, ...rest]
  })
}

function arrow(text: string, width: number): string[] {
  const [first = '', ...more] = wrap(plain(text), width - 7)
  return [`    -> ${first}`, ...more.map((line) => `       ${line}`)]
}

const indented = (text: string, by: number, width: number): string[] =>
  wrap(plain(text), width - by).map((line) => ' '.repeat(by) + line)

const linesOf = (lines: string[]): string => lines.map((line) => `${line}\n`).join('')
