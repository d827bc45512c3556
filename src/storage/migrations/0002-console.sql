create table console_links (
  digest blob not null primary key,
  name text not null,
  role text not null,
  created_at integer not null,
  ends_at integer not null
) strict;

create table console_sessions (
  id text not null primary key,
  digest blob not null unique,
  name text not null,
  role text not null,
  created_at integer not null,
  seen_at integer not null,
  ends_at integer not null,
  revoked_at integer
) strict;

create table hourly_counts (
  hour integer not null,
  name text not null,
  part text not null,
  count integer not null,
  primary key (hour, name, part)
) strict;

-- Lists of the console, newest first, also among a million rows.
create index deliveries_state on deliveries (state, id);
create index deliveries_event on deliveries (event, id);
create index deliveries_event_state on deliveries (event, state, id);
create index listings_waiting on listings (store, variant) where wanted_price_minor is not null;
drop index offer_changes_run;
create index offer_changes_run on offer_changes (run_id, id);
