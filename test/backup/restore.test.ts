import { describe, expect, test } from 'vitest'
import { restoreCampaign } from '../campaigns/restores/campaign.ts'
import { changesCampaign } from '../campaigns/restores/changes.ts'
import { type Figures, noFigures } from '../campaigns/restores/figures.ts'
import { isNeeded } from '../support/needs.ts'

/** `npm run restores` is the whole form, with 200 of them; `SEED` begins elsewhere. */
const RESTORES = Number(process.env.RESTORES ?? 20)
const SEED = Number(process.env.SEED ?? 1)
const PER_RUN = 5
const runs = Array.from({ length: Math.ceil(RESTORES / PER_RUN) }, (_, place) => SEED + place)

const isLong = isNeeded('campaigns')
const needs = isLong ? '' : ' (skipped: a campaign, which .ci/run runs)'

describe.runIf(isLong)(`a database that is backed up after every commit, and put back${needs}`, () => {
  const all: Figures[] = []

  test.each(runs)(
    'buys nothing twice and loses no charge, whichever backup it is: seed %i',
    async (seed) => {
      const figures = noFigures()
      all.push(figures)
      await restoreCampaign({ seed, restores: PER_RUN, figures })
    },
    120_000,
  )

  test.each(runs.filter((_, place) => place % 4 === 0))(
    'buys no unit twice that a shop has changed between backup and loss: seed %i',
    async (seed) => {
      const figures = noFigures()
      all.push(figures)
      await changesCampaign({ seed, restores: PER_RUN, figures })
    },
    300_000,
  )

  test('was put back as often as it should, in every way', () => {
    const sum = (name: keyof Figures) => all.reduce((total, figures) => total + figures[name], 0)
    process.stdout.write(
      `${JSON.stringify(Object.fromEntries(Object.keys(all[0] ?? {}).map((name) => [name, sum(name as keyof Figures)])))}\n`,
    )
    expect(sum('restores')).toBeGreaterThanOrEqual(RESTORES)
    expect(sum('backups')).toBeGreaterThan(RESTORES * 5)
    for (const name of ['recognised', 'snapshots', 'lost', 'handedInAgain', 'changed'] as const)
      expect(sum(name), name).toBeGreaterThan(0)
  })

  test('is charged twice where the service does not notice the restore, and the verdict counts that', async () => {
    const figures = noFigures()
    // In these two it is: another seed may have no restore that lacks a purchase.
    for (const seed of [1, 3]) await restoreCampaign({ seed, restores: 3, unnoticed: true, figures })
    expect(figures.doubleCharges).toBeGreaterThan(0)
  })
})
