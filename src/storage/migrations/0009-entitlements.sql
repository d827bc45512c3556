-- How each order stands in its store now, and how many units of each line its customer is entitled to. Orders that were taken before
-- begin at revision 0: those of a backend stand as it posted them, those of a shop as they were read last.
create table entitlements (
  store text not null,
  reference text not null,
  order_id text,
  revision integer not null,
  settled_revision integer not null,
  settle_at integer,
  read_at integer not null,
  changed_at integer,
  standing text not null,
  standing_since integer not null,
  because text,
  fully_paid integer not null,
  refunded_minor integer not null default 0,
  acknowledged_minor integer not null default 0,
  is_for_person integer not null default 0,
  accepts_short integer not null default 0,
  is_tagged integer not null default 0,
  wish_revision integer not null default 0,
  untag_tries integer not null default 0,
  untag_at integer,
  primary key (store, reference)
) strict;
create unique index entitlements_order on entitlements (order_id);
create index entitlements_revision on entitlements (store, revision);
create index entitlements_settle on entitlements (settle_at) where settle_at is not null;
create index entitlements_untag on entitlements (untag_at) where untag_at is not null;
create index entitlements_not_taken on entitlements (read_at) where order_id is null;

create table entitlement_lines (
  store text not null,
  reference text not null,
  line text not null,
  units integer not null,
  granted integer not null,
  most integer not null,
  primary key (store, reference, line)
) strict;

insert into entitlements
  (store, reference, order_id, revision, settled_revision, read_at, standing, standing_since, fully_paid)
select store, reference, id, 0, 0,
  case when shop_state is null then 9000000000000000 else 0 end,
  case
    when shop_state = 'waiting' then 'unpaid'
    when shop_state = 'cancelled' or (shop_state is null and cancel_requested_at is not null) then 'cancelled'
    else 'paid'
  end,
  received_at,
  case when shop_state is null or shop_state = 'paid' then 1 else 0 end
from store_orders;

insert into entitlement_lines (store, reference, line, units, granted, most)
select o.store, o.reference, l.line, l.quantity, l.quantity, l.quantity
from store_order_lines l join store_orders o on o.id = l.order_id
where l.product_id is not null;

alter table purchases add column surplus integer not null default 0;
alter table purchases add column taken_back_by text;
alter table purchases add column held_at integer;
alter table purchases add column planned_revision integer not null default 0;
alter table purchases add column decided_revision integer;
alter table purchases add column ceiling_decided_at integer;

alter table outbox add column acts_until integer;
create index outbox_acting on outbox (order_id, acts_until) where acts_until is not null;
