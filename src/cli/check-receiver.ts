import { sentence } from '../domain/text-layout.ts'
import { createIds } from '../ids.ts'
import { type Io, proseWidth } from './command.ts'
import { exitCodes } from './exit-codes.ts'
import { findingText } from './facts.ts'
import { readAddress, type SecretFlags, secretsFor } from './receivers.ts'

/** Does `check receiver`. Prints each finding as it is made. @returns the exit code */
export async function runCheckReceiver(io: Io, options: SecretFlags, given: string): Promise<number> {
  const url = readAddress(given)
  const { secrets } = await secretsFor(io, options)
  const { checkReceiver } = await import('../stores/backend/receiver-check.ts')
  const keys = secrets.map((text) => Buffer.from(text.slice('whsec_'.length), 'base64'))
  const { now, sleep, randomBytes } = io
  const checks = []
  for await (const finding of checkReceiver({ url, secrets: keys, now, sleep, newId: createIds(now, randomBytes) })) {
    checks.push(finding)
    const { check, passed, detail, fix } = finding
    if (!options.json) io.stdout.write(findingText(passed ? 'ok' : 'fail', check, detail, fix, proseWidth(io)))
  }
  const failed = checks.filter(({ passed }) => !passed).length
  const passed = failed === 0
  const counts = checks.length === 1 ? 'No other callback was sent.' : `${failed} of ${checks.length} failed.`
  if (options.json) io.stdout.write(`${JSON.stringify({ receiver: url, passed, checks }, undefined, 2)}\n`)
  else io.stdout.write(`\n${sentence(passed ? PASSED : counts, proseWidth(io))}`)
  return passed ? exitCodes.ok : exitCodes.failed
}

const PASSED = 'All passed. Look into your store whether it kept each id once: answers do not show that.'
