-- To count the orders with a SKU read each of their lines, which lie far apart. Now the index has all that counting needs.
drop index store_order_lines_sku;
create index store_order_lines_sku on store_order_lines (sku, order_id, id);
