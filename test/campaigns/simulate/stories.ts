/** The situations that a campaign tells, in turn. */
import { mayMeet } from './faults.ts'
import type { Story } from './story.ts'
import { elsewhereStories } from './story-elsewhere.ts'
import { peopleStories } from './story-people.ts'
import { supplierStories } from './story-supplier.ts'

export const stories: readonly Story[] = [...supplierStories, ...peopleStories, ...elsewhereStories]

/** Days take long to play: one seed in so many has them. */
const DAYS_EVERY = 50
/**
 * Stories come round after so many seeds. It has no divisor in common with the number of pairs, so that each story meets
 * each pair in the end; the last seed of every other round has none.
 */
const ROUND = 11

/** The story of a seed; all are played in turn, the long ones rarely. */
export function storyOf(seed: number, pair: readonly string[]): Story | undefined {
  const [long] = stories.filter(({ days }) => days)
  const short = stories.filter(({ days }) => !days)
  // What hurts most comes twice.
  const round = [...short, ...short.filter(({ temper }) => temper)]
  const place = (seed - 1) % ROUND
  const isPlain = place === ROUND - 1 && Math.floor((seed - 1) / ROUND) % 2 === 1
  const usual = isPlain ? undefined : round[place]
  const story = seed % DAYS_EVERY === 0 ? long : usual
  const fits = story?.needs?.every((id) => pair.every((other) => mayMeet(id, other))) ?? true
  return story && fits && !story.without?.some((id) => pair.includes(id)) ? story : undefined
}
