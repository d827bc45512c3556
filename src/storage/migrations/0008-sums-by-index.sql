-- What is reserved or spent since an instant is summed up before each purchase: of all that was sent since, from the index. The new
-- ones come first: dropping an index shuts out everybody else until the end.
create index purchases_reserved_sum on purchases (reserved_at, reserved_minor);
create index purchases_sent_sum on purchases (last_sent_at, reserved_minor);
drop index purchases_reserved;
drop index purchases_last_sent;
