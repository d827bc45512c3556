-- Orders that a shop did not give when the others of their page were read.
create table late_orders (
  store text not null,
  reference text not null,
  attempts integer not null,
  not_before integer not null,
  last_error text not null,
  primary key (store, reference)
) strict;
