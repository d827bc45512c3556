-- The process that acts as the worker. Only a database that several processes share has a row.
create table worker_lease (
  id integer not null primary key,
  owner text not null,
  epoch integer not null,
  ends_at integer not null,
  server text
) strict;

-- What a process leaves to the worker, and how the worker answered.
create table worker_calls (
  id text not null primary key,
  operation text not null,
  asked_at integer not null,
  begun_at integer,
  question blob not null,
  answer blob,
  key_id integer not null
) strict;
