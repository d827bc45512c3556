import { describe, expect, test } from 'vitest'
import { countsOf, keyPage, type PageFacts, type PageKey, type PageLine } from '../../src/domain/key-page.ts'

const DAY = 86_400_000

const key = (ordinal: number, set: Partial<PageKey> = {}): PageKey => ({
  purchaseId: 'p',
  ordinal,
  leftAt: ordinal,
  revealedAt: null,
  isDecided: false,
  claimed: null,
  replaces: null,
  ...set,
})
const line = (set: Partial<PageLine> = {}): PageLine => ({
  id: '1',
  name: 'Rail Empire 4',
  state: 'fulfilled',
  entitled: 3,
  wanted: 3,
  keys: [key(1), key(2), key(3)],
  ...set,
})
const facts = (set: Partial<PageFacts> = {}): PageFacts => ({
  standing: 'paid',
  withdrawnAt: null,
  closesAt: DAY,
  lines: [line()],
  ...set,
})
const shownOf = (set: Partial<PageFacts>, now = 0) =>
  keyPage(facts(set), now).lines[0]?.keys.map(({ ordinal }) => ordinal)

describe('the page of keys', () => {
  test('shows all keys that are here while the order is paid', () => {
    const page = keyPage(facts(), 0)
    expect(page.closed).toBeNull()
    expect(countsOf(page)).toEqual({ here: 3, coming: 0 })
  })

  test('keeps the newest key that no customer has opened for a unit that was refunded', () => {
    expect(shownOf({ lines: [line({ entitled: 2 })] })).toEqual([1, 2])
    expect(shownOf({ lines: [line({ entitled: 2, keys: [key(1), key(2), key(3, { revealedAt: 9 })] })] })).toEqual([
      1, 3,
    ])
    expect(keyPage(facts({ lines: [line({ entitled: 1 })] }), 0).lines[0]?.kept).toBe(2)
  })

  test('goes on to show what was opened, whatever was refunded since', () => {
    const keys = [key(1, { revealedAt: 5 }), key(2, { revealedAt: 6 }), key(3)]
    expect(shownOf({ lines: [line({ entitled: 1, keys })] })).toEqual([1, 2])
  })

  test('shows no further key while the order is unpaid', () => {
    const keys = [key(1, { revealedAt: 5 }), key(2), key(3, { claimed: { number: 7, at: 6 } })]
    expect(shownOf({ standing: 'unpaid', lines: [line({ keys })] })).toEqual([1])
  })

  test('locks no customer out of delivered keys by a status of the shop that reads as held, such as "Shipped"', () => {
    expect(shownOf({ standing: 'held' })).toEqual([1, 2, 3])
    expect(shownOf({ standing: 'held', lines: [line({ entitled: 2 })] }), 'as many as in a paid order').toEqual([1, 2])
  })

  test('shows what a person had delivered, whatever the order stands at', () => {
    const keys = [key(1, { isDecided: true })]
    const page = keyPage(facts({ standing: 'cancelled', lines: [line({ entitled: 0, keys })] }), 0)
    expect(page).toMatchObject({ closed: null, lines: [{ keys: [{ ordinal: 1 }] }] })
  })

  test.each([
    ['cancelled', { standing: 'cancelled' as const }],
    ['refunded', { lines: [line({ entitled: 0 })] }],
    ['withdrawn', { withdrawnAt: 1 }],
    ['expired', { closesAt: 10 }],
  ])('is closed once it is %s', (closed, set) => {
    expect(keyPage(facts(set), 10).closed).toBe(closed)
  })

  test('is open until the very instant at which it closes', () => {
    expect(keyPage(facts({ closesAt: 10 }), 9).closed).toBeNull()
  })

  test('counts what is still being bought, and says what does not come', () => {
    const some = keyPage(facts({ lines: [line({ state: 'partly_fulfilled', keys: [key(1)] })] }), 0).lines[0]
    expect(some).toMatchObject({ coming: 2, isShort: false })
    const failed = keyPage(facts({ lines: [line({ state: 'failed', keys: [key(1)] })] }), 0).lines[0]
    expect(failed).toMatchObject({ coming: 0, isShort: true })
  })

  describe('with a key that does not work', () => {
    const dead = key(1, { revealedAt: 5, claimed: { number: 7, at: 6 } })

    test('says that a new one is being bought', () => {
      const moving = line({ entitled: 1, wanted: 1, state: 'partly_fulfilled', keys: [dead] })
      expect(keyPage(facts({ lines: [moving] }), 0).lines[0]).toMatchObject({ here: 0, coming: 1, replacing: 1 })
      const over = { ...moving, state: 'failed' as const }
      expect(keyPage(facts({ lines: [over] }), 0).lines[0]).toMatchObject({ coming: 0, isShort: true })
    })

    test('shows the new one in its place, before it, and counts one', () => {
      const fresh = key(9, { leftAt: 90, replaces: 7 })
      const page = keyPage(facts({ lines: [line({ entitled: 2, wanted: 2, keys: [dead, key(2), fresh] })] }), 0)
      expect(page.lines[0]?.keys.map(({ ordinal }) => ordinal)).toEqual([9, 1, 2])
      expect(countsOf(page)).toEqual({ here: 2, coming: 0 })
    })

    test('shows the newest of several first', () => {
      const second = key(8, { leftAt: 80, replaces: 7, revealedAt: 81, claimed: { number: 8, at: 82 } })
      const third = key(9, { leftAt: 90, replaces: 8 })
      expect(shownOf({ lines: [line({ entitled: 1, wanted: 1, keys: [dead, second, third] })] })).toEqual([9, 8, 1])
    })

    test('opens no other key of a refunded line in the room of the replaced one', () => {
      const lines = [
        line({ entitled: 0, keys: [key(1), key(2, { claimed: { number: 7, at: 6 } })] }),
        line({ id: '2' }),
      ]
      expect(shownOf({ lines })).toEqual([])
      expect(shownOf({ lines: [line({ entitled: 1, keys: lines[0]?.keys ?? [] })] })).toEqual([1, 2])
    })

    test('keeps the new one for a unit that was refunded', () => {
      const fresh = key(9, { leftAt: 90, replaces: 7 })
      expect(shownOf({ lines: [line({ entitled: 1, keys: [dead, key(2), fresh] })] })).toEqual([1, 2])
      expect(keyPage(facts({ lines: [line({ entitled: 0, keys: [dead, fresh] })] }), 0).closed).toBe('refunded')
    })
  })
})
