/** Which shops do not say in the configuration how keys reach their customers. */
import { kindOf } from '../stores/kinds.ts'
import type { Config } from './config.ts'

/** Returns one sentence for each shop whose configuration is older than the page of keys and does not say how keys reach customers. */
export const keyWayWarnings = ({
  stores,
}: {
  stores: readonly Pick<Config['stores'][number], 'id' | 'kind' | 'deliver'>[]
}) =>
  stores
    .filter((store) => store.deliver === undefined && kindOf(store).shop !== null)
    .map(({ id }) => `${id} does not say how keys reach its customers: they go in plain text, without a page of keys`)

/** What to do about a warning of `keyWayWarnings`. */
export const SAY_HOW =
  'set "deliver" of the store to "link" or "both", which need publicUrl, or to "keys" to leave it so'
