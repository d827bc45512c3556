/**
 * `npm run bench -- counts [--rounds N]`: what the hourly counts cost an order, of the time of a core. Two services take the same
 * rounds of orders by turns, one of which does not write the counts: what disturbs one disturbs the other.
 */
import { loadavg } from 'node:os'
import { ORDERS, type OrderBench, openOrderBench } from './order.ts'
import { medianOf } from './processes.ts'
import type { Row } from './table.ts'

const ROUNDS = 10
const WANTED = 1.02
const UNCOUNTED = new URL('./uncounted.ts', import.meta.url).href

export async function benchCounts(say: (text: string) => void, rounds = ROUNDS) {
  const [counting, plain] = [await openOrderBench(), await openOrderBench([UNCOUNTED])]
  const both: { with: number; without: number }[] = []
  try {
    for (let round = 0; round <= rounds; round += 1) {
      say(round === 0 ? 'orders: warming up' : `orders: round ${round} of ${rounds}`)
      // The first of a round meets caches as the round before left them: each is first by turns.
      const isFirst = round % 2 === 0
      const first = await coreOfOrder(isFirst ? counting : plain, round)
      const second = await coreOfOrder(isFirst ? plain : counting, round)
      if (round > 0) both.push(isFirst ? { with: first, without: second } : { with: second, without: first })
    }
  } finally {
    await Promise.all([counting.close(), plain.close()])
  }
  const ratio = medianOf(both.map((one) => one.with / one.without))
  const [counted, uncounted] = [medianOf(both.map((one) => one.with)), medianOf(both.map((one) => one.without))]
  const isGood = ratio <= WANTED
  const rows: Row[] = [
    ['an order with its hourly counts', `${counted.toFixed(2)} ms of a core`],
    ['without them', `${uncounted.toFixed(2)} ms of a core`],
    ['the median of the ratios', ratio.toFixed(3), `at most ${WANTED}`, isGood ? 'ok' : 'missed'],
    ['load of the machine at the end', (loadavg()[0] ?? 0).toFixed(1)],
  ]
  const figures = { counts: Number(ratio.toFixed(3)), rounds, withMs: counted, withoutMs: uncounted, passed: isGood }
  return { rows, figures, isGood }
}

/** Milliseconds of a core for one order. */
async function coreOfOrder(bench: OrderBench, round: number): Promise<number> {
  const before = await bench.coreMs()
  await bench.orders(round)
  return ((await bench.coreMs()) - before) / ORDERS
}
