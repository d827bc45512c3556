/** Walks through every state that can be reached, nearest first, so that the first fault found has the shortest trace. */
import { createGrowing } from './growing.ts'
import { withoutInert } from './inert.ts'
import { asksPerson, brokenIn, isSettled } from './promises.ts'
import type { Rules } from './rules.ts'
import { createSeen } from './seen.ts'
import { decode, encode, type State, startOf, WIDTH, type World } from './state.ts'
import type { Bounds, Model, Promised, Step } from './step.ts'
import { steps } from './steps.ts'

export interface Fault {
  promise: string
  trace: string[]
}

/** What the states are, and which step leads where. */
export interface Explored {
  states: number
  steps: number
  /** Steps from the start to the farthest state. */
  depth: number
  faults: Fault[]
  /** Rows of the transition table that were taken, each with the state it was taken in. */
  reached: Set<string>
  /** Of each state: whether all is settled, and whether a person is asked. */
  settled: (state: number) => boolean
  asks: (state: number) => boolean
  /** Where the steps of a state lead; `byPerson`: a person has to take it. */
  leads: (state: number, visit: (to: number, byPerson: boolean) => boolean) => boolean
  traceTo: (state: number) => string[]
}

export interface Exploring {
  rules: Rules
  bounds: Bounds
  worlds: readonly World[]
  /** Promises that are watched; the first fault of each is kept. */
  watched: readonly Promised[]
  /** Ends at the first fault. */
  stops?: boolean
  progress?: (states: number, depth: number) => void
}

const SETTLED = 1
const ASKS = 2

export function explore({ rules, bounds, worlds, watched, stops = false, progress }: Exploring): Explored {
  const seen = createSeen(WIDTH)
  const parents = createGrowing()
  const marks = createGrowing()
  /** Of each state, where its steps begin; a step is the state it leads to, and its complement when a person takes it. */
  const begins = createGrowing()
  const leads = createGrowing()
  const faults: Fault[] = []
  const row = new Int32Array(WIDTH)
  let here = 0
  let ended = false
  const enter = (state: State, parent: number): void => {
    parents.push(parent)
    marks.push((isSettled(state) ? SETTLED : 0) | (asksPerson(state) ? ASKS : 0))
  }
  const note = (promise: Promised | undefined, last: Step): void => {
    if (!promise || !watched.includes(promise) || faults.some((fault) => fault.promise === promise)) return
    faults.push({ promise, trace: [...traceTo(here), last.says()] })
    ended = stops
  }
  const take = (step: Step): void => {
    const next = withoutInert(rules, step.next)
    encode(next, row)
    const known = seen.size()
    const number = seen.add(row)
    leads.push(step.byPerson ? ~number : number)
    note(step.broken, step)
    if (number < known) return
    enter(next, here)
    note(brokenIn(next, bounds), step)
  }
  const model: Model = { rules, bounds, emit: take, decisions: [], reached: new Set() }
  const stateAt = (number: number): State => decode(seen.numbers, number * WIDTH)
  for (const world of worlds) {
    const start = startOf(world, bounds.quantity, bounds.replaces)
    encode(start, row)
    seen.add(row)
    enter(start, -1)
  }
  let depth = 0
  for (let levelEnd = seen.size(); here < seen.size() && !ended; here += 1) {
    if (here === levelEnd) {
      depth += 1
      levelEnd = seen.size()
      progress?.(levelEnd, depth)
    }
    begins.push(leads.size())
    steps(model, stateAt(here))
  }
  begins.push(leads.size())
  return {
    states: seen.size(),
    steps: leads.size(),
    depth,
    faults,
    reached: model.reached,
    traceTo,
    settled: (state) => (marks.at(state) & SETTLED) !== 0,
    asks: (state) => (marks.at(state) & ASKS) !== 0,
    leads(state, visit) {
      for (let at = begins.at(state); at < begins.at(state + 1); at += 1) {
        const to = leads.at(at)
        if (visit(to < 0 ? ~to : to, to < 0)) return true
      }
      return false
    },
  }

  /** Finds again which step led from each state of the path to the next. */
  function traceTo(number: number): string[] {
    const path: number[] = []
    for (let at = number; at >= 0; at = parents.at(at)) path.unshift(at)
    const lines: string[] = []
    const wanted = new Int32Array(WIDTH)
    for (const [place, to] of path.entries()) {
      if (place === 0) continue
      let line: string | undefined
      const emit = (step: Step): void => {
        encode(withoutInert(rules, step.next), wanted)
        if (line === undefined && seen.find(wanted) === to) line = step.says()
      }
      steps({ ...model, emit, reached: new Set() }, stateAt(path[place - 1] ?? 0))
      lines.push(line ?? '')
    }
    return lines
  }
}
