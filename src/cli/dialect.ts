import type { Command } from 'commander'
import { addCapture } from './dialect-capture.ts'
import { addCheck } from './dialect-check.ts'
import { addDetect } from './dialect-detect.ts'
import type { Session } from './program.ts'

/** `dialect`: does the file that pins the supplier's open facts fit, and what should be in it. */
export function addDialect(root: Command, session: Session): void {
  const dialect = root.command('dialect').description('fit a supplier: check its facts, detect its signature')
  addCheck(dialect, session)
  addDetect(dialect, session)
  addCapture(dialect, session)
}
