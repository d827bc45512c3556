import type { Command } from 'commander'
import { asRow, asRows, cell, instant, money, plain, type Row } from './cell.ts'
import { causesOf, nextOf } from './freeze.ts'
import type { Session } from './program.ts'
import { serviceCommand } from './service-command.ts'
import { details } from './table.ts'

/** `status`: what a person on duty looks at first. */
export function addStatus(root: Command, session: Session): void {
  const status = root.command('status').description('balance, freshness, what is under way and what waits for a person')
  serviceCommand(status, session, async (call) => {
    const facts = asRow(await call.client.get(['status']))
    call.print(facts, () => statusText(facts, call.io.now(), call.width))
    return undefined
  })
}

function statusText(facts: Row, now: number, width: number): string {
  const balance = asRow(facts.balance)
  const freeze = asRow(facts.freeze)
  const freshness = asRow(facts.freshness)
  const counts = asRow(facts.counts)
  const offers = asRow(counts.offers)
  const frozen = facts.freeze
    ? `FROZEN by ${cell(freeze.actor)}, ${instant(freeze.at, now)}: ${cell(freeze.reason)}`
    : 'on'
  const [, ...others] = causesOf(freeze)
  const pairs: [string, string][] = [
    ['Buying', frozen],
    ...others.map(({ actor, at, reason }): [string, string] => [
      '',
      `and by ${cell(actor)}, ${instant(at, now)}: ${cell(reason)}`,
    ]),
    [
      'Balance',
      facts.balance ? `${money(balance.amount, balance.currency)}, ${instant(balance.readAt, now)}` : 'not read yet',
    ],
    ['Tier', cell(facts.tier)],
    ['Limits', limitsText(facts.limits)],
    ['Catalogue', freshness.catalogueAt ? `read ${instant(freshness.catalogueAt, now)}` : 'not read yet'],
    ['Offers', `${cell(offers.total)}, ${cell(offers.inStock)} in stock`],
    ['Listings', countsText(counts.listings)],
    ['Purchases', countsText(counts.purchases)],
    ['Held', countsText(counts.held)],
    ['Deliveries', countsText(counts.deliveries)],
    ['Callbacks', countsText(counts.callbacks)],
    ['Alerts', countsText(counts.alerts)],
    ['Discrepancies', countsText(counts.discrepancies)],
    ['Sweep', sweepText(asRow(facts.sweep), now)],
  ]
  const due = [
    ...(facts.freeze ? ['buying is frozen', ...nextOf(freeze).map((next) => `  ${next}`)] : []),
    ...dutiesOf(counts, asRow(facts.sweep)),
    ...pausedOf(facts.paused, now),
  ]
  return (
    details(pairs, width) + (due.length === 0 ? '' : `\nFor a person:\n${due.map((line) => `  ${line}\n`).join('')}`)
  )
}

/** What does not heal by itself, each with the command that shows it. */
function dutiesOf(counts: Row, sweep: Row): string[] {
  const duties: [unknown, string, string][] = [
    [asRow(counts.purchases).review, 'purchases in review', 'quayside reviews'],
    [asRow(counts.listings).held, 'listings held', 'quayside listings list --state held'],
    [asRow(counts.listings).failed, 'listings not taken', 'quayside listings list --state failed'],
    [asRow(counts.deliveries).dead, 'dead deliveries', 'quayside deliveries list --state dead'],
    [asRow(counts.deliveries).quarantined, 'unreadable deliveries', 'quayside deliveries list --state quarantined'],
    [asRow(counts.callbacks).dead, 'dead callbacks', 'quayside outbox list --state dead'],
    [sweep.orphans, 'orders of ours without a purchase', 'quayside discrepancies list'],
    [sweep.missing, 'purchases without their order', 'quayside discrepancies list'],
  ]
  return duties.filter(([count]) => Number(count) > 0).map(([count, what, how]) => `${cell(count)} ${what}: ${how}`)
}

/** Stores whose prices and stock stand still, each with the cause. */
export const pausedOf = (paused: unknown, now: number): string[] =>
  (Array.isArray(paused) ? asRows(paused) : []).map(
    ({ store, until, error }) => `${cell(store)} takes no listings, next try ${instant(until, now)}: ${cell(error)}`,
  )

/** The last whole comparison with the supplier's orders. */
function sweepText({ finishedAt, orders, orphans, missing }: Row, now: number): string {
  if (!finishedAt) return 'none is complete yet'
  return `${cell(orders)} orders, ${cell(orphans)} orphans, ${cell(missing)} missing, ${instant(finishedAt, now)}`
}

/** Counts by name, the empty ones left out: `3 accepted, 41 fulfilled`. */
function countsText(value: unknown): string {
  const counts = Object.entries(asRow(value)).filter(([, count]) => count !== 0)
  return counts.length === 0
    ? 'none'
    : counts.map(([name, count]) => `${cell(count)} ${name.replaceAll('_', ' ')}`).join(', ')
}

/** The supplier's limits, by whatever names they have. */
function limitsText(value: unknown): string {
  const limits = Object.entries(asRow(value)).filter(([, limit]) => limit !== null)
  const words = (name: string) =>
    name.replaceAll('_', ' ').replaceAll(/([a-z])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`)
  return limits.length === 0 ? '-' : plain(limits.map(([name, limit]) => `${words(name)} ${cell(limit)}`).join(', '))
}
