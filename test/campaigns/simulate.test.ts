/** The simulation in its short form: that it passes, that it repeats, and that it can fail. */
import { spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { rows } from '../../src/domain/purchase.ts'
import { cells, outOfReach, takeReached } from './simulate/coverage.ts'
import { excludedPairs, faults, pairs } from './simulate/faults.ts'
import { planOf } from './simulate/plan.ts'
import { play, playOutside } from './simulate/run.ts'
import { stories } from './simulate/stories.ts'

/** Runs the command as a person does. */
function simulate(...options: string[]) {
  return new Promise<{ code: number | null; lines: string[] }>((done) => {
    const main = resolve(import.meta.dirname, './simulate/main.ts')
    const child = spawn(process.execPath, [main, ...options], { stdio: ['ignore', 'pipe', 'ignore'] })
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
    child.on('close', (code) => done({ code, lines: text.trimEnd().split('\n') }))
  })
}
const figuresOf = (lines: string[]) => JSON.parse(lines.at(-1) ?? '{}') as Record<string, unknown>

describe('the simulation', () => {
  test('breaks no promise in six seeds, and tells its figures in the last line', async () => {
    const { code, lines } = await simulate('--seeds', '6')
    const figures = figuresOf(lines)
    expect(figures).toMatchObject({ seeds: 6, doubleCharges: 0, orphanCharges: 0, lostDeliveries: 0 })
    expect(figures).toMatchObject({ duplicateFulfilments: 0, stuck: 0, cells: cells.length, pairs: pairs.length })
    expect(figures.purchases).toBeGreaterThanOrEqual(30)
    expect(figures.outsideDetected).toBe(figures.outside)
    expect({ code, passed: figures.passed }).toEqual({ code: 0, passed: true })
  })

  test('plays the same seed the same way, and another one another way', async () => {
    const [once, again, other] = [await play(3), await play(3), await play(4)]
    expect(again.digest).toBe(once.digest)
    expect(other.digest).not.toBe(once.digest)
  })

  test('plays a shop of either kind in a sixth of the seeds', () => {
    const kinds = Array.from({ length: 300 }, (_, index) => planOf(index + 1).settings.store)
    for (const kind of ['woocommerce', 'shopify']) {
      const shops = kinds.filter((one) => one === kind).length
      expect(shops).toBeGreaterThan(30)
      expect(shops).toBeLessThan(60)
    }
  })

  test('lets at least two faults happen to at least five purchases', async () => {
    const { fired, purchases } = await play(5, { store: 'backend' })
    expect(fired.length).toBeGreaterThanOrEqual(2)
    expect(purchases).toBeGreaterThanOrEqual(5)
  })

  test('sees double charges where a supplier breaks its word, and that each is noticed', async () => {
    const played = [await playOutside(7), await playOutside(8), await playOutside(9)]
    // Not every seed of these has one; three in a row without any would show nothing.
    expect(Math.max(...played.map(({ doubleCharges }) => doubleCharges))).toBeGreaterThan(0)
    expect(Math.max(...played.map(({ outside }) => outside))).toBeGreaterThan(0)
    for (const { outside, outsideDetected } of played) expect(outsideDetected).toBe(outside)
  })

  test('finds a mistake, and says how to see it again', async () => {
    const { code, lines } = await simulate('--mistake', 'random-key', '--seeds', '3')
    expect(code).toBe(1)
    expect(figuresOf(lines)).toMatchObject({ passed: false })
    expect(lines.join('\n')).toMatch(/again: npm run simulate -- --seed \d+ .*--mistake random-key/)
  })

  test('deals every pair of faults in as many seeds as there are pairs, but for those with a reason', () => {
    const dealt = new Set<string>()
    for (let seed = 1; seed <= pairs.length; seed += 1) {
      const ids = planOf(seed).faults.map(({ fault }) => fault.id)
      for (const one of ids) for (const other of ids) dealt.add(`${one} ${other}`)
    }
    expect(pairs.filter((pair) => !dealt.has(pair.join(' ')))).toEqual([])
    expect(pairs.length + excludedPairs.length).toBe((faults.length * (faults.length - 1)) / 2)
    for (const { why } of excludedPairs) expect(why).not.toBe('')
  })

  test('reviews a purchase whose order another buyer placed before, and counts that order as its one charge', async () => {
    takeReached()
    const { doubleCharges, orphanCharges, stuck, broken } = await play(21, { store: 'backend' })
    expect(takeReached()).toContain('orphan_on_record in planned')
    expect({ doubleCharges, orphanCharges, stuck, broken }).toEqual({
      doubleCharges: 0,
      orphanCharges: 0,
      stuck: 0,
      broken: [],
    })
  })

  test('leaves out only cells that the transition table has', () => {
    const all = rows.flatMap(({ name, states }) => states.map((state) => `${name} in ${state}`))
    for (const cell of Object.keys(outOfReach)) expect(all).toContain(cell)
    expect(cells.length).toBe(all.length - Object.keys(outOfReach).length)
  })

  test('aims its stories at rows that the transition table has', () => {
    for (const { aims } of stories) for (const aim of aims) expect(cells).toContain(aim)
  })
})
