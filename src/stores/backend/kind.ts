import { z } from 'zod'
import type { BackendKind } from '../store-kind.ts'
import { everyStore, webAddress } from '../store-settings.ts'

const settings = z.strictObject({
  kind: z.literal('backend'),
  /** The address that callbacks go to. */
  callbackUrl: webAddress,
  ...everyStore,
})

/** A store that is a server of the owner's own. It posts its orders to our API, and gets signed callbacks. */
export const backend: BackendKind<typeof settings> = {
  kind: 'backend',
  label: 'your backend',
  settings,
  addressOf: ({ callbackUrl }) => callbackUrl,
  open: async ({ id, callbackUrl, deliver }, needs) => {
    const { backendStore } = await import('./backend.ts')
    return backendStore({ ...needs, id, callbackUrl, deliver })
  },
  deliver: 'keys',
  shop: null,
}
