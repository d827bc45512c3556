/** `npm run power-cut -- [--images N] [--deliveries N] [--seed S]`: what was done, for people, and last one JSON line. */
import { rmSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { cutPower, openFolder, type Run, runCommits, runDeliveries, type Verdict } from './campaign.ts'
import { canTrace } from './strace.ts'

const say = (text: string): void => {
  process.stderr.write(`${text}\n`)
}

const text = { type: 'string' } as const
const { values } = parseArgs({ options: { images: text, deliveries: text, seed: text } })
const images = Number(values.images ?? 500)
const count = Number(values.deliveries ?? 400)
const seed = Number(values.seed ?? 1)
if (![images, count, seed].every(Number.isSafeInteger)) {
  say('usage: npm run power-cut -- [--images N] [--deliveries N] [--seed S]')
  process.exit(2)
}
if (!canTrace()) {
  say('this machine has no strace, or does not let it trace: apt-get install strace')
  process.exit(2)
}

const sayRun = (what: string, { answers, syncs, early }: Run) =>
  say(`${what}: ${answers.length} acknowledged, ${syncs} fsyncs of the log, ${early.length} acknowledged too early`)
const judged = (what: string, { images, acknowledged, losing, broken }: Verdict) =>
  say([`${what}: ${images} images, ${acknowledged} to be found, ${losing} images miss some`, ...broken].join('\n'))

const folder = openFolder()
try {
  say(`seed ${seed}`)
  const commits = await runCommits(folder, count)
  sayRun('commits one by one', commits)
  const real = await runDeliveries(folder, count, 'FULL')
  sayRun('deliveries', real)
  const verdict = await cutPower(folder, real, { images, seed })
  judged('power cuts', verdict)
  const control = await runDeliveries(folder, count, 'NORMAL')
  sayRun('control, synchronous=NORMAL', control)
  const controlVerdict = await cutPower(folder, control, { images, seed })
  judged('power cuts of the control', controlVerdict)
  const passed = [
    commits.answers.length === count && commits.syncs >= count && commits.early.length === 0,
    real.answers.length === count && real.early.length === 0,
    verdict.acknowledged > 0 && verdict.losing === 0 && verdict.broken.length === 0,
    // A method that finds nothing wrong with a database that does not wait for the disk proves nothing.
    control.early.length > 0 && controlVerdict.losing > 0,
  ].every(Boolean)
  const figures = {
    commits: commits.answers.length,
    commitSyncs: commits.syncs,
    deliveries: real.answers.length,
    early: commits.early.length + real.early.length,
    images,
    losing: verdict.losing,
    broken: verdict.broken.length,
    controlLosing: controlVerdict.losing,
    seed,
    passed,
  }
  process.stdout.write(`${JSON.stringify(figures)}\n`)
  process.exitCode = passed ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
