-- Why the cost of an offer cannot be believed: missing, zero, negative or currency. Its last good cost stays beside it.
alter table offers add column cost_fault text;

-- A run no longer writes down each offer that it saw, so nobody looks for offers by run; who was missed twice is asked
-- for at the end of each.
drop index offers_seen;
create index offers_missed on offers (missed_runs) where missed_runs > 1 and gone_at is null;

-- Pages that a run stepped over, because the supplier did not give them readably.
alter table sync_runs add column pages_broken integer not null default 0;
