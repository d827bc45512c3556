import type { SupplierOffer } from '../domain/supplier.ts'
import { Failure, messageOf } from '../errors.ts'
import type { FirstUnreadable } from '../storage/schema.ts'
import type { Catalogue } from './context.ts'
import type { PageFacts } from './progress.ts'

export interface FetchedPage {
  number: number
  /** When it was asked for, epoch milliseconds. */
  readAt: number
  items: SupplierOffer[]
  facts: PageFacts
  /** Records that could not be read, and the request that brought them; null when all could. */
  unreadable: UnreadableRecords | null
}

export interface UnreadableRecords {
  count: number
  /** Some of them, for people. */
  detail: string
  /** The first of them. */
  first: FirstUnreadable
  requestId: string | null
}

/** A page that the supplier did not give readably. */
export interface BrokenPage {
  number: number
  message: string
  requestId: string | null
  /** Whether another page may fare better. */
  ofPage: boolean
  /** The supplier says, in its own error envelope, that there is no such page. */
  isAbsent: boolean
}

export interface Pages {
  /** Waits for a page, asked for ahead or now. Never throws: a failure is the value. */
  take: (number: number) => Promise<FetchedPage | BrokenPage>
  /** The same for a page that was read before: no other is asked for ahead. */
  again: (number: number) => Promise<FetchedPage | BrokenPage>
  /** How many were asked for. */
  asked: () => number
  /** Records on a page where the supplier keeps to fewer than were asked for at first, and how many those were. */
  pageSize: () => { kept: number; asked: number } | undefined
  /** Fields that could not be read in records that could: how often each, and where first; null when there was none. */
  unread: () => string | null
}

/** A statement binds a variable for each product of a page; a larger page is not asked for. */
const PAGE_LIMIT_MAX = 1_000

/** Unreadable records named in one log line; the rest are counted. */
const NAMED_MAX = 10

/**
 * The pages of the catalogue, the next one asked for while the caller works on the one before.
 *
 * One request at a time, and the supplier's rate limit decides when each leaves; two pages are held at most. Only a page
 * that the one before announced is asked for ahead.
 *
 * A first page that is shorter than was asked for, with fewer records than the supplier counts, shows the page size that
 * the supplier keeps to. All further pages are asked for in that size, so that they are the same pages however the supplier counts them.
 */
export function openPages(catalogue: Catalogue): Pages {
  let ahead: { number: number; page: Promise<FetchedPage | BrokenPage> } | undefined
  const most = Math.min(catalogue.dialect.paging.limitMax, PAGE_LIMIT_MAX)
  let size: number | undefined
  let asked = 0
  const unread = new Map<string, { count: number; first: string }>()
  const fetch = async (number: number) => {
    asked += 1
    const page = await fetchPage(catalogue, number, size ?? most)
    if (!('facts' in page)) return page
    size ??= keptSize(page.facts)
    for (const offer of page.items) noteUnread(unread, offer)
    return { ...page, facts: { ...page.facts, limit: size } }
  }
  return {
    take: async (number) => {
      const waiting = ahead?.number === number ? ahead.page : fetch(number)
      ahead = undefined
      const page = await waiting
      if ('facts' in page && announcesMore(page) && !catalogue.signal?.aborted) {
        ahead = { number: number + 1, page: fetch(number + 1) }
      }
      return page
    },
    again: fetch,
    asked: () => asked,
    pageSize: () => (size === undefined || size === most ? undefined : { kept: size, asked: most }),
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

/** The size of the pages, by the first one that was read. */
const keptSize = ({ limit, rows, total = 0 }: PageFacts): number =>
  rows > 0 && rows < total ? Math.min(rows, limit) : limit

async function fetchPage(
  { supplier, now, log }: Catalogue,
  number: number,
  limit: number,
): Promise<FetchedPage | BrokenPage> {
  const readAt = now()
  try {
    const { items, unreadable, total, more, requestId } = await supplier.products({ page: number, limit })
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
    const facts = { limit, rows: items.length + unreadable.length, total, more }
    return { number, readAt, items, facts, unreadable: left ?? null }
  } catch (error) {
    const [, message = messageOf(error), requestId = null] = /^(.*) \(request (\S+)\)$/s.exec(messageOf(error)) ?? []
    const reason = error instanceof Failure ? error.reason : undefined
    const ofPage = error instanceof Failure && !OF_ALL_PAGES.includes(reason ?? '')
    log.warn('sync.page_broken', { cursor: number, error: message, requestId })
    return { number, message, requestId, ofPage, isAbsent: reason === 'not_found' }
  }
}

/** Reasons that every other page would meet too. */
const OF_ALL_PAGES = ['unreachable', 'rate_limited', 'unauthorized', 'redirect', 'not_found']
