-- Each store has its own queue.
drop index outbox_due;
create index outbox_due on outbox (state, store, not_before);
