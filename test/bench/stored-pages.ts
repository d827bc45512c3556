/** What `bench -- pages` stores: orders with all that a sale leaves behind, most of them over, in the real schema. */
import Connection from 'better-sqlite3'
import { idBound } from '../../src/ids.ts'
import { ALWAYS_FRESH } from '../../src/storage/entitlements.ts'

const DAY_MS = 86_400_000
/** The time in which they all were sold. */
const SPAN_MS = 90 * DAY_MS
/** One listing for so many orders. */
const ORDERS_A_LISTING = 5

export interface Stored {
  /** How many orders. */
  count: number
  /** An id of half of the time, for lists that go on before an id. */
  middleId: string
  /** A variant of the middle, for lists that go on after one. */
  middleVariant: string
  /** What people search for: a SKU of many orders, a reference, an order of the supplier. */
  searches: string[]
}

/**
 * Inserts without a word to the program: rows by the million in one statement, and the indexes made at the end.
 *
 * Of 5,000 orders one is in review, ten are held and fifty have failed; the last hundred are on their way. Some messages and deliveries
 * wait for a person. Nothing is due, so that the service has no work of its own.
 *
 * @param store the one store that sold them
 * @param now epoch milliseconds
 * @param withCatalogue false: neither offers nor listings, for a service that reads its own
 * @param workAmong only among so many of the newest orders some are open, and some messages and deliveries dead: older ones are over
 */
export function storeSales(
  file: string,
  count: number,
  store: string,
  now: number,
  { withCatalogue = true, workAmong = count } = {},
): Stored {
  const db = new Connection(file)
  for (const pragma of [
    'journal_mode = MEMORY',
    'foreign_keys = OFF',
    'synchronous = OFF',
    'cache_size = -1000000',
    'temp_store = MEMORY',
  ]) {
    db.pragma(pragma)
  }
  const listings = withCatalogue ? Math.max(1_000, Math.floor(count / ORDERS_A_LISTING)) : 1_000
  const startAt = now - SPAN_MS
  const atOf = (index: number): number => Math.floor(startAt + (index / count) * (SPAN_MS - 60_000))
  const idOf = (index: number, part = 0): string =>
    `${idBound(atOf(index) + part)}${String(index * 10 + part).padStart(16, '0')}`
  db.function('at', { deterministic: true }, (index) => atOf(Number(index)))
  db.function('id', { deterministic: true }, (index) => idOf(Number(index)))
  db.function('part_id', { deterministic: true }, (index, part) => idOf(Number(index), Number(part)))
  const indexes = db
    .prepare<[], { name: string; sql: string }>(
      "select name, sql from sqlite_schema where type = 'index' and sql is not null",
    )
    .all()
  for (const { name } of indexes) db.exec(`drop index ${name}`)
  const far = now + 400 * DAY_MS
  const isWork = `i >= ${count - workAmong}`
  db.exec('begin')
  db.exec(`create temp table sales as
    with recursive numbers(i) as (select 0 union all select i + 1 from numbers where i < ${count - 1})
    select i, id(i) as id, at(i) as at, i * 7919 % ${listings} as offer,
      case
        when i >= ${count - 100} then 'accepted' when ${isWork} and i % 5000 = 7 then 'review'
        when ${isWork} and i % 500 = 11 then 'planned' when i % 100 = 13 then 'failed' else 'fulfilled'
      end as state
    from numbers`)
  const over = "state in ('fulfilled', 'failed')"
  // Every hundredth order is for one and the same SKU: what sells best.
  const sku = "printf('SKU-%07d', case when i % 100 = 0 then 0 else offer end)"
  const product = "printf('p%07d', case when i % 100 = 0 then 0 else offer end)"
  const external = `'q1.${store}.' || (100000 + i) || '.1.1.1'`
  const bought = "state in ('fulfilled', 'accepted', 'review')"
  db.exec(`
    insert into store_orders (id, store, reference, body_digest, received_at, closed_at, closed_state)
      select id, '${store}', 100000 + i, hex(randomblob(32)), at, iif(${over}, at + 4000, null), iif(${over}, state, null) from sales;
    insert into store_order_lines (id, order_id, line, sku, product_id, quantity, unit_price_minor, currency)
      select id, id, '1', ${sku}, ${product}, 1, 1999, 'EUR' from sales;
    insert into entitlements (store, reference, order_id, revision, settled_revision, read_at, standing, standing_since, fully_paid)
      select '${store}', 100000 + i, id, i + 1, i + 1, ${ALWAYS_FRESH}, 'paid', at, 1 from sales;
    insert into entitlement_lines (store, reference, line, units, granted, most)
      select '${store}', 100000 + i, '1', 1, 1, 1 from sales;
    insert into purchases (id, order_id, line_id, part, generation, state, hold_reason, note, refresh_at, version, idempotency_key,
        external_order_id, body, supplier_product_id, quantity, ceiling_minor, reserved_minor, reserved_at, maybe_charged_at,
        supplier_order_id, supplier_status, amount_minor, currency, sends, first_sent_at, last_sent_at, deadline_at, accepted_at,
        hand_over_begun_at, failure_code, failure_message, created_at, changed_at, counted_at, returned_at)
      select id, id, id, 1, 1, state, iif(state = 'planned', 'ceiling', null),
        iif(state = 'review', 'the supplier says that it is completed, and lists no keys', null),
        iif(state = 'accepted', ${far}, null), 9, 'k' || hex(randomblob(16)), ${external},
        '{"product_id":"' || ${product} || '","quantity":1,"external_order_id":"' || ${external} || '"}', ${product}, 1, 1100,
        iif(${bought}, 1000, 0), iif(${bought}, at + 50, null), iif(${bought}, at + 50, null),
        iif(${bought}, printf('so_%09d', i), null), iif(${bought}, 'completed', null), iif(${bought}, 1000, null), 'EUR', 1,
        at + 50, at + 50, ${far}, iif(${bought}, at + 300, null), iif(state = 'fulfilled', at + 2100, null),
        iif(state = 'failed', 'out_of_stock', null), iif(state = 'failed', 'no key is left', null), at, at + 3000, at + 60000, at + 60000
      from sales;
    insert into purchase_attempts (id, purchase_id, kind, stage, number, at, status, class, request_id, supplier_order_id, request_digest,
        answer_digest)
      select part_id(i, part), id, iif(part < 2, 'place', 'read'), iif(part % 2, 'answered', 'sent'), 1, at + 50 + part * 400,
        iif(part % 2, 201, null), null, iif(part % 2, 'req_' || hex(randomblob(8)), null), printf('so_%09d', i),
        hex(randomblob(32)), iif(part % 2, hex(randomblob(32)), null)
      from sales, (select 0 as part union select 1 union select 2 union select 3) where state <> 'planned';
    insert into transitions (id, purchase_id, at, input, row, before, after)
      select part_id(i, part), id, at + part * 500, 'due', 'sent',
        case part when 0 then 'planned' when 1 then 'sending' when 2 then 'accepted' else 'completed' end,
        case part when 0 then 'sending' when 1 then 'accepted' when 2 then iif(state = 'review', 'review', 'completed') else state end
      from sales, (select 0 as part union select 1 union select 2 union select 3) where state <> 'planned';
    insert into licence_keys (purchase_id, ordinal, ciphertext, key_id, blind_index, stored_at, hand_over_id, begun_at, handed_over_at)
      select id, 1, randomblob(60), 1, randomblob(32), at + 2000, id, at + 2100, at + 2300 from sales where state = 'fulfilled';
    insert into outbox (id, kind, type, store, order_id, dedupe_key, payload, sent_update, sends, state, attempts, not_before, last_error,
        created_at, done_at)
      select part_id(i, part), 'callback', iif(part, 'order.closed', 'line.fulfilled'), '${store}', id, type || ':' || id,
        iif(part, '{"state":"fulfilled"}', '{"purchaseId":"' || id || '","count":1}'),
        '{"type":"' || type || '","order":{"reference":"' || (100000 + i) || '"}}', 1,
        iif(${isWork} and i % 3000 = 5, 'dead', 'done'), 1, at + 2000, iif(${isWork} and i % 3000 = 5, 'the store answered 500', null), at + 2000,
        iif(${isWork} and i % 3000 = 5, null, at + 2300)
      from sales, (select 0 as part, 'line.fulfilled' as type union select 1, 'order.closed') where state = 'fulfilled';
    insert into outbox (id, kind, type, dedupe_key, payload, state, attempts, not_before, created_at, done_at)
      select part_id(i, 9), 'alert', 'balance_low', 'alert:' || id, '{"note":"the balance is low"}', 'done', 1, at, at, at
      from sales where i % 2000 = 17;
    insert into deliveries (id, source, delivery_id, body_hmac, mac, signed_at, received_at, ciphertext, key_id, state, attempts,
        not_before, event, supplier_order_id, purchase_id, last_error, finished_at)
      select part_id(i, 5), 'supplier', 'dlv_' || i, randomblob(32), randomblob(32), at + 1500, at + 1600, randomblob(700), 1,
        case when ${isWork} and i % 2000 = 3 then 'dead' when ${isWork} and i % 20000 = 9 then 'quarantined' when i % 20 = 1 then 'ignored' else 'applied' end, 1,
        ${far}, iif(i % 20 = 1, 'balance.low', 'order.completed'), printf('so_%09d', i), iif(i % 20 = 1, null, id),
        iif(${isWork} and i % 2000 = 3, 'the order cannot be read', null), at + 1700
      from sales;
    insert into audit (id, at, actor, action, subject, detail)
      select part_id(i, 6), at, 'mira (console ' || substr(id, 1, 8) || ')',
        case i % 3 when 0 then 'purchase.retry' when 1 then 'order.reveal' else 'delivery.replay' end, id, 'asked by the customer'
      from sales where i % 20 = 4;
    insert into discrepancies (id, kind, subject, supplier_order_id, detail, found_at)
      select part_id(i, 7), case i % 3 when 0 then 'late' when 1 then 'orphan' else 'missing' end, id, printf('so_%09d', i),
        'found by a sweep', at from sales where i % 500 = 21;
    insert into balance_readings (id, read_at, amount_minor, currency, tier)
      select part_id(i, 8), at, 1000000 - i % 1000 * 1000, 'EUR', 'gold' from sales where i % 50 = 2;
    insert into balance_movements (id, reading_id, kind, amount_minor, currency, at)
      select part_id(i, 8), part_id(i, 8), 'charge', -1000, 'EUR', at from sales where i % 50 = 2;
    insert into balance_accounts (currency, started_at, start_minor, charges_minor, explained_at, judged_at)
      values ('EUR', ${startAt}, 100000000, ${count * 1000}, ${now}, ${now});
    insert into sync_runs (id, cause, state, started_at, finished_at, cursor, pages_total, pages, offers_seen, offers_changed)
      select part_id(i, 4), 'schedule', 'complete', at, at + 60000, 1, 2000, 2000, ${listings}, 50 from sales where i % 250 = 6;
    insert into sweeps (id, cause, state, from_at, started_at, finished_at, pages, orders, matched)
      select part_id(i, 4), 'schedule', 'complete', at - ${DAY_MS}, at, at + 5000, 100, 10000, 10000 from sales where i % 250 = 8;
    insert into outages (id, began_at, ended_at, error)
      select part_id(i, 4), at, at + 60000, 'cannot be reached' from sales where i % 20000 = 10;
    insert into hourly_counts (hour, name, part, count)
      select at - at % 3600000, name, iif(name = 'spend', 'EUR', ''), sum(n) from sales,
        (select 'orders' as name, 1 as n union select 'deliveries', 1 union select 'refused', 0 union select 'keys', 1 union select 'spend', 1000)
      where at > ${now - 62 * DAY_MS} group by 1, 2;
    insert into stale_earnings (at, end_at, due_at, changes)
      select distinct at - at % ${DAY_MS}, at - at % ${DAY_MS} + ${DAY_MS}, 0, 0 from sales;
    insert into hourly_counts (hour, name, part, count)
      select at - at % 3600000, 'keysWithin', 18 + i % 9, count(*) from sales where at > ${now - 62 * DAY_MS} group by 1, 3;
  `)
  if (withCatalogue)
    db.exec(`
    insert into offer_changes (id, run_id, product_id, field, before, after, changed_at)
      select part_id(i, 3), part_id(i - i % 250 + 6, 4), ${product}, 'cost', '9.99', '10.00', at from sales where i % 5 = 0;
    insert into offers (product_id, sku, name, category, cost_minor, base_price_minor, cashback_minor, currency, local_stock,
        provider_stock, available, origin, as_of, changed_at)
      select printf('p%07d', i), printf('SKU-%07d', i), 'Product number ' || i, 'games', 1000, 1200, 10, 'EUR', 3, 4, i % 10 > 0, 'local',
        at, at from sales where i < ${listings};
    insert into listings (store, variant, product_id, sku, linked_by, state, reason, detail, known_price_minor, known_currency, known_stock,
        known_available, known_name, known_category, known_cost_minor, pushed_at, wanted_price_minor, revision, version, changed_at)
      select '${store}', printf('SKU-%07d', i), iif(i % 400 = 3, null, printf('p%07d', i)), printf('SKU-%07d', i), 'sku',
        case when i % 1000 = 1 then 'held' when i % 2000 = 2 then 'failed' when i % 400 = 3 then 'held' else 'synced' end,
        case when i % 1000 = 1 then 'jump' when i % 2000 = 2 then 'refused' when i % 400 = 3 then 'missing' end,
        iif(i % 1000 = 1, 'the price would rise by 40 %', null), 1999, 'EUR', 7, 1, 'Product number ' || i, 'games', 1000, at,
        iif(i % 1000 = 1, 2799, null), 5, 5, at from sales where i < ${listings};
    insert into listing_prices (id, store, variant, at, price_minor, currency, cost_minor, cause)
      select part_id(i, 2), '${store}', printf('SKU-%07d', offer), at, 1999, 'EUR', 1000, 'cost' from sales where i % 3 = 0;
    insert into publishing (store, policy, epoch, attempts, paused_until, last_error, changed_at)
      values ('${store}', 'bench', 1, 1, ${far}, 'the store answered 500', ${now});
    `)
  db.exec('commit')
  for (const { sql } of indexes) db.exec(sql)
  db.pragma('journal_mode = WAL')
  db.close()
  const middle = Math.floor(count / 2)
  return {
    count,
    middleId: idOf(middle),
    middleVariant: `SKU-${String(Math.floor(listings / 2)).padStart(7, '0')}`,
    searches: ['SKU-0000000', String(100_000 + middle), `so_${String(middle).padStart(9, '0')}`],
  }
}
