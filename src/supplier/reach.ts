import type { Exchange } from './request.ts'

/** Whether the supplier answers, as the requests of this process show. Instants in epoch milliseconds. */
export interface Reach {
  /** The answers since the last failure, or since the start; undefined before the first answer. */
  answered: { since: number; lastAt: number } | undefined
  /** The unanswered requests since the last answer; undefined when the last request was answered. */
  unanswered: { since: number; lastAt: number; error: string } | undefined
  /** The last answer was 401 or 403. */
  refusesKey: boolean
  /** How long the last answers took, in milliseconds, the shortest first; 200 at most. */
  answerMs: readonly number[]
}

/** What the supplier did when no whole answer came. */
export const noAnswerText = ({ stage, cause }: Exclude<Exchange, { stage: 'answered' }>): string =>
  stage === 'not_sent' ? `cannot be reached: ${cause}` : `gave no whole answer: ${cause}`

/** Why an exchange is no answer; undefined for an answer. A 5xx is no answer: most outages show as a 5xx from a proxy. */
function failureText(ended: Exchange): string | undefined {
  if (ended.stage !== 'answered') return noAnswerText(ended)
  return ended.status >= 500 ? `answered ${ended.status}` : undefined
}

/** How many answer times are remembered: about those of a quiet day, or of one minute of a sync run. */
const LATELY_MAX = 200

/** Remembers the last answer, and what has failed since that answer. */
export function createReach(now: () => number) {
  let reach: Omit<Reach, 'answerMs'> = { answered: undefined, unanswered: undefined, refusesKey: false }
  const lately: number[] = []
  return {
    /** Takes every exchange with the supplier into account. @param ms how long it took */
    note(ended: Exchange, ms: number): void {
      // The caller held the request back: that says nothing about the supplier.
      if (ended.stage === 'not_sent' && ended.heldBack) return
      const at = now()
      const error = failureText(ended)
      const { answered, unanswered } = reach
      if (error === undefined) {
        lately.push(Math.max(0, ms))
        if (lately.length > LATELY_MAX) lately.shift()
        const since = unanswered ? at : (answered?.since ?? at)
        const refusesKey = ended.stage === 'answered' && (ended.status === 401 || ended.status === 403)
        reach = { answered: { since, lastAt: at }, unanswered: undefined, refusesKey }
      } else reach = { ...reach, unanswered: { since: unanswered?.since ?? at, lastAt: at, error } }
    },
    read: (): Reach => ({ ...reach, answerMs: lately.toSorted((a, b) => a - b) }),
  }
}
