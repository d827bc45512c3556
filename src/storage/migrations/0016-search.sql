-- By these a person finds what begins with a text, in whatever letters it is typed, and with or without the # of an order's number.
create index store_orders_reference_begins on store_orders (ltrim(lower(reference), '#'));
create index store_orders_number_begins on store_orders (ltrim(lower(number), '#')) where number is not null;
-- Names of products may be long; the index has their beginnings, and their words are read from it.
create index offers_name_begins on offers (lower(substr(name, 1, 200)));
create index offers_sku_begins on offers (lower(sku));
create index listings_sku_begins on listings (lower(sku));
create index purchases_supplier_order_begins on purchases (lower(supplier_order_id));
create index deliveries_delivery_begins on deliveries (lower(delivery_id));
