/**
 * Loaded with `--import` before the entry of the service: ends the process as if it were killed at the instant that
 * QUAYSIDE_CRASH names. `intended:2` kills it the second time that this instant comes.
 */
import { registerAt } from '../../src/context.ts'

const [wanted, count = '1'] = process.env.QUAYSIDE_CRASH?.split(':') ?? []
let left = Number(count)

if (wanted) {
  registerAt((point) => {
    if (point !== wanted) return
    left -= 1
    if (left === 0) process.kill(process.pid, 'SIGKILL')
  })
}
