-- What a store may have of a listing: what it was told last and has not confirmed.
alter table listings add column sent_price_minor integer;
alter table listings add column sent_compare_at_minor integer;
alter table listings add column sent_currency text;
alter table listings add column sent_name text;
alter table listings add column sent_category text;
