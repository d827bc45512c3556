alter table store_orders add column closed_state text;
update store_orders
  set closed_state = (
    select json_extract(outbox.payload, '$.state') from outbox
    where outbox.order_id = store_orders.id and outbox.type = 'order.closed'
    order by outbox.id desc limit 1
  )
  where closed_at is not null;

drop index store_orders_open;
create index store_orders_open on store_orders (id) where closed_at is null;
create index store_orders_unfulfilled on store_orders (closed_state, id, store) where closed_state <> 'fulfilled';
create index store_orders_store on store_orders (store, id);
create index store_order_lines_sku on store_order_lines (sku, order_id);

create index purchases_held on purchases (id) where hold_reason is not null;
create index purchases_not_sent on purchases (state, hold_reason) where state in ('planned', 'waiting');
create index deliveries_purchase on deliveries (purchase_id) where purchase_id is not null;
create index audit_subject on audit (subject, at);
create index offers_sold on offers (available) where gone_at is null;
create index discrepancies_subject on discrepancies (subject);
create index audit_action on audit (action, id);
-- The name of a person, without the session or the token that follows it.
create index audit_name on audit (substr(actor, 1, instr(actor || ' (', ' (') - 1), id);
