-- The page on which a customer opens the keys of an order, and each time that a key was opened there.
create table key_pages (
  order_id text primary key references store_orders (id),
  token_digest blob not null,
  ciphertext blob not null,
  key_id integer not null,
  created_at integer not null,
  withdrawn_at integer,
  withdrawn_by text
) strict;
create unique index key_pages_token on key_pages (token_digest);

create table key_reveals (
  id text primary key,
  order_id text not null references store_orders (id),
  purchase_id text not null references purchases (id),
  ordinal integer not null,
  at integer not null,
  network text not null
) strict;
create index key_reveals_order on key_reveals (order_id);
