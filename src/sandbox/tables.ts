import { closeSync, openSync } from 'node:fs'
import Database from 'better-sqlite3'
import { systemFailure } from '../errors.ts'

export type Tables = Database.Database

/**
 * Opens the sandbox's own file, or a database in memory when no file is given, and creates missing tables.
 *
 * With synchronous FULL in WAL mode, a change is on disk before its answer is sent. So a killed sandbox forgets no charge.
 */
export function openTables(file: string | undefined): Tables {
  // The file is opened once by Node first, because SQLite would not say what is wrong with the path.
  if (file !== undefined) closeSync(openSync(file, 'a', 0o600))
  const db = new Database(file ?? ':memory:')
  try {
    db.pragma('journal_mode = WAL')
    db.pragma('synchronous = FULL')
    db.pragma('foreign_keys = ON')
    db.exec(tables)
    return db
  } catch (error) {
    db.close()
    throw systemFailure(error, file) ?? error
  }
}

/** The tables `ledger` and `issued_keys` refuse update and delete, because tests judge Quayside by these tables. */
const tables = `
create table if not exists account (
  id integer primary key check (id = 1),
  start_minor integer not null,
  balance_minor integer not null,
  key_seed text not null,
  created_at integer not null
);
create table if not exists offers (
  id text primary key,
  local_stock integer not null,
  provider_stock integer not null,
  price_minor integer not null,
  available integer not null,
  withdrawn_at integer,
  updated_at integer not null
);
create table if not exists orders (
  seq integer primary key autoincrement,
  id text not null unique,
  external_order_id text,
  product_id text not null,
  quantity integer not null,
  status text not null,
  amount_minor integer not null,
  failure_code text,
  failure_message text,
  plan text not null,
  due_at integer,
  hidden_until integer not null,
  created_at integer not null,
  updated_at integer not null
);
create index if not exists orders_due on orders (due_at) where due_at is not null;
create index if not exists orders_created on orders (created_at, seq);
create index if not exists orders_reference on orders (external_order_id);
create table if not exists idempotency (
  key text primary key,
  fingerprint text not null,
  decision text not null,
  at integer not null
);
create index if not exists idempotency_at on idempotency (at);
create table if not exists ledger (
  seq integer primary key autoincrement,
  kind text not null check (kind in ('charge', 'refund', 'top_up')),
  order_id text,
  external_order_id text,
  idempotency_key text,
  amount_minor integer not null check (amount_minor >= 0),
  at integer not null
);
create unique index if not exists ledger_once on ledger (order_id, kind) where order_id is not null;
create table if not exists issued_keys (
  seq integer primary key autoincrement,
  order_id text not null,
  external_order_id text,
  text text not null unique,
  at integer not null
);
create index if not exists issued_keys_order on issued_keys (order_id, seq);
create table if not exists webhooks (
  id text primary key,
  url text not null,
  events text not null,
  secret text not null,
  created_at integer not null
);
create table if not exists deliveries (
  seq integer primary key autoincrement,
  delivery_id text not null,
  webhook_id text not null references webhooks (id),
  event text not null,
  order_id text,
  body text not null,
  state text not null check (state in ('due', 'delivered', 'dropped', 'dead')),
  rank real not null,
  held integer not null default 0,
  attempts integer not null default 0,
  due_at integer not null,
  last_status integer,
  created_at integer not null
);
create index if not exists deliveries_due on deliveries (webhook_id, rank) where state = 'due';
create index if not exists deliveries_id on deliveries (delivery_id);
${['ledger', 'issued_keys']
  .flatMap((table) => ['update', 'delete'].map((verb) => ({ table, verb })))
  .map(
    ({ table, verb }) => `create trigger if not exists ${table}_no_${verb} before ${verb} on ${table}
begin select raise(abort, 'the ${table} is append-only'); end;`,
  )
  .join('\n')}
`
