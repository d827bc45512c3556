import { age } from '../domain/figures.ts'
import type { StoreFinding } from './store.ts'

/** Past this a shop may take what was signed now for something old. */
const CLOCK_MAX_MS = 300_000

/** Compares the clocks. @param aheadMs how far this machine is ahead of the shop */
export function clockFinding(aheadMs: number): StoreFinding {
  if (Math.abs(aheadMs) <= CLOCK_MAX_MS) {
    return { check: 'clock', state: 'ok', detail: 'its clock and that of this machine agree', fix: null }
  }
  return {
    check: 'clock',
    state: 'doubtful',
    detail: `its clock is ${age(Math.abs(aheadMs))} ${aheadMs > 0 ? 'behind' : 'ahead of'} that of this machine`,
    fix: 'Set both clocks by a time server.',
  }
}
