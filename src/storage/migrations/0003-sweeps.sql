create table sweeps (
  id text not null primary key,
  cause text not null,
  state text not null,
  from_at integer not null,
  started_at integer not null,
  finished_at integer,
  pages integer not null default 0,
  orders integer not null default 0,
  matched integer not null default 0,
  hinted integer not null default 0,
  orphans integer not null default 0,
  others integer not null default 0,
  missing integer not null default 0,
  unlisted integer not null default 0,
  troubled integer not null default 0,
  unreadable integer not null default 0,
  error text
) strict;

-- What the money at the supplier did, by what explains it: one row a currency, and its movements.
create table balance_accounts (
  currency text not null primary key,
  version integer not null default 0,
  started_at integer not null,
  start_minor integer not null,
  charges_minor integer not null default 0,
  refunds_minor integer not null default 0,
  credits_minor integer not null default 0,
  unexplained_minor integer not null default 0,
  owed_back_minor integer not null default 0,
  pending_minor integer not null default 0,
  pending_at integer,
  explained_at integer not null,
  judged_at integer not null,
  suspect_from integer
) strict;

create table balance_movements (
  id text not null primary key,
  reading_id text not null,
  kind text not null,
  amount_minor integer not null,
  currency text not null,
  at integer not null
) strict;

-- Whether the charge of a purchase, and what is owed back of it, are in the account.
alter table purchases add column counted_at integer;
alter table purchases add column returned_at integer;
create index purchases_uncounted on purchases (accepted_at)
  where supplier_order_id is not null and counted_at is null;
create index purchases_owed_back on purchases (state, accepted_at)
  where state = 'failed' and returned_at is null;
create index purchases_written_off on purchases (written_off_at) where written_off_at is not null;

-- Reviews are counted in each commit that makes one more: without this, by reading every transition of the hour.
create index transitions_reviews on transitions (at) where after = 'review';
