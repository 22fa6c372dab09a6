-- Where each action came from, and a hash over it and all before it.
ALTER TABLE audit_log ADD COLUMN address TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_log ADD COLUMN hash TEXT NOT NULL DEFAULT '';

-- The hash of the newest entry. The row is made when the entries that were there are chained.
CREATE TABLE audit_chain (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    hash TEXT NOT NULL
);
