create table captures (
  id text not null primary key,
  path text not null,
  reason text not null,
  received_at integer not null,
  ciphertext blob not null,
  key_id integer not null
) strict;
