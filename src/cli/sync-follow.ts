import { Failure } from '../errors.ts'
import { asRow, cell, duration, type Row } from './cell.ts'
import { exitCodes } from './exit-codes.ts'
import type { Call } from './service-command.ts'
import { columnsOf } from './table.ts'

/** Twice a second looks alive and is a small load for a read of one row. */
const POLL_MS = 500

/** Where no line can be drawn again, a line each 10 s says that it goes on. */
export const LINE_MS = 10_000

/** The pauses of a rate limit last up to an hour, and a run that rests in one is not dead. */
const STALL_MS = 65 * 60_000

/**
 * Watches a run to its end: a bar on a terminal, lines of JSON with `--json`.
 *
 * @returns the exit code: 0 when it completed, 1 when it failed or was cut short
 * @throws Failure `unavailable` when nothing moved for longer than any pause
 */
export async function followRun(begun: Row, call: Call): Promise<number> {
  const { io, client, json } = call
  const id = cell(begun.id)
  const start = { at: io.now(), pages: count(begun.pages), offers: count(begun.offersSeen) }
  let run = begun
  let shown = ''
  let shownAt = Number.NEGATIVE_INFINITY
  let movedAt = io.now()
  if (!json) io.stdout.write(`Run ${id}, started by ${cell(begun.cause)}\n`)
  while (run.state === 'running' && io.stdout.writable) {
    const now = io.now()
    const key = `${count(run.pages)}/${count(run.offersSeen)}`
    if (key !== shown) movedAt = now
    if (now - movedAt > STALL_MS) {
      throw new Failure('unavailable', `run ${id} has not moved for 65 minutes.\nSee the log of the service.`)
    }
    if (io.isTerminal && !json) io.stdout.write(`\r${bar(run, start, now, io.columns - 1)}`)
    else if (json ? key !== shown : now - shownAt >= LINE_MS) {
      io.stdout.write(json ? `${JSON.stringify(progress(run))}\n` : `${bar(run, start, now, 80).trimEnd()}\n`)
      shownAt = now
    }
    shown = key
    await io.sleep(POLL_MS)
    run = asRow(await client.get(['sync', 'runs', id]))
  }
  if (io.isTerminal && !json) io.stdout.write(`\r${bar(run, start, io.now(), io.columns - 1)}\n`)
  io.stdout.write(json ? `${JSON.stringify(progress(run))}\n` : endText(run))
  return run.state === 'complete' ? exitCodes.ok : exitCodes.failed
}

const count = (value: unknown): number => (typeof value === 'number' ? value : 0)

/** A run without its changes, which may be many; `quayside sync show` has them. */
const progress = ({ changes: _, ...run }: Row): Row => run

/** Leaves room for the words of a large catalogue on 80 columns, so that the bar keeps its length. */
const BAR = 14

/** One line, exactly `width` wide so that it covers the one before. */
export function bar(
  run: Row,
  start: { at: number; pages: number; offers: number },
  now: number,
  width: number,
): string {
  const [pages, total] = [count(run.pages), count(run.pagesTotal)]
  const elapsed = Math.max(1, now - start.at)
  const [read, offers] = [pages - start.pages, count(run.offersSeen) - start.offers]
  const left = total > 0 && read > 0 && run.state === 'running' ? ((total - pages) * elapsed) / read : undefined
  const words = [
    total > 0 ? `${cell(pages)}/${cell(total)} pages` : `${cell(pages)} pages`,
    `${cell(count(run.offersSeen))} offers`,
    `${cell(count(run.offersChanged) + count(run.offersNew))} changed`,
    ...(offers > 0 ? [`${cell(Math.round((offers * 1_000) / elapsed))}/s`] : []),
    // A dry run decides on the listings when every page is read: that is not 0 s.
    ...(left === undefined || left < 1_000 ? [] : [`${duration(left)} left`]),
  ].join('  ')
  const space = width - columnsOf(words) - 4
  if (space < 5) return words.slice(0, width).padEnd(width)
  const size = Math.min(space, BAR)
  const done = total > 0 ? Math.round(size * Math.min(1, pages / total)) : 0
  return `[${'#'.repeat(done)}${'-'.repeat(size - done)}]  ${words}`.padEnd(width)
}

function endText(run: Row): string {
  const id = cell(run.id)
  if (run.state !== 'complete') {
    const request = run.requestId ? ` (the supplier's request ${cell(run.requestId)})` : ''
    return `The run ${cell(run.state)}: ${cell(run.error)}${request}\nSee it: quayside sync show ${id}\n`
  }
  const seen = `${cell(run.offersSeen)} offers, ${cell(run.offersNew)} new, ${cell(run.offersChanged)} changed`
  return `Complete: ${seen}, ${cell(run.offersGone)} gone.\nWhat changed: quayside sync show ${id}\n`
}
