/** What .ci/run says must be there, in `QUAYSIDE_NEEDS`: a list such as `strace,chromium`. Elsewhere such tests skip themselves. */
const named = new Set((process.env.QUAYSIDE_NEEDS ?? '').split(','))

export const isNeeded = (what: 'strace' | 'campaigns' | 'chromium' | 'promtool'): boolean => named.has(what)
