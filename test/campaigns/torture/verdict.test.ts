/** The judge of a torture run must be able to find what it is there for. */
import { describe, expect, test } from 'vitest'
import type { ShopCallback } from '../../support/recording-store.ts'
import { type Evidence, judge } from './verdict.ts'

const reference = (line: string, generation = 1): string => `q1.demo-ab12cd34.t1.${line}.1.${generation}`
const charge = (orderId: string, externalOrderId: string, kind: 'charge' | 'refund' = 'charge') => ({
  kind,
  orderId,
  externalOrderId,
  idempotencyKey: `key of ${orderId}`,
  amountMinor: 100,
  at: 1,
})
const callback = (type: string, data: object): ShopCallback => ({
  id: `msg_${type}`,
  type,
  timestamp: '1970-01-01T00:00:00.500Z',
  data: { reference: 't1', ...data },
})
const fulfilled = (line: string, ...keys: string[]) => callback('line.fulfilled', { line, keys })

/** One order of two lines: two units bought and handed over, one that the supplier failed and gave back. */
const good = (): Evidence => ({
  orders: [
    {
      reference: 't1',
      atMs: 0,
      cancelAfterMs: null,
      lines: [
        { id: '1', quantity: 2 },
        { id: '2', quantity: 1 },
      ],
    },
  ],
  taken: new Set(['t1']),
  ledger: {
    startMinor: 0,
    topUpsMinor: 0,
    chargesMinor: 200,
    refundsMinor: 100,
    balanceMinor: 0,
    closes: true,
    charges: [charge('a', reference('1')), charge('b', reference('2'))],
    refunds: [charge('b', reference('2'), 'refund')],
    topUps: [],
    keysIssued: { [reference('1')]: ['K1', 'K2'] },
  },
  record: [
    fulfilled('1', 'K1', 'K2'),
    callback('line.failed', { line: '2', quantity: 1 }),
    callback('order.closed', { state: 'partly_fulfilled' }),
  ],
  sent: [
    {
      seq: 1,
      deliveryId: 'd1',
      event: 'order.completed',
      orderId: 'a',
      state: 'delivered',
      lastStatus: 200,
      dueAt: 0,
    },
  ],
  spendCap: { orderMinor: 100, overridden: new Set() },
  listed: [{ deliveryId: 'd1', event: 'order.completed', supplierOrderId: 'a' }],
  begun: new Map([['msg_line.fulfilled', 500]]),
  cancellations: [],
  keysDecisions: [],
  groundlessFreezes: new Set(),
  claims: [],
  decisions: [],
})

const judged = (change: (evidence: Evidence) => Partial<Evidence>) => {
  const evidence = good()
  const { notes, booksClose, ...counts } = judge({ ...evidence, ...change(evidence) })
  const found = Object.entries(counts).filter(([, count]) => count > 0)
  return { found: Object.fromEntries(found), notes, booksClose }
}

describe('the verdict of a torture run', () => {
  test('finds nothing in a run that went well', () => {
    expect(judged(() => ({}))).toEqual({ found: {}, notes: [], booksClose: true })
  })

  test('finds a part that was charged twice, and whose second keys the store does not have', () => {
    const { found } = judged(({ ledger }) => ({
      ledger: { ...ledger, charges: [...ledger.charges, charge('c', reference('1', 2))] },
    }))
    expect(found).toEqual({ doubleCharges: 1, orphanCharges: 1, overspent: 1 })
  })

  test('finds a double charge beside a generation that failed and was refunded', () => {
    const { found } = judged(({ ledger }) => ({
      ledger: {
        ...ledger,
        charges: [...ledger.charges, charge('c', reference('2', 2)), charge('d', reference('2', 3))],
      },
    }))
    expect(found).toMatchObject({ doubleCharges: 1 })
  })

  test('finds a charge whose keys the store lacks', () => {
    expect(judged(({ record }) => ({ record: [fulfilled('1', 'K1'), ...record.slice(1)] })).found).toEqual({
      orphanCharges: 1,
      stuck: 1,
    })
  })

  test('finds a charge for an unknown order', () => {
    const { found } = judged(({ ledger }) => ({
      ledger: { ...ledger, charges: [...ledger.charges, charge('c', 'q1.demo-ab12cd34.t9.1.1.1')] },
    }))
    expect(found).toEqual({ orphanCharges: 1 })
  })

  test('finds a charge that was reported to the store as failed', () => {
    const failed = callback('line.failed', { line: '1', quantity: 2 })
    expect(judged(({ record }) => ({ record: [failed, ...record] })).found).toEqual({ orphanCharges: 1 })
  })

  test('finds a delivery that was acknowledged and is nowhere', () => {
    expect(judged(() => ({ listed: [] })).found).toEqual({ lostDeliveries: 1 })
    const another = { deliveryId: 'dlv_forged1', event: 'order.completed', supplierOrderId: 'b' }
    expect(judged(() => ({ listed: [another] })).found).toEqual({ lostDeliveries: 1 })
  })

  test('finds no loss in a delivery whose replay under another id came first', () => {
    const replayed = { deliveryId: 'dlv_forged1', event: 'order.completed', supplierOrderId: 'a' }
    expect(judged(() => ({ listed: [replayed] })).found).toEqual({})
  })

  test('leaves a delivery alone that was never acknowledged', () => {
    const sent = good().sent.map((one) => ({ ...one, state: 'due' as const, lastStatus: 503 }))
    expect(judged(() => ({ sent, listed: [] })).found).toEqual({})
  })

  test('finds keys that were handed over again, above the quantity, or on another line', () => {
    const twice = judged(({ record }) => ({ record: [...record, fulfilled('1', 'K1', 'K2')] }))
    expect(twice.found).toEqual({ duplicateFulfilments: 2 })
    const wrong = judged(({ record }) => ({ record: [...record.slice(1), fulfilled('2', 'K1')] }))
    expect(wrong.found).toMatchObject({ duplicateFulfilments: 1 })
    const above = judged(({ ledger, record }) => ({
      ledger: { ...ledger, keysIssued: { [reference('1')]: ['K1', 'K2', 'K3'] } },
      record: [...record, fulfilled('1', 'K3')],
    }))
    expect(above.found).toEqual({ doubleCharges: 1, duplicateFulfilments: 1 })
  })

  test('finds an order that was never taken, has no end, or ended with a line that did not', () => {
    expect(judged(() => ({ taken: new Set() })).found).toEqual({ stuck: 1 })
    expect(judged(({ record }) => ({ record: record.slice(0, -1) })).found).toEqual({ stuck: 1 })
    expect(judged(({ record }) => ({ record: record.filter(({ type }) => type !== 'line.failed') })).found).toEqual({
      stuck: 1,
    })
  })

  test('finds an order that cost more than its spend cap, unless an operator let the part pass', () => {
    const again = ({ ledger }: Evidence) => ({
      ledger: { ...ledger, charges: [...ledger.charges, charge('c', reference('1', 2))] },
    })
    const capped = judged((evidence) => ({ ...again(evidence), spendCap: { orderMinor: 199, overridden: new Set() } }))
    expect(capped.found).toMatchObject({ overspent: 1 })
    expect(capped.notes).toContain('order t1 cost 200, its spend cap is 199')
    const overridden = new Set(['t1/1/1'])
    expect(judged(() => ({ spendCap: { orderMinor: 99, overridden } })).found).toEqual({})
  })

  test('finds keys that came after an acknowledged cancellation, unless an operator has decided it since', () => {
    const cancellations = [{ reference: 't1', askedAt: 390, at: 400 }]
    const at = (instant: number, until?: number) => ({
      keysDecisions: [{ reference: 't1', line: '1', at: instant, ...(until !== undefined && { until }) }],
    })
    expect(judged(() => ({ cancellations })).found).toEqual({ cancelledKeys: 2 })
    expect(judged(() => ({ cancellations, ...at(389) })).found).toEqual({ cancelledKeys: 2 })
    expect(judged(() => ({ cancellations, ...at(380, 389) })).found).toEqual({ cancelledKeys: 2 })
    expect(judged(() => ({ cancellations, ...at(450) })).found).toEqual({})
    // Asked before the cancellation came once more, and carried out after it, when there was a worker again.
    expect(judged(() => ({ cancellations, ...at(380, 420) })).found).toEqual({})
    expect(judged(() => ({ cancellations: [{ reference: 't1', askedAt: 390, at: 500 }] })).found).toEqual({})
  })

  test('finds a freeze whose only causes are cancellations', () => {
    const { found, notes } = judged(() => ({ groundlessFreezes: new Set(['frozen for four cancellations']) }))
    expect({ found, notes }).toEqual({ found: { groundlessFreezes: 1 }, notes: ['frozen for four cancellations'] })
  })

  test('finds sums that do not close', () => {
    const { booksClose, notes } = judged(({ ledger }) => ({ ledger: { ...ledger, closes: false } }))
    expect({ booksClose, notes }).toEqual({ booksClose: false, notes: ["the supplier's sums do not close"] })
  })
})

describe('after the database lost its last second', () => {
  const again = (line: string, ...keys: string[]): ShopCallback => ({ ...fulfilled(line, ...keys), id: 'msg_again' })
  const loss = { from: 400, to: 600, deliveries: new Set<string>() }
  const judged = (evidence: Partial<Evidence>) => judge({ ...good(), ...evidence })

  test('keys may come once more for their line when their callback left in that second, and only then', () => {
    const record = [...good().record, again('1', 'K1', 'K2')]
    expect(judged({ record }).duplicateFulfilments).toBe(2)
    expect(judged({ record, losses: [loss] }).duplicateFulfilments).toBe(0)
    expect(judged({ record, losses: [{ ...loss, to: 499 }] }).duplicateFulfilments).toBe(2)
    const elsewhere = [...good().record, again('2', 'K1')]
    expect(judged({ record: elsewhere, losses: [loss] }).duplicateFulfilments).toBeGreaterThan(0)
  })

  test('a delivery may be missing that was acknowledged meanwhile, and no other', () => {
    expect(judged({ listed: [] }).lostDeliveries).toBe(1)
    expect(judged({ listed: [], losses: [{ ...loss, deliveries: new Set(['d1']) }] }).lostDeliveries).toBe(0)
    expect(judged({ listed: [], losses: [{ ...loss, deliveries: new Set(['d2']) }] }).lostDeliveries).toBe(1)
  })

  test('a part that was charged twice is found all the same', () => {
    const { ledger } = good()
    const charges = [...ledger.charges, charge('c', reference('1', 2))]
    expect(judged({ ledger: { ...ledger, charges }, losses: [loss] }).doubleCharges).toBe(1)
  })
})

describe('with claims that keys do not work', () => {
  const key = 't1.1.1.1.1'
  const claim = { number: 1, key, line: 't1/1', replacement: 'q1.demo-ab12cd34.t1.1.2.1' }
  const bought = { ...claim, state: 'bought' as const }
  const adopted = { ...claim, state: 'adopted' as const }
  const refused = { ...claim, state: 'refused' as const, replacement: null }
  const decision = { claim: 1, key, at: 450, until: 460 }
  /** One key was bought in place of another, and has come. */
  const replaced = ({ ledger, record }: Evidence) => ({
    ledger: {
      ...ledger,
      charges: [...ledger.charges, charge('c', bought.replacement)],
      keysIssued: { ...ledger.keysIssued, [bought.replacement]: ['K3'] },
    },
    record: [...record, fulfilled('1', 'K3')],
    spendCap: { orderMinor: 200, overridden: new Set<string>() },
  })
  const given = ({ record }: Evidence) => ({ record: [...record, fulfilled('1', 'GIVEN-T1-1-1-1-1')] })

  test('finds nothing where each replacement has come', () => {
    expect(judged((evidence) => ({ ...replaced(evidence), claims: [bought] })).notes).toEqual([])
    expect(judged((evidence) => ({ ...given(evidence), claims: [adopted] })).notes).toEqual([])
    expect(judged(() => ({ claims: [refused] })).notes).toEqual([])
  })

  test('finds a key and a charge for which no claim ended so', () => {
    const beyond = { doubleCharges: 1, duplicateFulfilments: 1 }
    expect(judged(replaced).found).toEqual(beyond)
    expect(judged((evidence) => ({ ...replaced(evidence), claims: [refused] })).found).toEqual(beyond)
    expect(judged((evidence) => ({ ...replaced(evidence), claims: [adopted] })).found).toMatchObject({
      doubleCharges: 1,
    })
    expect(judged((evidence) => ({ ...given(evidence), claims: [refused] })).found).toEqual({ duplicateFulfilments: 2 })
  })

  test('finds a replacement that the store lacks, unless it failed, and a claim without an end', () => {
    expect(judged(() => ({ claims: [bought] })).found).toEqual({ stuck: 2 })
    expect(judged(() => ({ claims: [adopted] })).found).toEqual({ stuck: 2 })
    expect(judged(() => ({ claims: [{ ...refused, state: 'open' }] })).found).toEqual({ stuck: 1 })
    const failed = callback('line.failed', { line: '1', quantity: 1 })
    expect(judged(({ record }) => ({ claims: [bought], record: [...record, failed] })).found).toEqual({})
  })

  test('finds a claim that was answered twice, and none whose second decision was refused', () => {
    const decisions = (answer: 'done' | 'refused') => [
      { ...decision, outcome: 'bought' as const, answer: 'done' as const },
      { ...decision, outcome: 'refused' as const, answer },
    ]
    const twice = (answer: 'done' | 'refused') =>
      judged((evidence) => ({ ...replaced(evidence), claims: [bought], decisions: decisions(answer) })).found
    expect(twice('done')).toEqual({ stuck: 1 })
    expect(twice('refused')).toEqual({})
  })

  test('after a loss, a replacement may be there whose claim is not', () => {
    const decisions = [{ ...decision, outcome: 'bought' as const, answer: 'done' as const }]
    const lost = (from: number) =>
      judged((evidence) => ({
        ...replaced(evidence),
        decisions,
        losses: [{ from, to: 600, deliveries: new Set<string>() }],
      })).found
    expect(lost(400)).toEqual({})
    expect(lost(461)).toEqual({ doubleCharges: 1, duplicateFulfilments: 1, stuck: 1 })
  })
})
