import { describe, expect, test } from 'vitest'
import type { CrashPoint } from '../src/ordering/context.ts'
import { isNeeded } from './support/needs.ts'
import { openInstallation } from './support/service-process.ts'

/** A request has run within six seconds, or never will: the test need not wait for minutes. */
const SETTLES_SOON = { settleSeconds: 6, listLagSeconds: 0.2, scanGapSeconds: 0.5 }

/** Every point of a purchase; a look-up comes only where an answer was lost. Each starts two processes: the one `inShort` runs always. */
const points: { point: CrashPoint; when: string; lost?: true; inShort?: true }[] = [
  { point: 'intending', when: 'before the intent is committed' },
  { point: 'intended', when: 'after the intent is committed, before a byte is sent' },
  { point: 'answered', when: 'after the supplier charged and answered, before that is recorded', inShort: true },
  { point: 'recorded', when: 'after the answer is recorded' },
  { point: 'looked_up', when: 'after a look-up was answered, before that is noted', lost: true },
  { point: 'read', when: 'after the order was read, before its keys are stored' },
  { point: 'pushing', when: 'after it is noted that keys leave, before they do' },
  { point: 'pushed', when: 'after the store has the keys, before that is noted' },
  { point: 'noted', when: 'after it is noted that the store has the keys' },
]

describe('a process killed with kill -9', () => {
  for (const { point, when, lost, inShort } of points) {
    const runs = inShort || isNeeded('campaigns')
    const declare = runs ? test.concurrent : test.concurrent.skip
    declare(
      `${when}: buys once, hands over once${runs ? '' : ' (skipped: .ci/run runs it)'}`,
      async ({ onTestFinished }) => {
        const installation = await openInstallation(onTestFinished, SETTLES_SOON)
        if (lost) installation.sandbox.faults.add({ fault: 'answer-lost' })
        await installation.start(point)
        expect(await installation.order('1001', (await installation.sku()) ?? '', false)).toBe(202)
        await installation.died()
        await installation.start()
        await installation.closed('1001')
        const { charges, refunds } = installation.sandbox.world.report()
        expect({ charges: charges.length, refunds: refunds.length }).toEqual({ charges: 1, refunds: 0 })
        expect(installation.shop.keys().get('1001/1')).toHaveLength(1)
        expect(installation.shop.duplicates()).toEqual([])
      },
    )
  }
})
