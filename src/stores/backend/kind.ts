import { z } from 'zod'
import type { BackendKind } from '../store-kind.ts'
import { everyStore, webAddress } from '../store-settings.ts'

const settings = z.strictObject({
  kind: z.literal('backend'),
  /** The address that callbacks go to. */
  callbackUrl: webAddress,
  ...everyStore,
})

/** A store that is any backend. Its orders come in over the API, and signed callbacks go out to it. */
export const backend: BackendKind<typeof settings> = {
  kind: 'backend',
  label: 'your backend',
  settings,
  addressOf: ({ callbackUrl }) => callbackUrl,
  open: async ({ id, callbackUrl }, { secretsOf, ...needs }) => {
    const { backendStore } = await import('./backend.ts')
    return backendStore({ ...needs, callbackUrl, secrets: () => secretsOf(id) })
  },
  shop: null,
}
