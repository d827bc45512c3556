/** Questions on a terminal. */
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { wrap } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import type { Io } from './command.ts'
import { proseWidth } from './command.ts'

export type Terminal = ReturnType<typeof openTerminal>

export interface Question {
  /** What the answer means. */
  about: string
  ask: string
  /** Shown in brackets, taken for an empty answer. */
  before: string
  /** @returns what is wrong with an answer; undefined when nothing is */
  fault: (text: string) => string | undefined
}

/** Wrong answers in a row until a person surely wants to read on first. */
const TRIES_MAX = 10

/** Opens the questions of one command; `close` ends them. */
export function openTerminal(io: Io) {
  let muted = false
  const output = new Writable({
    write(chunk, _encoding, done) {
      if (!muted) io.stdout.write(chunk)
      done()
    },
  })
  const lines = createInterface({ input: io.stdin, output, terminal: true })
  // Without this, the end of the input would leave a question open, and the process would end with 0.
  const ended = new AbortController()
  lines.once('close', () => ended.abort())
  const put = async (question: Question, { hidden = false } = {}): Promise<string> => {
    io.stdout.write(`\n${wrap(question.about, proseWidth(io)).join('\n')}\n`)
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const prompt = `${question.ask}${question.before === '' ? '' : ` [${question.before}]`}: `
      if (hidden) io.stdout.write(prompt)
      muted = hidden
      const typed = await lines.question(hidden ? '' : prompt, { signal: ended.signal }).catch((cause: unknown) => {
        throw new Failure('invalid', 'the questions were left: nothing was written', { cause })
      })
      muted = false
      if (hidden) io.stdout.write('\n')
      const text = typed.trim() === '-' ? '' : typed.trim() || question.before
      const fault = question.fault(text)
      if (fault === undefined) return text
      io.stdout.write(`  Not that: ${fault}\n`)
    }
    throw new Failure('invalid', `no usable answer for: ${question.ask}`)
  }
  return { put, write: (text: string) => void io.stdout.write(text), close: () => lines.close() }
}
