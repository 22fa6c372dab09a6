-- How much a key may send in a second. NULL is the server's default, 0 is without limit.
ALTER TABLE api_keys ADD COLUMN requests_per_second BIGINT;
ALTER TABLE api_keys ADD COLUMN bytes_per_second BIGINT;
