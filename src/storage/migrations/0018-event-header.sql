-- Some suppliers name the event of a delivery in a header: it is read after the request has ended.
alter table deliveries add column event_header text;
