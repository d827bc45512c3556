/** The situations that a campaign tells, in turn. */
import { mayMeet } from './faults.ts'
import type { Story } from './story.ts'
import { peopleStories } from './story-people.ts'
import { supplierStories } from './story-supplier.ts'

export const stories: readonly Story[] = [...supplierStories, ...peopleStories]

/** Days take long to play: one seed in so many has them. */
const DAYS_EVERY = 50
/**
 * Stories come round after so many seeds. It has no divisor in common with the number of pairs, so that each story meets
 * each pair in the end; one seed of each round has none.
 */
const ROUND = 11

/** The story of a seed; all are told in turn, the long ones rarely. */
export function storyOf(seed: number, pair: readonly string[]): Story | undefined {
  const [long] = stories.filter(({ days }) => days)
  const short = stories.filter(({ days }) => !days)
  // What hurts most comes twice.
  const round = [...short, ...short.filter(({ temper }) => temper)]
  const place = (seed - 1) % ROUND
  const story = seed % DAYS_EVERY === 0 ? long : round[place]
  const fits = story?.needs?.every((id) => pair.every((other) => mayMeet(id, other))) ?? true
  return story && fits && !story.without?.some((id) => pair.includes(id)) ? story : undefined
}
