import { createHash } from 'node:crypto'
import type { Order } from './orders.ts'
import type { Webhooks } from './webhooks.ts'
import type { Ground } from './world.ts'

/** One movement of money, in minor units. Rows are added and never changed. */
export interface LedgerEntry {
  kind: 'charge' | 'refund' | 'top_up'
  orderId: string | null
  externalOrderId: string | null
  idempotencyKey: string | null
  amountMinor: number
  at: number
}

/** The sandbox's own record of charges, refunds and issued keys, which also says whether the sums add up. */
export type LedgerReport = ReturnType<Ledger['report']>

export type Ledger = ReturnType<typeof keepLedger>

/** Keeps the account's money and licence keys. Callers call the functions inside the transaction that causes the entry. */
export function keepLedger({ db, now, balanceLowMinor }: Ground, webhooks: Webhooks) {
  const account = db.prepare<[], { startMinor: number; balanceMinor: number; keySeed: string }>(
    'select start_minor as startMinor, balance_minor as balanceMinor, key_seed as keySeed from account',
  )
  const columns = `kind, order_id as orderId, external_order_id as externalOrderId, idempotency_key as idempotencyKey,
    amount_minor as amountMinor, at`
  const entries = db.prepare<[], LedgerEntry>(`select ${columns} from ledger order by seq`)
  const entriesOf = db.prepare<[string, string], LedgerEntry & { movedMinor: number }>(
    `select ${columns}, (select sum(case kind when 'charge' then -amount_minor else amount_minor end) from ledger as earlier
       where earlier.seq <= ledger.seq) as movedMinor
     from ledger where order_id in (select id from orders where external_order_id >= ? and external_order_id < ?) order by seq`,
  )
  const newestEntries = db.prepare<[number], LedgerEntry>(`select ${columns} from ledger order by seq desc limit ?`)
  const totals = db.prepare<[], { kind: LedgerEntry['kind']; count: number; minor: number }>(
    'select kind, count(*) as count, sum(amount_minor) as minor from ledger group by kind',
  )
  const append = db.prepare<[LedgerEntry]>(
    `insert into ledger (kind, order_id, external_order_id, idempotency_key, amount_minor, at)
     values (@kind, @orderId, @externalOrderId, @idempotencyKey, @amountMinor, @at)`,
  )
  const move = db.prepare<[number]>('update account set balance_minor = balance_minor + ?')
  const lastKey = db.prepare<[], { seq: number }>('select coalesce(max(seq), 0) as seq from issued_keys')
  const addKey = db.prepare('insert into issued_keys (order_id, external_order_id, text, at) values (?, ?, ?, ?)')
  const keys = db.prepare<[string], { text: string }>('select text from issued_keys where order_id = ? order by seq')
  const allKeys = db.prepare<[], { reference: string; text: string }>(
    'select coalesce(external_order_id, order_id) as reference, text from issued_keys order by seq',
  )
  const state = () => {
    const row = account.get()
    if (!row) throw new Error('the sandbox has no account')
    return row
  }
  const balanceMinor = () => state().balanceMinor

  return {
    balanceMinor,
    charge: (order: Order, idempotencyKey: string): void => {
      const before = balanceMinor()
      append.run({ ...entryOf(order), kind: 'charge', idempotencyKey, at: now() })
      move.run(-order.amountMinor)
      const crossed = before >= balanceLowMinor && before - order.amountMinor < balanceLowMinor
      if (crossed) webhooks.emit('balance.low', {})
    },
    /** Gives the amount of the order back. A second refund of an order violates the unique index, so its transaction fails. */
    refund: (order: Order): void => {
      append.run({ ...entryOf(order), kind: 'refund', idempotencyKey: null, at: now() })
      move.run(order.amountMinor)
    },
    topUp: (amountMinor: number): void => {
      const noOrder = { orderId: null, externalOrderId: null, idempotencyKey: null }
      append.run({ ...noOrder, kind: 'top_up', amountMinor, at: now() })
      move.run(amountMinor)
    },
    issue: (order: Order, count: number): void => {
      const { keySeed } = state()
      const start = lastKey.get()?.seq ?? 0
      for (let step = 1; step <= count; step += 1) {
        addKey.run(order.id, order.externalOrderId, licenceKey(keySeed, start + step), now())
      }
    },
    keysOf: (orderId: string): string[] => keys.all(orderId).map((row) => row.text),
    /** Returns the entries of orders with a reference from `from` on and before `to`, each with the balance after it. */
    entriesOf: (from: string, to: string) =>
      entriesOf.all(from, to).map((entry) => ({ ...entry, balanceMinor: state().startMinor + entry.movedMinor })),
    /** Returns the sums and counts by kind without reading every entry into memory, and the newest entries. */
    summary: (limit: number) => {
      const { startMinor, balanceMinor } = state()
      const all = totals.all()
      const of = (kind: LedgerEntry['kind']) => {
        const { count = 0, minor = 0 } = all.find((row) => row.kind === kind) ?? {}
        return { count, minor }
      }
      const [charges, refunds, topUps] = [of('charge'), of('refund'), of('top_up')]
      let after = balanceMinor
      /** Entries, each with the balance after that entry. */
      const newest = newestEntries.all(limit).map((entry) => {
        const shown = { ...entry, balanceMinor: after }
        after += entry.kind === 'charge' ? entry.amountMinor : -entry.amountMinor
        return shown
      })
      const closes = startMinor + topUps.minor - charges.minor + refunds.minor === balanceMinor
      const keysIssued = lastKey.get()?.seq ?? 0
      return { startMinor, balanceMinor, closes, charges, refunds, topUps, keysIssued, newest }
    },
    report: () => {
      const all = entries.all()
      const { startMinor, balanceMinor } = state()
      const of = (kind: LedgerEntry['kind']) => all.filter((entry) => entry.kind === kind)
      const [charges, refunds, topUps] = [of('charge'), of('refund'), of('top_up')]
      const sums = { chargesMinor: sum(charges), refundsMinor: sum(refunds), topUpsMinor: sum(topUps) }
      // The balance is stored by itself and not computed from the entries. So a lost entry shows as a difference here.
      const closes = startMinor + sums.topUpsMinor - sums.chargesMinor + sums.refundsMinor === balanceMinor
      /** Licence keys by external reference, in the order of issue. An order without a reference stands under its own id. */
      const keysIssued: Record<string, string[]> = {}
      for (const { reference, text } of allKeys.all()) {
        keysIssued[reference] ??= []
        keysIssued[reference].push(text)
      }
      return { startMinor, ...sums, balanceMinor, closes, charges, refunds, topUps, keysIssued }
    },
  }
}

const entryOf = ({ id, externalOrderId, amountMinor }: Order) => ({ orderId: id, externalOrderId, amountMinor })

const sum = (entries: LedgerEntry[]): number => entries.reduce((total, { amountMinor }) => total + amountMinor, 0)

/** The 32 characters leave out 0, O, 1 and I, which people mistake. Each character has five bits, a key 125 bits. */
const alphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789'

/** Returns the licence key of a number. The same seed and number give the same key, and no two numbers share a key. */
function licenceKey(seed: string, number: number): string {
  const digest = createHash('sha256').update(`${seed}:${number}`).digest()
  const text = Array.from(digest.subarray(0, 25), (byte) => alphabet[byte % alphabet.length]).join('')
  return text.replace(/(.{5})(?=.)/g, '$1-')
}
