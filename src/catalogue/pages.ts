import { followCursors, type SupplierOffer } from '../domain/supplier.ts'
import { Failure, messageOf } from '../errors.ts'
import type { FirstUnreadable } from '../storage/schema.ts'
import type { Catalogue } from './context.ts'
import type { PageFacts } from './progress.ts'

export interface FetchedPage {
  number: number
  /** When the page was asked for, in epoch milliseconds. */
  readAt: number
  items: SupplierOffer[]
  facts: PageFacts
  /** What the next page is asked for by; undefined: by its number. */
  next: string | undefined
  /** The records that could not be read, and the request that brought them; null when all records could be read. */
  unreadable: UnreadableRecords | null
}

export interface UnreadableRecords {
  count: number
  /** Some of the unreadable records, described for people. */
  detail: string
  first: FirstUnreadable
  requestId: string | null
}

/** A page that the supplier did not give, or that cannot be read. */
export interface BrokenPage {
  number: number
  message: string
  requestId: string | null
  /** Whether the failure is about this page alone, so that another page may be readable. */
  ofPage: boolean
  /** Whether the supplier says, in its own error envelope, that there is no such page. */
  isAbsent: boolean
}

export type Pages = ReturnType<typeof openPages>

/** The largest page that is asked for: a statement binds a variable for each product of a page. */
const PAGE_LIMIT_MAX = 1_000

/** How many unreadable records one log line names. The others are only counted. */
const NAMED_MAX = 10

/**
 * Reads the pages of the catalogue. While the caller works on a page, the next page is already asked for.
 *
 * One request is open at a time, and the supplier's rate limit decides when it leaves. Two pages are held at most. A page is
 * asked for ahead only if the page before said that another page follows.
 *
 * If the first page is shorter than was asked for although the supplier has more offers, its length is the supplier's own page
 * size. All further pages are asked for in that size, so that page numbers mean the same pages however the supplier counts.
 * With cursors a page is found by what the page before it named, and a short page means nothing.
 */
export function openPages(catalogue: Catalogue) {
  let ahead: { number: number; page: Promise<FetchedPage | BrokenPage> } | undefined
  const most = Math.min(catalogue.dialect.paging.limitMax, PAGE_LIMIT_MAX)
  const hasCursors = catalogue.dialect.paging.kind === 'cursor'
  let size = hasCursors ? most : undefined
  /** By which cursors or offsets the last page, the one before and the next one are found. */
  const cursors = new Map<number, string>()
  const comesAgain = followCursors()
  let asked = 0
  const unread = new Map<string, { count: number; first: string }>()
  const fetch = async (number: number): Promise<FetchedPage | BrokenPage> => {
    asked += 1
    const page = await fetchPage(catalogue, number, size ?? most, cursors.get(number))
    if (!('facts' in page)) return page
    size ??= keptSize(page.facts)
    for (const offer of page.items) noteUnread(unread, offer)
    return { ...page, facts: { ...page.facts, limit: size } }
  }
  return {
    /** Waits for a page that was asked for ahead, or asks for it now. Never throws: a failure is returned as a `BrokenPage`. */
    take: async (number: number): Promise<FetchedPage | BrokenPage> => {
      const waiting = ahead?.number === number ? ahead.page : fetch(number)
      ahead = undefined
      const page = await waiting
      cursors.delete(number - 2)
      if ('facts' in page && page.next !== undefined) {
        if (hasCursors && comesAgain(page.next)) {
          const message = 'the supplier names a cursor again: its list never ends'
          return { number, message, requestId: null, ofPage: false, isAbsent: false }
        }
        cursors.set(number + 1, page.next)
      }
      if ('facts' in page && announcesMore(page) && !catalogue.signal?.aborted) {
        ahead = { number: number + 1, page: fetch(number + 1) }
      }
      return page
    },
    /** Asks for a page that was read before. Unlike `take`, asks for no further page ahead. */
    again: fetch,
    asked: () => asked,
    /** The supplier's smaller page size, and the size that was asked for; undefined where the supplier gives what was asked for. */
    pageSize: () => (size === undefined || size === most ? undefined : { kept: size, asked: most }),
    /** Unreadable fields of readable records: how often each was met, and where first; null when there was no such field. */
    unread: () => {
      const fields = [...unread].map(([field, { count, first }]) => `${field}: ${count}, first of ${first}`)
      return fields.length === 0 ? null : fields.join('; ')
    },
  }
}

function noteUnread(unread: Map<string, { count: number; first: string }>, offer: SupplierOffer): void {
  for (const field of offer.unread ?? []) {
    const noted = unread.get(field)
    if (noted) noted.count += 1
    else unread.set(field, { count: 1, first: offer.productId })
  }
}

const announcesMore = ({ number, facts: { more, rows, limit, total } }: FetchedPage): boolean =>
  more ?? (total === undefined ? rows === limit : number * limit < total)

/** Returns the page size that the supplier keeps to, by the first page that was read. */
const keptSize = ({ limit, rows, total = 0 }: PageFacts): number =>
  rows > 0 && rows < total ? Math.min(rows, limit) : limit

async function fetchPage(
  { supplier, dialect, now, log }: Catalogue,
  number: number,
  limit: number,
  cursor: string | undefined,
): Promise<FetchedPage | BrokenPage> {
  const readAt = now()
  const hasCursors = dialect.paging.kind === 'cursor'
  try {
    const query = { page: number, limit, ...(cursor === undefined ? {} : { cursor }) }
    const { items, unreadable, total, more, next, requestId } = await supplier.products(query)
    const named = unreadable
      .slice(0, NAMED_MAX)
      .map(({ index, id, field, seen }) => `record ${index}${id === undefined ? '' : ` (${id})`}: ${field} is ${seen}`)
    const [first] = unreadable
    const left = first && {
      count: unreadable.length,
      detail: named.join('; '),
      first: { field: first.setting, path: first.field, value: first.seen },
      requestId: requestId ?? null,
    }
    if (left) {
      const { first: _, ...fields } = left
      log.warn('sync.unreadable', { cursor: number, ...fields })
    }
    const facts: PageFacts = { limit, rows: items.length + unreadable.length, total, more }
    if (hasCursors) facts.isLast = next === undefined
    return { number, readAt, items, facts, next, unreadable: left ?? null }
  } catch (error) {
    const [, message = messageOf(error), requestId = null] = /^(.*) \(request (\S+)\)$/s.exec(messageOf(error)) ?? []
    const reason = error instanceof Failure ? error.reason : undefined
    // Behind a page without an answer, no cursor is known.
    const ofPage = !hasCursors && error instanceof Failure && !OF_ALL_PAGES.includes(reason ?? '')
    log.warn('sync.page_broken', { cursor: number, error: message, requestId })
    return { number, message, requestId, ofPage, isAbsent: reason === 'not_found' }
  }
}

/** The reasons of failures that are not about one page: every other page would fail too. */
const OF_ALL_PAGES = ['unreachable', 'rate_limited', 'unauthorized', 'redirect', 'not_found']
