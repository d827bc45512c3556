/** A fourth kind of store, for tests: a corner shop whose till speaks HTTP. This folder is all that a kind needs, but its pages. */
import { z } from 'zod'
import { Secret } from '../../../src/secret.ts'
import type { ShopKind } from '../../../src/stores/store-kind.ts'
import { everyShop, everyStore } from '../../../src/stores/store-settings.ts'

const settings = z.strictObject({
  kind: z.literal('corner'),
  ...everyShop,
  /** Where the products stand. */
  shelf: z
    .string()
    .regex(/^[A-Z]\d$/, 'a letter and a digit, such as "B2"')
    .default('A1'),
  ...everyStore,
})

export const corner: ShopKind<typeof settings> = {
  kind: 'corner',
  label: 'Corner Shop',
  settings,
  addressOf: ({ url }) => url,
  open: async ({ url, credentials }, needs) => {
    const { cornerStore } = await import('./corner.ts')
    return cornerStore({ url, credentials, now: needs.now })
  },
  deliver: 'both',
  shop: {
    credentials: 'the number of the till and its PIN',
    readCredentials: (text) => {
      const [, key, secret] = /^(\d+):(\d{4})$/.exec(text) ?? []
      return key && secret ? { key: new Secret(key), secret: new Secret(secret) } : undefined
    },
    help: {
      about: 'try the till of a corner shop, and write the shop into the configuration',
      url: 'the address of the till',
      keyFile: 'number and PIN, joined by a colon',
      options: { shelf: ['--shelf <place>', 'where the products stand (default: A1)'] },
      credentialsFrom: 'The number stands on the till.',
      parts: ['Till key', 'Till secret'],
      exampleUrl: 'http://till.local',
    },
    questions: async () => (await import('./questions.ts')).questions,
  },
}
