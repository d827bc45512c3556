/**
 * The short form of `npm run restores -- --engine postgres`: older files of a server, promoted standbys and old files in the place of the
 * database. A campaign, so it runs where it is asked for.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isNeeded } from '../support/needs.ts'
import { noRollbackFigures, rollbackCampaign } from './restores/rollbacks.ts'
import { type Server, startServer } from './restores/server-world.ts'

/** `npm run restores -- --engine postgres` is the whole form, with 200 of them; `SEED` begins elsewhere. */
const ROLLBACKS = Number(process.env.ROLLBACKS ?? 12)
const SEED = Number(process.env.SEED ?? 1)
const PER_RUN = 4

const runs = isNeeded('campaigns') && isNeeded('postgres')
const needs = runs ? '' : ' (skipped: a campaign on PostgreSQL, which .ci/run runs)'

describe.runIf(runs)(`a database on a server that is put back to an older state${needs}`, () => {
  const figures = noRollbackFigures()
  let server: Server
  beforeAll(async () => {
    server = await startServer()
  })
  afterAll(() => server.close())

  test.each(Array.from({ length: Math.ceil(ROLLBACKS / PER_RUN) }, (_, place) => SEED + place))(
    'buys nothing twice, and nothing before the newest orders were compared with it: seed %i',
    (seed) => rollbackCampaign({ seed, rollbacks: PER_RUN, server, figures }),
    300_000,
  )

  test('was put back as often as it should, in every way, and each time recognised', () => {
    process.stdout.write(`${JSON.stringify(figures)}\n`)
    const { restores, ways, lacking, recognised, early, doubleCharges } = figures
    expect(restores).toBeGreaterThanOrEqual(ROLLBACKS)
    expect(Math.min(...Object.values(ways))).toBeGreaterThan(0)
    expect({ recognised, early, doubleCharges }).toEqual({ recognised: lacking, early: 0, doubleCharges: 0 })
  })
})
