import type { LineProblem, ListingLine } from '../domain/listing-csv.ts'
import { decideLine, type LineOutcome } from '../domain/listing-line.ts'
import { type Change, StaleWrite } from '../storage/database.ts'
import { insertAudit } from '../storage/evidence.ts'
import { type ListingRow, listingsOfVariants, putListings } from '../storage/listings.ts'
import { offersByProduct, offersBySku } from '../storage/offers.ts'
import { following, ignored, type Linking, linkedTo, unlinked } from './links.ts'
import { type ListingFile, openListingFile, REPEATS_MAX } from './listing-file.ts'

/** Whose listings a file is for, and who sent it. */
export interface Import {
  store: string
  actor: string
  /** Only tells what would happen. */
  dryRun: boolean
}

/** What became of a file: each of its lines is counted once. */
export interface ImportReport {
  lines: number
  linked: number
  unlinked: number
  ignored: number
  /** The listing was as the line says. */
  unchanged: number
  /** Nothing was done for the line; `problems` says why. */
  refused: number
  /** By line. Columns that nobody knows are told of too. */
  problems: LineProblem[]
  /** There are more problems than are listed. */
  truncated: boolean
}

/** Problems that one report lists: who has more of them mends the cause and sends the file again. */
export const PROBLEMS_MAX = 1_000

/** Lines that are decided on and committed together. */
const BATCH_LINES = 100

/**
 * Links, unlinks and ignores listings as the lines of a CSV file say: the same as by hand, recorded in the audit alike.
 *
 * Each line stands for itself: a refused one stops no other. Lines are committed a hundred at a time; after a crash the
 * same file goes on where it ended, since links and ignored variants that are there already are `unchanged`.
 *
 * @throws Failure `invalid` for a file that cannot be read; nothing has been changed then
 */
export async function importLinks(linking: Linking, wanted: Import, bytes: Uint8Array): Promise<ImportReport> {
  const file = await openListingFile(bytes)
  const report: ImportReport = {
    ...{ lines: file.lines, linked: 0, unlinked: 0, ignored: 0, unchanged: 0, refused: 0 },
    ...{ problems: [], truncated: false },
  }
  for (const column of file.header.unknown) {
    note(report, { line: 1, column, message: 'nobody knows this column: it is left unread' })
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

/** A pass that publishes may have written one of the listings in between. */
const TRIES_MAX = 5

/** Decides on lines of different variants and commits what they change. */
async function settle(
  linking: Linking,
  wanted: Import,
  lines: ListingLine[],
): Promise<ReadonlyMap<ListingLine, LineOutcome>> {
  for (let tries = 1; ; tries += 1) {
    const { outcomes, changes } = await plan(linking, wanted, lines)
    if (wanted.dryRun || changes.length === 0) return outcomes
    try {
      await linking.db.commit(changes)
      return outcomes
    } catch (error) {
      if (!(error instanceof StaleWrite)) throw error
      if (tries === TRIES_MAX) return new Map(lines.map((line) => [line, busy(line)]))
    }
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

/** The listing as a line makes it; undefined where it changes nothing. */
function rowOf(outcome: LineOutcome, listing: ListingRow | undefined, place: { store: string; variant: string }) {
  if (outcome.outcome === 'link') return linkedTo(listing, place, { ...outcome, linkedBy: 'csv' })
  if (outcome.outcome === 'ignore') return ignored(listing, place, 'said so by a file')
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
