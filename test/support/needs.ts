/** What .ci/run says must be there, in `QUAYSIDE_NEEDS`: a list such as `strace,chromium`. Elsewhere such tests skip themselves. */
const named = new Set((process.env.QUAYSIDE_NEEDS ?? '').split(','))

type Need =
  | 'buildah'
  | 'strace'
  | 'campaigns'
  | 'chromium'
  | 'promtool'
  | 'nginx'
  | 'pgbouncer'
  | 'postgres'
  | 'systemd'

export const isNeeded = (what: Need): boolean => named.has(what)
