-- By these the lines are found whose customers wait although their order may be closed: units of which a store does
-- not know yet that they will not come, and units of an order that no person has agreed to buy.
create index outbox_failed on outbox (order_id) where type = 'line.failed' and state <> 'done';
create index entitlement_lines_ungranted on entitlement_lines (store, reference) where units > granted;
