-- An order that was announced under a reference of ours, and has no purchase here, is not bought again.
alter table deliveries add column external_order_id text;
create index deliveries_orphans on deliveries (external_order_id) where state = 'orphan';
