-- What orders brought and cost, summed by the hour and day of the order. Nothing here is a fact of its own: all of it can be
-- summed again from orders, purchases and keys.
create table earnings (
  at integer not null,
  end_at integer not null,
  store text not null,
  product_id text not null,
  currency text not null,
  keys integer not null,
  unpriced integer not null,
  revenue_minor integer not null,
  charged_minor integer not null,
  refunded_minor integer not null,
  owed_back_minor integer not null,
  primary key (at, end_at, store, product_id, currency)
) strict;
create index earnings_of_stores on earnings (at) where product_id = '';

-- The same by calendar month, so that the best and the worst products are found without adding up a month of days.
create table monthly_earnings (
  at integer not null,
  store text not null,
  product_id text not null,
  currency text not null,
  keys integer not null,
  unpriced integer not null,
  revenue_minor integer not null,
  charged_minor integer not null,
  refunded_minor integer not null,
  owed_back_minor integer not null,
  primary key (at, product_id, store, currency)
) strict;
create index monthly_earnings_by_margin
  on monthly_earnings (at, (revenue_minor - charged_minor + refunded_minor + owed_back_minor), product_id, store, currency);

-- Times whose sums are out of date, because an order of that time has changed.
create table stale_earnings (
  at integer not null,
  end_at integer not null,
  due_at integer not null,
  changes integer not null,
  primary key (at, end_at)
) strict;
create index stale_earnings_due on stale_earnings (due_at);
-- Orders that are stored already are summed day by day once the service runs.
insert into stale_earnings (at, end_at, due_at, changes)
  select distinct received_at - received_at % 86400000, received_at - received_at % 86400000 + 86400000, 0, 0 from store_orders;

-- Purchases that failed after they were charged are few of many.
create index purchases_failed_charged on purchases (state, id) where state = 'failed' and amount_minor > 0;
