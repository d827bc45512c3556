-- Keys that a customer says do not work, and the parts that were planned in their place.
create table claims (
  id text primary key,
  number integer not null,
  order_id text not null references store_orders (id),
  purchase_id text not null references purchases (id),
  ordinal integer not null,
  note text not null,
  raised_at integer not null,
  raised_by text not null,
  deadline_at integer not null,
  ended_at integer,
  ended_by text,
  outcome text,
  reason text,
  part integer
) strict;
create unique index claims_number on claims (number);
create unique index claims_key on claims (purchase_id, ordinal) where outcome is null or outcome <> 'refused';
create index claims_order on claims (order_id);
create index claims_open on claims (deadline_at) where ended_at is null;

-- A part in place of a key that does not work names the claim. It brings no unit of its line.
alter table purchases add column claim integer;
