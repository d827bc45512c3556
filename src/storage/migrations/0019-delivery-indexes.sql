-- Each delivery changed a random page of three indexes, and a commit writes each page that it changed. Now it changes one: what finds
-- an ID by its beginning also finds repeats, and what finds a MAC goes by the time that was signed with it. A store signs no time.
drop index deliveries_delivery_begins;
drop index deliveries_once;
create unique index deliveries_once on deliveries (lower(delivery_id), source, delivery_id, body_hmac);
drop index deliveries_mac;
create unique index deliveries_mac on deliveries (source, signed_at, mac);
create unique index deliveries_store_mac on deliveries (source, mac) where source like 'stores/%';
-- A delivery has an event once it is read, and waits until then: no index has it twice.
drop index deliveries_due;
create index deliveries_due on deliveries (state, not_before) where state in ('stored', 'retry', 'orphan');
drop index deliveries_event;
create index deliveries_event on deliveries (event, id) where event is not null;
drop index deliveries_event_state;
create index deliveries_event_state on deliveries (event, state, id) where event is not null;
