-- Keys are compared byte by byte, so that a range of them is all that begin alike.
ALTER TABLE search_keys ALTER COLUMN key TYPE text COLLATE "C";
CREATE INDEX search_keys_by_key ON search_keys (namespace, key);
