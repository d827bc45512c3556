/** Questions on a terminal. */
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { wrap } from '../domain/text-layout.ts'
import { Failure } from '../errors.ts'
import { type Io, proseWidth } from './command.ts'

/**
 * Shows a text and asks whether to do what it says. Only the answer `yes` counts as a yes.
 *
 * @param text what is to be done
 * @param otherwise what happens without a yes: `buying stays frozen`
 * @throws Failure `conflict` for any other answer
 */
export async function confirm(io: Io, text: string, otherwise: string): Promise<void> {
  io.stdout.write(`${text}\n`)
  const lines = openLines(io, io.stdout)
  const typed = await lines.ask('Type yes to do it: ')
  lines.close()
  if (typed?.trim().toLowerCase() !== 'yes') throw new Failure('conflict', `not confirmed: ${otherwise}`)
}

const DRAW_MS = 100

/** A line of a terminal that says how far long work is, and is drawn again and again. @param isDrawn false: nothing is written */
export function drawnLine(io: Io, isDrawn: boolean) {
  const width = proseWidth(io) - 1
  let drawnAt = Number.NEGATIVE_INFINITY
  return {
    draw: (text: string, atOnce = false): void => {
      if (!isDrawn || (!atOnce && io.now() - drawnAt < DRAW_MS)) return
      drawnAt = io.now()
      io.stdout.write(`\r${text.slice(0, width).padEnd(width)}`)
    },
    clear: (): void => {
      if (drawnAt > 0) io.stdout.write(`\r${' '.repeat(width)}\r`)
    },
  }
}

function openLines(io: Io, output: NodeJS.WritableStream) {
  const lines = createInterface({ input: io.stdin, output, terminal: true })
  // When the input ends, this signal ends the open question. Otherwise the process would end at the question, with exit code 0.
  const ended = new AbortController()
  lines.once('close', () => ended.abort())
  return {
    /** @returns undefined once the input has ended */
    ask: (prompt: string) => lines.question(prompt, { signal: ended.signal }).catch(() => undefined),
    close: () => lines.close(),
  }
}

export type Terminal = ReturnType<typeof openTerminal>

interface Question {
  about: string
  ask: string
  /** The value that is shown in brackets; an empty answer takes it. */
  before: string
  /** @returns what is wrong with an answer; undefined for a good answer */
  fault: (text: string) => string | undefined
}

/** How many wrong answers in a row end the questions. */
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
  const lines = openLines(io, output)
  const put = async (question: Question, { hidden = false } = {}): Promise<string> => {
    io.stdout.write(`\n${wrap(question.about, proseWidth(io)).join('\n')}\n`)
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const prompt = `${question.ask}${question.before === '' ? '' : ` [${question.before}]`}: `
      if (hidden) io.stdout.write(prompt)
      muted = hidden
      const typed = await lines.ask(hidden ? '' : prompt)
      muted = false
      if (typed === undefined) throw new Failure('invalid', 'the questions were left: nothing was written')
      if (hidden) io.stdout.write('\n')
      const text = typed.trim() === '-' ? '' : typed.trim() || question.before
      const fault = question.fault(text)
      if (fault === undefined) return text
      io.stdout.write(`  Not that: ${fault}\n`)
    }
    throw new Failure('invalid', `no usable answer for: ${question.ask}`)
  }
  /** Asks for one of these words. @param refusal says what is wrong with a chosen word; null for a good word */
  const choose = async <T extends string>(
    choices: readonly T[],
    question: Omit<Question, 'fault'>,
    refusal: (choice: T) => string | null = () => null,
  ): Promise<T> => {
    const chosen = (text: string) => choices.find((one) => one === text.toLowerCase())
    const fault = (text: string) => {
      const one = chosen(text)
      return one === undefined ? choices.join(', ') : (refusal(one) ?? undefined)
    }
    return chosen(await put({ ...question, fault })) as T
  }
  return { put, choose, write: (text: string) => void io.stdout.write(text), close: lines.close }
}
