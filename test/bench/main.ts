/** `npm run bench -- receive [--stored N]`: a table for people and, last, one JSON line. */
import { benchOrder } from './order.ts'
import { benchGrowth, benchReceive, missed, ratioRows } from './receive.ts'
import { table } from './table.ts'

const say = (text: string): void => {
  process.stderr.write(`${text}\n`)
}
const [, , name, flag, count] = process.argv
if (name !== 'receive') {
  say('usage: npm run bench -- receive [--stored N]')
  process.exit(2)
}
const main = await benchReceive(say)
const growth = await benchGrowth(say, flag === '--stored' ? Number(count) : undefined)
const order = await benchOrder(say)
const ratios = { ...main.ratios, ...growth.ratios, ...order.ratios }
const bad = missed(ratios)
process.stdout.write(`${table([...main.rows, ...growth.rows, ...order.rows])}\n\n${table(ratioRows(ratios))}\n\n`)
const rounded = Object.fromEntries(Object.entries(ratios).map(([key, value]) => [key, Number(value.toFixed(3))]))
const figures = {
  ...rounded,
  figures: { ...main.figures, ...growth.figures, ...order.figures },
  missed: bad,
  passed: bad.length === 0,
}
process.stdout.write(`${JSON.stringify(figures)}\n`)
process.exitCode = bad.length === 0 ? 0 : 1
