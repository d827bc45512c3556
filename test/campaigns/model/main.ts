/**
 * `npm run model`: walks through every state that the purchase of one line part can come to, within the bounds, and
 * through as many wrong variants of the system, each of which must be caught. For people, and last, one JSON line.
 */
import { type Explored, explore, type Fault } from './explore.ts'
import { outOfReach, type Part, parts, ROWS, unexpected, worldWords } from './parts.ts'
import { count, traceLines, wrapped } from './report.ts'
import { rules } from './rules.ts'
import { endings, hanging } from './settle.ts'
import { WORKERS } from './state.ts'
import { promises } from './step.ts'
import { faultOf, variants } from './variants.ts'

const say = (...lines: string[]): void => {
  for (const line of lines) process.stdout.write(`${line}\n`)
}
const { stderr } = process
/** Said while it works, apart from what is kept: over and over on a terminal, now and then in a log. */
function createProgress() {
  let next = 0
  return {
    at(states: number, depth: number): void {
      const line = `  ${count(states, 'state')} within ${count(depth, 'step')}`
      if (stderr.isTTY) stderr.write(`\r${line}   `)
      else if (states >= next) stderr.write(`${line}\n`)
      if (states >= next) next = states + 250_000
    },
    end: (): void => void (stderr.isTTY && stderr.write(`\r${' '.repeat(60)}\r`)),
  }
}

const broken = (fault: Fault): string[] => [...wrapped(`  BROKEN: ${fault.promise}`, 4), ...traceLines(fault.trace)]

function explorePart({ name, worlds, bounds, durations, tick }: Part): Explored & { broken: Fault[] } {
  const { sends, generations, oddities, quantity, changes, cancels } = bounds
  say(name)
  for (const world of worlds) say(...wrapped(`  a supplier that ${worldWords[world]}`, 4))
  const instants = cancels ? 'crashes and cancellations at any instant' : 'crashes at any instant'
  say(`  ${count(sends, 'send')}, ${count(generations, 'generation')}, ${WORKERS} workers; ${instants}`)
  if (changes > 0) say(`  ${count(quantity, 'unit')}; the shop changes the order ${changes === 1 ? 'once' : 'twice'}`)
  say(`  a tick is ${tick} of settle`)
  if (oddities > 0) say(`  ${count(oddities, 'odd thing')} that a supplier does, or an error that comes back`)
  const progress = createProgress()
  const explored = explore({
    rules: { ...rules, durations },
    bounds,
    worlds,
    watched: promises,
    progress: progress.at,
  })
  const faults = [...explored.faults, ...hanging(explored)]
  progress.end()
  const { states, steps, depth } = explored
  say(`  ${count(states, 'state')}, ${count(steps, 'step')}, the farthest after ${depth}: ${faults.length} violations`)
  for (const fault of faults) say(...broken(fault))
  say('')
  return { ...explored, broken: faults }
}

function caughtVariants(): number {
  say('Wrong variants: each is to be caught, by the shortest way to what goes wrong;', 'a tick is half of settle', '')
  let caught = 0
  for (const variant of variants) {
    const fault = faultOf(variant)
    say(...wrapped(`${variant.name}: ${variant.does}`, 2))
    if (fault) {
      caught += 1
      say(...wrapped(`  a supplier that ${worldWords[variant.world]}`, 4), ...traceLines(fault.trace))
      say(...wrapped(`  caught by: ${fault.promise}`, 4), '')
    } else say('  NOT CAUGHT', '')
  }
  return caught
}

say('The promises:', ...[...promises, ...endings].map((promise) => `  ${promise}`), '')
const explored = parts.map(explorePart)
const reached = new Set(explored.flatMap((part) => [...part.reached]))
const wrong = unexpected(reached)
say(`Rows of the transition table, each by its state: ${reached.size} of ${ROWS} were taken`)
for (const [row, reason] of Object.entries(outOfReach)) say(...wrapped(`  not ${row}: ${reason}`, 4))
for (const row of wrong) say(`  UNEXPECTED: ${row} was ${reached.has(row) ? '' : 'not '}taken`)
say('')
const caught = caughtVariants()
const states = explored.reduce((sum, part) => sum + part.states, 0)
const violations = explored.reduce((sum, part) => sum + part.broken.length, 0)
const passed = violations === 0 && wrong.length === 0 && caught === variants.length
const figures = { states, violations, variants: variants.length, caught, passed }
say(JSON.stringify(figures))
process.exitCode = passed ? 0 : 1
