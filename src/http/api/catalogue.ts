import { z } from 'zod'
import { listingLabels } from '../../domain/labels.ts'
import { need } from '../../storage/database.ts'
import { changesOfRun } from '../../storage/offers.ts'
import { listSyncRuns, type SyncRun as SyncRunRow, syncRunById } from '../../storage/runs.ts'
import { changedField, most, queryFlag } from '../input.ts'
import { type ApiContext, accepted, jsonLines, ok, operation, operator, viewer } from '../operation.ts'
import { listOperation } from './list-operation.ts'
import { RunState } from './reconcile.ts'
import { at, component, count, enumeration, maybeAt, view, words } from './views.ts'

export const ListingState = enumeration('ListingState', listingLabels)

const syncRun = component('SyncRun', {
  id: z.string(),
  cause: z.string(),
  state: RunState,
  startedAt: at,
  finishedAt: maybeAt,
  pages: count,
  pagesTotal: count.nullable(),
  offersSeen: count,
  offersNew: count,
  offersChanged: count,
  offersUnreadable: count,
  offersGone: count,
  dry: z.boolean().describe('A dry run: it changed nothing, and lists no changes'),
  error: words,
  requestId: words,
  pagesBroken: count.describe('Pages that could not be read: the run ends as failed'),
  firstUnreadable: z
    .object({ field: z.string(), path: z.string(), value: z.string() })
    .nullable()
    .describe(
      'The first field that made an offer unreadable: its setting in the dialect, its path, and what was there',
    ),
})
const SyncRun = view(syncRun, (row: SyncRunRow) => row)

const offerChange = {
  productId: z.string(),
  sku: z.string(),
  name: z.string(),
  field: z.string().describe('`presence` for one that is new, listed again or gone'),
  before: words,
  after: words,
}

const ListedChange = component('OfferChange', { id: z.string(), ...offerChange })

const detail = component('SyncRunDetail', { ...syncRun.shape, changes: z.array(z.object(offerChange)) })
const SyncRunDetail = view(detail, (row: SyncRunRow & Pick<z.input<typeof detail>, 'changes'>) => row)

/** The most changes of one sync run that are shown. People read fewer than this, and the run counts all changes. */
const CHANGES_MAX = 1000

const requestId = words.describe("The supplier's id of the request")

const Start = z.object({
  type: z.literal('start'),
  at,
  syncUnderWay: words.describe('A running sync run that changes the same offers'),
})
const Progress = z.object({
  type: z.literal('progress'),
  pages: count,
  pagesTotal: count.nullable(),
  offers: count,
  new: count.describe('Offers that would be new'),
  changed: count.describe('Offers that would be changed'),
  listings: count.describe('Listings that would change; they are decided once every page is read'),
})
const Offer = z.object({ type: z.literal('offer'), ...offerChange })
const Doubt = z
  .object({ type: z.literal('doubt'), page: count.nullable(), message: z.string(), requestId })
  .describe('What is uncertain about this run')
const Listing = z.object({
  type: z.literal('listing'),
  store: z.string(),
  variant: z.string(),
  sku: z.string(),
  name: words.describe('What the store would call it; null where no name is known'),
  productId: words,
  pushed: z.boolean().describe('Whether the store would get it'),
  state: ListingState,
  changes: z.array(z.object({ field: z.string(), before: words, after: words, reason: z.string() })),
})
const End = z
  .object({
    type: z.literal('end'),
    state: z.enum(['complete', 'failed']),
    error: words,
    requestId,
    pages: count,
    pagesTotal: count.nullable(),
    pagesBroken: count,
    offers: z.object({
      seen: count,
      new: count,
      changed: count,
      gone: count,
      missed: count.describe('Not seen for the first time: gone when the next run misses them too'),
      unreadable: count,
      costFaults: count,
    }),
    stores: z.array(z.object({ store: z.string(), pushed: count, held: count })),
    truncated: z.boolean().describe('More would change than the lines list'),
  })
  .describe('The last line; its counts are complete')

const KeptDryRun = component('KeptDryRun', {
  state: z.enum(['running', 'complete', 'failed', 'stopped']),
  actor: z.string(),
  startedAt: at,
  endedAt: maybeAt,
  error: words,
  progress: Progress.omit({ type: true }).nullable(),
  doubts: z.array(Doubt.omit({ type: true })),
  offers: z.array(Offer.omit({ type: true })).describe('At most 500'),
  listings: z.array(Listing.omit({ type: true })).describe('At most 500'),
  end: End.omit({ type: true }).nullable().describe('Its counts are complete; null while it goes on or broke off'),
})

export function syncOperations({ ordering: { db }, syncs }: ApiContext) {
  return {
    requestSync: operation({
      route: 'POST /sync',
      needsWorker: true,
      allowed: operator,
      summary: 'Start a sync run; if one is running, the answer shows that one.',
      answer: z.object({ run: SyncRun }),
      success: { 202: 'Started, or under way' },
      handle: async ({ caller }) => accepted({ run: await syncs.start(caller.actor) }),
    }),
    listSyncRuns: listOperation({
      route: 'GET /sync/runs',
      allowed: viewer,
      summary: 'Sync runs, newest first.',
      item: SyncRun,
      success: { 200: 'A page of runs' },
      db,
      read: listSyncRuns,
    }),
    viewSyncRun: operation({
      route: 'GET /sync/runs/:id',
      allowed: viewer,
      summary: `One sync run with the changes that it found, at most ${CHANGES_MAX}.`,
      query: { changes: queryFlag('List the changes', true) },
      answer: SyncRunDetail,
      success: { 200: 'The run' },
      failures: { 404: 'unknown id' },
      async handle({ path, query }) {
        const run = await need(db, syncRunById(path.id), 'sync run', path.id)
        return ok({ ...run, changes: query.changes ? await db.query(changesOfRun(run.id, '', CHANGES_MAX)) : [] })
      },
    }),
    listSyncChanges: listOperation({
      route: 'GET /sync/runs/:id/changes',
      allowed: viewer,
      filters: { field: changedField },
      by: 'after',
      summary: 'The changes that a sync run found, in the order in which it found them.',
      item: ListedChange,
      success: { 200: 'A page of changes; `next` goes into `after`' },
      failures: { 404: 'unknown id' },
      db,
      read: async ({ before, after = '', limit, field }, { path: { id } }) => {
        const run = await need(db, syncRunById(id), 'sync run', id)
        return changesOfRun(run.id, after, limit, field, before)
      },
    }),
  }
}

/** The operations of dry runs, which are sync runs on a copy of the data. They report each change as they find it. */
export function dryRunOperations({ dryRuns }: ApiContext) {
  const latest = () => ok({ run: dryRuns.latest() ?? null })
  return {
    startDryRun: operation({
      route: 'POST /sync/dry-runs',
      allowed: operator,
      summary: 'Start a dry run that goes on by itself; it is kept until the next one, or the end of the service.',
      answer: z.object({ run: KeptDryRun }),
      success: { 202: 'Started' },
      failures: { 409: 'a dry run is under way: `dry_run_under_way`' },
      handle: async ({ caller }) => accepted({ run: await dryRuns.start(caller.actor) }),
    }),
    viewDryRun: operation({
      route: 'GET /sync/dry-runs',
      allowed: viewer,
      summary: 'The newest dry run that was started so: how far it is, or what it found.',
      answer: z.object({ run: KeptDryRun.nullable() }),
      success: { 200: 'As of now; null when there was none since the service started' },
      handle: async () => latest(),
    }),
    stopDryRun: operation({
      route: 'POST /sync/dry-runs/stop',
      allowed: operator,
      summary: 'End the dry run that was started so, if it is under way.',
      answer: z.object({ run: KeptDryRun.nullable() }),
      success: { 200: 'It is under way no longer' },
      async handle() {
        await dryRuns.stop()
        return latest()
      },
    }),
    dryRunSync: operation({
      route: 'POST /sync/dry-run',
      allowed: operator,
      query: { most },
      summary:
        'What a sync run would change in offers, and then in each store, with reasons; nothing is changed. At most `most` ' +
        'changes of offers, and as many of listings, are listed. It ends when the client disconnects.',
      answer: jsonLines(z.union([Start, Progress, Offer, Doubt, Listing, End])),
      success: { 200: 'A line of JSON for each event as it happens; the last is `end` or `error`' },
      failures: { 409: 'a dry run is under way: `dry_run_under_way`' },
      handle: async ({ query }) => ok(await dryRuns.begin(query)),
    }),
  }
}
