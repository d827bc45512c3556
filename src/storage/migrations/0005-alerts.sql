-- Alerts as people are notified of them: one row from when it is raised until it is over.
alter table outbox add column taken_at integer;
create index outbox_untaken on outbox (id) where kind = 'alert' and taken_at is null;

create table alerts (
  id text not null primary key,
  type text not null,
  subject text,
  note text,
  payload text not null,
  raised_at integer not null,
  ended_at integer,
  acknowledged_at integer,
  acknowledged_by text,
  muted_until integer
) strict;
create index alerts_ended on alerts (ended_at, id);
create index alerts_about on alerts (type, subject);

create table alert_channels (
  channel text not null primary key,
  connected_at integer not null,
  attempts integer not null default 0,
  next_try_at integer,
  failing_since integer,
  last_error text,
  sent_at integer
) strict;

create table alert_notices (
  channel text not null,
  alert text not null,
  said text not null,
  at integer not null,
  times integer not null,
  primary key (channel, alert)
) strict;
create index alert_notices_at on alert_notices (channel, at);
