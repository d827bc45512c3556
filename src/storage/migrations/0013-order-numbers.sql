-- The number by which people of the store know an order, such as #1001. Null: its reference is that number.
alter table store_orders add column number text;
create index store_orders_number on store_orders (number) where number is not null;
