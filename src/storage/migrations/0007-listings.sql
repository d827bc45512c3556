-- What each store sells of the catalogue, and what it is known to have of it.
create table listings (
  store text not null,
  variant text not null,
  product_id text,
  sku text not null,
  variation text,
  linked_by text not null,
  state text not null,
  reason text,
  detail text,
  attempts integer not null default 0,
  next_try_at integer,
  known_price_minor integer,
  known_compare_at_minor integer,
  known_currency text,
  known_stock integer,
  known_available integer,
  known_name text,
  known_category text,
  known_cost_minor integer,
  told_at integer,
  wanted_price_minor integer,
  approved_price_minor integer,
  revision integer not null default 0,
  version integer not null default 0,
  changed_at integer not null,
  primary key (store, variant)
) strict;
create index listings_product on listings (store, product_id);
create index listings_sku on listings (store, sku);
create index listings_state on listings (store, state, variant);
create index listings_due on listings (store, next_try_at) where next_try_at is not null;

-- Products whose listings may look different in a store now; no list of them stands for the whole catalogue.
create table publications (
  id text not null primary key,
  store text not null,
  product_ids text,
  cursor text,
  cause text not null,
  created_at integer not null
) strict;
create index publications_store on publications (store, id);

-- How publishing to a store stands.
create table publishing (
  store text not null primary key,
  terms text not null,
  epoch integer not null,
  attempts integer not null default 0,
  paused_until integer,
  last_error text,
  changed_at integer not null
) strict;

-- Prices that a store has confirmed.
create table listing_prices (
  id text not null primary key,
  store text not null,
  variant text not null,
  at integer not null,
  price_minor integer not null,
  currency text not null,
  cost_minor integer,
  cause text not null
) strict;
create index listing_prices_variant on listing_prices (store, variant, at);
create index listing_prices_at on listing_prices (at);

-- What stores were owed of their listings until now; the first start publishes everything anew.
delete from outbox where type = 'listing.changed' and state <> 'done';
