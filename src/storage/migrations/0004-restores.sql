-- Orders of the supplier under references of ours that no purchase had when they were seen, after a restore.
create table unclaimed_orders (
  supplier_order_id text not null primary key,
  reference text not null,
  status text not null,
  seen_at integer not null
) strict;
create index unclaimed_orders_reference on unclaimed_orders (reference);
