-- The folders that were begun as object stores of ours: each has a mark since, and one without it is
-- not the store, but the place where its disk is missing.
CREATE TABLE stores (
    url      TEXT PRIMARY KEY,
    begun_at BIGINT NOT NULL
);
