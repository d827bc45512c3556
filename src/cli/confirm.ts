import { createInterface } from 'node:readline/promises'
import type { Io } from './program.ts'

/**
 * Asks whether what was shown is to be done: only `yes` is a yes.
 *
 * @param text what is to be done, shown before
 */
export async function confirmed(io: Io, text: string): Promise<boolean> {
  io.stdout.write(`${text}\n`)
  const lines = createInterface({ input: io.stdin, output: io.stdout, terminal: true })
  // Without this, the end of the input would leave the question open for ever, and the process would end with 0.
  const ended = new AbortController()
  lines.once('close', () => ended.abort())
  try {
    const typed = await lines.question('Type yes to do it: ', { signal: ended.signal })
    return typed.trim().toLowerCase() === 'yes'
  } catch {
    return false
  } finally {
    lines.close()
  }
}
