/** Freezes for many reviews have a ground only where enough of them leave money in doubt. */

/** Fewer reviews never freeze buying. */
const REVIEWS_MIN = 4

export const isForReviews = ({ reason }: { reason: string }): boolean => reason.endsWith("need a person's decision")

/**
 * The rule: a review that a cancellation of the store caused freezes nothing.
 *
 * @param causes of the freeze that stands
 * @param inDoubt reviews so far that no cancellation caused
 * @returns a sentence for each cause that breaks it
 */
export const groundlessFreezes = (causes: readonly { reason: string }[], inDoubt: number): string[] =>
  causes
    .filter((cause) => isForReviews(cause) && inDoubt < REVIEWS_MIN)
    .map(({ reason }) => `buying was frozen (${reason}), and only ${inDoubt} reviews left money in doubt`)
