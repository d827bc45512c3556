import { Secret } from '../../../src/secret.ts'
import { firstVariants, type ShopQuestions } from '../../../src/stores/store-kind.ts'
import { cornerStore, tryTill } from './corner.ts'
import { corner } from './kind.ts'

export const questions: ShopQuestions = {
  aboutAddress: 'The address of the till, as its sticker says.',
  readAddress: (text) => (URL.canParse(text) ? { url: text } : { fault: 'the address on the sticker' }),
  readCredentials: corner.shop.readCredentials,
  askCredentials: async (ask) => {
    const about = 'The number stands on the till. Ask the owner for the PIN.'
    const key = await ask({ about, what: 'Number of the till', fault: () => undefined })
    const fault = (text: string) => (/^\d{4}$/.test(text) ? undefined : 'four digits')
    const secret = await ask({ about, what: 'PIN', fault })
    return { key: new Secret(key), secret: new Secret(secret) }
  },
  correctionOf: () => 'key',
  look: (answers, now) => ({
    test: async () => ({ findings: await tryTill(answers), currency: 'EUR', cannotPublish: null }),
    variants: () => firstVariants(async () => ({ outcome: 'read', items: [], next: null }), 1),
    close: cornerStore({ ...answers, now }).close,
  }),
  remaining: () => 'Put a sticker on the shelf.',
}
