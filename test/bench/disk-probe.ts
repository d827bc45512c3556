/**
 * What the disk itself takes, in a process of its own: `node disk-probe.ts <folder>` writes 4 KiB and waits for the disk, twenty times
 * a second. To each line that it reads it answers with what it measured since the line before; it ends with its input.
 */
import { fsyncSync, openSync, rmSync, writeSync } from 'node:fs'
import path from 'node:path'
import { createHistogram } from 'node:perf_hooks'
import { createInterface } from 'node:readline'

/** Milliseconds of an fsync. */
export interface Disk {
  p50: number
  p99: number
  longest: number
}

const GAP_MS = 50
const file = path.join(process.argv[2] ?? '.', 'disk-probe')
const descriptor = openSync(file, 'w')
const bytes = Buffer.alloc(4_096)
const times = createHistogram()
const timer = setInterval(() => {
  const startedAt = performance.now()
  writeSync(descriptor, bytes, 0, bytes.length, 0)
  fsyncSync(descriptor)
  times.record(Math.max(1, Math.round((performance.now() - startedAt) * 1e3)))
}, GAP_MS)
const lines = createInterface(process.stdin)
lines.on('line', () => {
  const ms = (microseconds: number) => microseconds / 1e3
  const disk: Disk = { p50: ms(times.percentile(50)), p99: ms(times.percentile(99)), longest: ms(times.max) }
  times.reset()
  process.stdout.write(`${JSON.stringify(disk)}\n`)
})
lines.once('close', () => {
  clearInterval(timer)
  rmSync(file)
})
