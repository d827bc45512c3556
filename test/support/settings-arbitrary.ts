/** Settings of an installation, as a person may ask for them: most of them are right. */
import fc from 'fast-check'

/** Most values are right, so that many documents are accepted. */
const mostly = <T>(right: T[], wrong: T) =>
  fc.oneof({ weight: 40, arbitrary: fc.constantFrom(...right) }, { weight: 1, arbitrary: fc.constant(wrong) })
const amount = mostly<string | undefined>(['0', '1', '9.99', '25', undefined], 'much')
const store = fc.record(
  {
    id: mostly(['one-k3j9x2p7', 'two-k3j9x2p7', 'six-k3j9x2p7'], 'three'),
    kind: fc.constant('backend'),
    name: mostly(['One'], ''),
    callbackUrl: mostly(['https://shop.example/'], 'shop'),
    currency: mostly(['EUR'], 'USD'),
    deliver: mostly(['keys'], 'link'),
    pricing: fc.record({
      markup: fc.record({ percent: amount, flat: amount }),
      margin: fc.record({ percent: amount }),
      rounding: fc.record({ step: mostly([null, '0.05'], '0') }),
      bands: mostly<object[]>(
        [[], [{ upTo: '5', percent: '30' }, { percent: '10' }]],
        [{ percent: '1' }, { percent: '2' }],
      ),
      categories: fc.constantFrom({}, { games: { percent: '50' } }),
      products: fc.constantFrom({}, { 'SFT-B': { fixed: '19.99' } }),
    }),
    listings: fc.record({ text: fc.constantFrom(null, 'GAM'), costMin: fc.constantFrom(null, '5') }),
    stock: fc.record({ cap: mostly<number | null>([null, 5], 1), zeroUnder: fc.constantFrom(0, 2) }),
  },
  { requiredKeys: ['id', 'kind', 'name', 'callbackUrl'] },
)
export const settingDocuments = fc.record(
  {
    supplier: fc.constant({ baseUrl: 'https://supplier.example/v1' }),
    stores: fc.oneof(
      { weight: 9, arbitrary: fc.uniqueArray(store, { maxLength: 3, selector: ({ id }) => id }) },
      { weight: 1, arbitrary: fc.array(store, { maxLength: 3 }) },
    ),
    rates: mostly<object[]>([[], [{ from: 'EUR', to: 'USD', rate: '1.08' }]], [{ from: 'EUR', to: 'EUR', rate: '1' }]),
    publicUrl: mostly([null, 'https://keys.example/'], 'keys'),
    spendCaps: fc.record({ day: fc.oneof(amount, fc.constant(null)) }),
    keys: fc.record({ pageDays: mostly([1, 30], 0) }),
    ordering: fc.record({ inFlight: mostly([1, 2, 4], 5), ceilingPercent: amount }),
    alerts: fc.record({ balanceDays: mostly([null, 3], 91), balanceBelow: fc.oneof(amount, fc.constant(null)) }),
  },
  { requiredKeys: ['supplier', 'stores'] },
)
