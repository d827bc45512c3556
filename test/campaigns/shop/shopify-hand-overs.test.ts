import { expect, test } from 'vitest'
import { createHandOvers, type HandOvers } from './shopify-hand-overs.ts'

const KEY = 'AAAA-1111'
const asked = (kind: string, variables = {}) => ({ kind, method: 'POST', path: '', variables, isMutation: false })

/** The hand-over of a line of order 7: each step is a request that may be struck. */
function stepsOf(handOvers: HandOvers, line = '1', key = KEY) {
  const request = (kind: string, variables?: object) => (drawn?: string) =>
    handOvers.requested('7', asked(kind, variables), drawn)
  const keys = {
    metafields: [
      { key: 'keys_1', value: `GAME\n${key}` },
      { key: 'units', value: '{}' },
    ],
  }
  return {
    read: request('HandOverOrder', { line: `gid://shopify/LineItem/${line}` }),
    plan: request('OrderFulfillments'),
    put: request('PutKeys', keys),
    fulfil: request('CreateFulfillment'),
    writeAgain: request('NotifyAgain'),
    merchant: () => handOvers.fulfilledByMerchant('7', line),
  }
}

interface Story {
  handOvers: HandOvers
  steps: ReturnType<typeof stepsOf>
  pass: (ms: number) => void
  /** The shop has put this key on the order. */
  stands: (key?: string) => void
}

/** @returns the keys that may have gone without mail and note */
function silentAfter(befall: (story: Story) => void): string[] {
  let time = 0
  const onOrder = new Set<string>()
  const handOvers = createHandOvers({ now: () => time, isOnOrder: (_, key) => onOrder.has(key) })
  const pass = (ms: number) => {
    time += ms
  }
  befall({ handOvers, steps: stepsOf(handOvers), pass, stands: (key = KEY) => void onOrder.add(key) })
  return [...handOvers.silent()]
}

/** Its keys are on the order, and the merchant fulfils the line before the service does. */
function crossed({ steps, stands }: Story): void {
  steps.read()
  steps.plan()
  steps.put()
  stands()
  steps.merchant()
}

test('a key may go without a word when its line was fulfilled by hand between two requests, of which a later one failed', () => {
  const failed = silentAfter((story) => {
    crossed(story)
    story.steps.fulfil('lost_before')
  })
  const fulfilledAfterwards = silentAfter(({ steps, stands }) => {
    steps.read()
    steps.plan()
    steps.put('lost_after')
    stands()
    steps.merchant()
  })
  expect([failed, fulfilledAfterwards]).toEqual([[KEY], [KEY]])
})

test('a key may not go without a word when every answer came, when it never came onto the order, or when no hand-over was under way', () => {
  const answered = silentAfter((story) => {
    crossed(story)
    story.steps.fulfil()
    story.steps.writeAgain()
  })
  const notOnOrder = silentAfter(({ steps }) => {
    steps.read()
    steps.plan()
    steps.put('lost_before')
    steps.merchant()
    steps.read()
  })
  const fulfilledBefore = silentAfter(({ steps, stands }) => {
    steps.read()
    steps.merchant()
    steps.plan()
    steps.put('lost_after')
    stands()
  })
  const mailed = silentAfter(({ steps, stands, handOvers }) => {
    steps.read()
    steps.plan()
    steps.put()
    stands()
    steps.fulfil()
    handOvers.interrupted()
    steps.merchant()
  })
  expect([answered, notOnOrder, fulfilledBefore, mailed]).toEqual([[], [], [], []])
})

test('a death of the service fails the hand-over that it was in the middle of, and no other one', () => {
  const inTheMiddle = silentAfter((story) => {
    crossed(story)
    story.handOvers.interrupted()
  })
  const longBefore = silentAfter((story) => {
    crossed(story)
    story.pass(2_000)
    story.handOvers.interrupted()
  })
  const ofAnotherLine = silentAfter((story) => {
    const other = stepsOf(story.handOvers, '2', 'BBBB-1111')
    other.read()
    other.plan()
    other.put()
    story.stands('BBBB-1111')
    other.fulfil()
    other.merchant()
    crossed(story)
    story.handOvers.interrupted()
  })
  expect([inTheMiddle, longBefore, ofAnotherLine]).toEqual([[KEY], [], [KEY]])
})

test('what a dead service sent before its death and the shop took after it is not answered', () => {
  const sent = silentAfter(({ steps, stands, handOvers }) => {
    handOvers.interrupted()
    steps.read()
    steps.plan()
    steps.put()
    stands()
    handOvers.resumed()
    steps.merchant()
  })
  expect(sent).toEqual([KEY])
})
