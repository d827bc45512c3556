/** Keeps the newest dry run for people who look at it now and then, instead of reading it line by line. */
import { messageOf } from '../errors.ts'
import type { Doubt, DryRunEnd, DryRunEvent, DryRunProgress, OfferChange } from './dry-run.ts'
import type { DryRunner } from './dry-runner.ts'

type ListingChange = Omit<Extract<DryRunEvent, { type: 'listing' }>, 'type'>

export interface KeptDryRun {
  state: 'running' | 'complete' | 'failed' | 'stopped'
  actor: string
  /** Epoch milliseconds. */
  startedAt: number
  endedAt: number | null
  error: string | null
  progress: DryRunProgress | null
  doubts: Doubt[]
  offers: OfferChange[]
  listings: ListingChange[]
  end: DryRunEnd | null
}

export interface DryRunKeeper {
  /** @throws Failure as `DryRunner` does */
  start(actor: string): Promise<KeptDryRun>
  /** The newest since the start of the service; undefined: there was none. */
  latest(): KeptDryRun | undefined
  /** Ends the one that is under way early; without one, nothing happens. */
  stop(): Promise<void>
}

/** Changes of offers, and of listings, that are kept: as many as a person reads. All are counted. */
const KEPT_MAX = 500
/** A supplier may have something to doubt on every page. */
const DOUBTS_MAX = 100

export function createDryRunKeeper(dryRun: DryRunner, now: () => number): DryRunKeeper {
  let kept: KeptDryRun | undefined
  let underWay: AsyncIterableIterator<DryRunEvent, void> | undefined

  async function follow(run: KeptDryRun, events: AsyncIterableIterator<DryRunEvent, void>): Promise<void> {
    try {
      for await (const event of events) take(run, event)
      if (run.state === 'running') run.state = 'stopped'
    } catch (error) {
      Object.assign(run, { state: 'failed', error: messageOf(error) })
    }
    run.endedAt = now()
    underWay = undefined
  }

  return {
    start: async (actor) => {
      const events = await dryRun({ most: KEPT_MAX })
      const run: KeptDryRun = {
        state: 'running',
        actor,
        startedAt: now(),
        endedAt: null,
        error: null,
        progress: null,
        doubts: [],
        offers: [],
        listings: [],
        end: null,
      }
      kept = run
      underWay = events
      void follow(run, events)
      return run
    },
    latest: () => kept,
    stop: async () => {
      await underWay?.return?.()
    },
  }
}

function take(run: KeptDryRun, event: DryRunEvent): void {
  if (event.type === 'start') return
  const { type, ...rest } = event
  if (type === 'progress') run.progress = rest as DryRunProgress
  if (type === 'doubt' && run.doubts.length < DOUBTS_MAX) run.doubts.push(rest as Doubt)
  if (type === 'offer') run.offers.push(rest as OfferChange)
  if (type === 'listing') run.listings.push(rest as ListingChange)
  if (type !== 'end') return
  const end = rest as DryRunEnd
  Object.assign(run, { end, state: end.state, error: end.error })
}
