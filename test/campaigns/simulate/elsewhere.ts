/** What the idempotency keys of a buyer begin with that is not Quayside, and orders under references of ours. */
export const ELSEWHERE = 'elsewhere '
