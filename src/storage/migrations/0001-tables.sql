-- The tables of storage/schema.ts, by hand: a migration is read long after the schema has moved on.
-- `strict` makes SQLite refuse a value of another type; the rest is the subset that PostgreSQL reads as well.

create table settings (
  name text not null primary key,
  value text not null,
  changed_at integer not null
) strict;

create table data_keys (
  id integer not null primary key,
  wrapped blob not null,
  created_at integer not null
) strict;

create table offers (
  product_id text not null primary key,
  sku text not null,
  name text not null,
  category text,
  description text,
  image text,
  cost_minor integer not null,
  base_price_minor integer,
  cashback_minor integer,
  currency text not null,
  local_stock integer,
  provider_stock integer,
  available integer not null,
  origin text,
  as_of integer not null,
  seen_run_id text,
  missed_runs integer not null default 0,
  gone_at integer,
  held_at integer,
  changed_at integer not null,
  cost_fault text
) strict;
create index offers_sku on offers (sku);

create table offer_changes (
  id text not null primary key,
  run_id text,
  product_id text not null,
  field text not null,
  before text,
  after text,
  changed_at integer not null
) strict;
create index offer_changes_run on offer_changes (run_id);
create index offer_changes_product on offer_changes (product_id, changed_at);

create table sync_runs (
  id text not null primary key,
  cause text not null,
  state text not null,
  started_at integer not null,
  finished_at integer,
  cursor integer not null,
  pages_total integer,
  pages integer not null default 0,
  offers_seen integer not null default 0,
  offers_new integer not null default 0,
  offers_changed integer not null default 0,
  offers_unreadable integer not null default 0,
  offers_gone integer not null default 0,
  first_unreadable text,
  error text,
  request_id text,
  pages_broken integer not null default 0,
  dry integer not null default 0
) strict;
create index sync_runs_started on sync_runs (started_at);

create table balance_readings (
  id text not null primary key,
  read_at integer not null,
  amount_minor integer not null,
  currency text not null,
  tier text,
  limits text
) strict;
create index balance_readings_read on balance_readings (read_at);

create table store_orders (
  id text not null primary key,
  store text not null,
  reference text not null,
  body_digest text not null,
  received_at integer not null,
  cancel_requested_at integer,
  closed_at integer,
  shop_state text
) strict;
create index store_orders_open on store_orders (received_at) where closed_at is null;
create unique index store_orders_reference on store_orders (store, reference);
create index store_orders_received on store_orders (received_at);

create table store_order_lines (
  id text not null primary key,
  order_id text not null references store_orders (id),
  line text not null,
  sku text not null,
  product_id text,
  quantity integer not null,
  unit_price_minor integer,
  currency text
) strict;
create unique index store_order_lines_line on store_order_lines (order_id, line);

create table purchases (
  id text not null primary key,
  order_id text not null references store_orders (id),
  line_id text not null references store_order_lines (id),
  part integer not null,
  generation integer not null,
  state text not null,
  hold_reason text,
  note text,
  not_before integer,
  cancel_requested_at integer,
  refresh_at integer,
  refreshes integer not null default 0,
  version integer not null default 0,
  lease_owner text,
  lease_epoch integer not null default 0,
  lease_until integer,
  idempotency_key text not null,
  external_order_id text not null,
  body text not null,
  supplier_product_id text not null,
  quantity integer not null,
  ceiling_minor integer not null,
  reserved_minor integer not null default 0,
  reserved_at integer,
  spend_cap_overridden_at integer,
  maybe_charged_at integer,
  key_safe_until integer,
  supplier_order_id text,
  supplier_status text,
  amount_minor integer,
  currency text not null,
  last_class text,
  failure_code text,
  failure_message text,
  sends integer not null default 0,
  repeats integer not null default 0,
  named_order_id text,
  first_sent_at integer,
  last_sent_at integer,
  deadline_at integer not null,
  unknown_at integer,
  scanned_at integer,
  absent_since integer,
  accepted_at integer,
  keys_short_since integer,
  hand_over_held_at integer,
  hand_over_begun_at integer,
  failure_notified_at integer,
  hold_reported text,
  refunded_at integer,
  written_off_at integer,
  orders_seen text not null default '[]',
  error_text text,
  error_count integer not null default 0,
  created_at integer not null,
  changed_at integer not null,
  counted_at integer,
  returned_at integer
) strict;
create unique index purchases_generation on purchases (line_id, part, generation);
create unique index purchases_live on purchases (line_id, part)
  where state not in ('rejected', 'failed', 'cancelled');
create unique index purchases_idempotency_key on purchases (idempotency_key);
create unique index purchases_external_order on purchases (external_order_id);
create unique index purchases_supplier_order on purchases (supplier_order_id);
create index purchases_order on purchases (order_id);
create index purchases_due on purchases (state, not_before);
create index purchases_refresh on purchases (refresh_at);
create index purchases_reserved on purchases (reserved_at);
create index purchases_last_sent on purchases (last_sent_at);

create table purchase_attempts (
  id text not null primary key,
  purchase_id text not null references purchases (id),
  kind text not null,
  stage text not null,
  number integer not null,
  at integer not null,
  status integer,
  class text,
  code text,
  request_id text,
  supplier_order_id text,
  request_digest text,
  answer_digest text,
  detail text
) strict;
create index purchase_attempts_purchase on purchase_attempts (purchase_id, at);

create table transitions (
  id text not null primary key,
  purchase_id text not null references purchases (id),
  at integer not null,
  input text not null,
  row text not null,
  before text not null,
  after text not null,
  actor text,
  detail text
) strict;
create index transitions_purchase on transitions (purchase_id, at);

create table licence_keys (
  purchase_id text not null references purchases (id),
  ordinal integer not null,
  ciphertext blob not null,
  key_id integer not null,
  blind_index blob not null,
  stored_at integer not null,
  hand_over_id text,
  begun_at integer,
  handed_over_at integer,
  primary key (purchase_id, ordinal)
) strict;
create index licence_keys_blind on licence_keys (blind_index);
create index licence_keys_hand_over on licence_keys (hand_over_id);

create table discrepancies (
  id text not null primary key,
  kind text not null,
  subject text not null,
  supplier_order_id text not null,
  external_order_id text,
  detail text not null,
  found_at integer not null
) strict;
create unique index discrepancies_once on discrepancies (kind, subject, supplier_order_id);
create index discrepancies_reference on discrepancies (external_order_id) where external_order_id is not null;

create table outbox (
  id text not null primary key,
  kind text not null,
  type text not null,
  store text,
  order_id text,
  dedupe_key text not null,
  payload text not null,
  sent_update text,
  sends integer not null default 0,
  state text not null,
  attempts integer not null default 0,
  not_before integer not null,
  last_error text,
  created_at integer not null,
  done_at integer
) strict;
create unique index outbox_dedupe on outbox (dedupe_key);
create index outbox_due on outbox (state, not_before);
create index outbox_order on outbox (order_id);
create index outbox_alerts on outbox (id) where kind = 'alert';

create table webhooks (
  id text not null primary key,
  path text not null unique,
  url text not null,
  events text not null,
  secret blob not null,
  key_id integer not null,
  created_at integer not null,
  retired_at integer
) strict;

create table deliveries (
  id text not null primary key,
  source text not null,
  delivery_id text not null,
  body_hmac blob not null,
  mac blob not null,
  signed_at integer not null,
  received_at integer not null,
  ciphertext blob not null,
  key_id integer not null,
  state text not null,
  attempts integer not null default 0,
  not_before integer not null,
  event text,
  supplier_order_id text,
  purchase_id text,
  last_error text,
  finished_at integer
) strict;
create unique index deliveries_once on deliveries (source, delivery_id, body_hmac);
create unique index deliveries_mac on deliveries (source, mac);
create index deliveries_due on deliveries (state, not_before);

-- Rotations of the secrets that callbacks to stores are signed with; the secrets are derived, none is stored.
create table callback_secrets (
  store text not null,
  generation integer not null,
  created_at integer not null,
  -- Until then the generation before is valid too.
  previous_until integer not null,
  primary key (store, generation)
) strict;

create table tokens (
  id text not null primary key,
  name text not null,
  digest blob not null unique,
  hint text not null,
  role text not null,
  store text,
  scopes text not null,
  created_at integer not null,
  expires_at integer,
  revoked_at integer
) strict;

create table audit (
  id text not null primary key,
  at integer not null,
  actor text not null,
  action text not null,
  subject text not null,
  detail text
) strict;
create index audit_at on audit (at);

create table captures (
  id text not null primary key,
  path text not null,
  reason text not null,
  received_at integer not null,
  ciphertext blob not null,
  key_id integer not null
) strict;

create table outages (
  id text not null primary key,
  began_at integer not null,
  ended_at integer,
  error text not null
) strict;
create index outages_ended on outages (ended_at);

create table sweeps (
  id text not null primary key,
  cause text not null,
  state text not null,
  from_at integer not null,
  started_at integer not null,
  finished_at integer,
  pages integer not null default 0,
  orders integer not null default 0,
  matched integer not null default 0,
  refreshed integer not null default 0,
  orphans integer not null default 0,
  "foreign" integer not null default 0,
  missing integer not null default 0,
  not_listed integer not null default 0,
  errors integer not null default 0,
  unreadable integer not null default 0,
  error text
) strict;

-- What the money at the supplier did, by what explains it: one row a currency, and its movements.
create table balance_accounts (
  currency text not null primary key,
  version integer not null default 0,
  started_at integer not null,
  start_minor integer not null,
  charges_minor integer not null default 0,
  refunds_minor integer not null default 0,
  credits_minor integer not null default 0,
  unexplained_minor integer not null default 0,
  owed_back_minor integer not null default 0,
  pending_minor integer not null default 0,
  pending_at integer,
  explained_at integer not null,
  judged_at integer not null,
  suspect_from integer
) strict;

create table balance_movements (
  id text not null primary key,
  reading_id text not null,
  kind text not null,
  amount_minor integer not null,
  currency text not null,
  at integer not null
) strict;

create index purchases_uncounted on purchases (accepted_at)
  where supplier_order_id is not null and counted_at is null;
create index purchases_owed_back on purchases (state, accepted_at)
  where state = 'failed' and returned_at is null;
create index purchases_written_off on purchases (written_off_at) where written_off_at is not null;

-- Reviews are counted in every commit that adds one.
create index transitions_reviews on transitions (at) where after = 'review';

-- Orders of the supplier under references of ours that no purchase had when they were seen, after a restore.
create table unattached_orders (
  supplier_order_id text not null primary key,
  reference text not null,
  status text not null,
  seen_at integer not null
) strict;
create index unattached_orders_reference on unattached_orders (reference);

create index offers_missed on offers (missed_runs) where missed_runs > 1 and gone_at is null;

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
  known_gone integer,
  known_cost_minor integer,
  pushed_at integer,
  wanted_price_minor integer,
  approved_price_minor integer,
  revision integer not null default 0,
  version integer not null default 0,
  changed_at integer not null,
  sent_price_minor integer,
  sent_compare_at_minor integer,
  sent_currency text,
  sent_name text,
  sent_category text,
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
  policy text not null,
  epoch integer not null,
  attempts integer not null default 0,
  paused_until integer,
  last_error text,
  changed_at integer not null
) strict;

-- How far a shop with orders and products of its own is read.
create table store_readings (
  store text not null primary key,
  connected_at integer not null,
  orders_cursor text,
  orders_read_at integer,
  orders_due_at integer not null,
  failing_since integer,
  attempts integer not null default 0,
  last_error text,
  variants_cursor text,
  variants_read_at integer
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
