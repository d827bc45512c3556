/** The kinds of alerts are a closed list: the compiler, which `npm run check` runs over this file, refuses every other kind. */
import { expect, test } from 'vitest'
import { alertRules, ruleOf } from '../../src/alerts/kinds.ts'
import { row, waysIntoReview } from '../../src/domain/purchase.ts'
import { enqueueAlert } from '../../src/storage/outbox.ts'

const context = { newId: () => 'a', now: () => 1 }
const about = { occasion: '1', payload: { note: null } }

test('a misspelt kind does not compile', () => {
  // @ts-expect-error: it is called `freeze`
  enqueueAlert(context, { type: 'freese', ...about })
  // @ts-expect-error: it is called `keys_short`
  ruleOf('key_short')
})

test('a kind without a rule does not compile', () => {
  const { freeze, ...others } = alertRules
  // @ts-expect-error: a freeze has no rule here
  const rules: typeof alertRules = others
  expect({ ...rules, freeze }).toEqual(alertRules)
})

test('a row that leads to a review, or alerts people, compiles as a `review` alone', () => {
  // @ts-expect-error: it leads to a review
  const leads = row('lost_for_a_week', ['unknown'], 'clock', () => ({ next: 'review' }))
  // @ts-expect-error: it alerts people
  const alerts = row('lost_for_a_day', ['unknown'], 'clock', () => ({ effects: ['alert'] }))
  for (const { name } of [leads, alerts]) expect(waysIntoReview).not.toContain(name)
})
