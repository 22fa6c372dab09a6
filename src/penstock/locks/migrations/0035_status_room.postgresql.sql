-- A status row is written when its lot is claimed and once more when that ends, mostly at once for
-- many: with room for both on one page, the second needs no entry in any index.
ALTER TABLE lot_status SET (fillfactor = 50);
