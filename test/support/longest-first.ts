import { existsSync } from 'node:fs'
import path from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Files that take longer than ten seconds, most of it waiting for processes, the longest of `.ci/run` first: one that began last would be
 * waited for alone.
 */
const LONG = [
  'test/campaigns/mistake-hunts.test.ts',
  'test/campaigns/mistake-hunts-by-tests.test.ts',
  'test/console/every-page.browser.test.ts',
  'test/package/installed.test.ts',
  'test/package/upgrade.test.ts',
  'test/campaigns/torture.test.ts',
  'test/image.test.ts',
  'test/campaigns/rollbacks.test.ts',
  'test/backup/engine-move.test.ts',
  'test/campaigns/rolling-restart.test.ts',
  'test/release/release.test.ts',
  'test/cli/upgrade.test.ts',
  'test/bench/scale.test.ts',
  'test/processes.test.ts',
  'test/stores/shopify-fulfilment.test.ts',
  'test/backup/restore-changed.test.ts',
  'test/campaigns/model.test.ts',
  'test/canaries.test.ts',
  'test/backup/restore.test.ts',
  'test/cli/first-minutes.test.ts',
  'test/crash.test.ts',
  'test/campaigns/simulate.test.ts',
  'test/shutdown.test.ts',
  'test/catalogue/dry-run.test.ts',
  'test/http/fuzz-http.test.ts',
  'test/backup/process.test.ts',
  'test/stores/woocommerce-batches.test.ts',
  'test/http/exports.test.ts',
  'test/http/input.test.ts',
  'test/stores/shopify-bulk.test.ts',
  'test/shops/story.test.ts',
  'test/observe/readyz.test.ts',
  'test/clock-jump.test.ts',
]

/** Begins with the long files. A fresh clone has no times of an earlier run, by which vitest orders them itself. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const { root } = this.ctx.config
    const gone = LONG.filter((file) => !existsSync(path.join(root, file)))
    if (gone.length > 0) throw new Error(`the list of long files names what is not there: ${gone.join(', ')}`)
    const place = ({ moduleId }: TestSpecification) => LONG.indexOf(path.relative(root, moduleId)) >>> 0
    return sorted.toSorted((one, other) => place(one) - place(other))
  }
}
