-- Letters to depositors that are not delivered yet: each is tried again from next_at on.
-- recipients: a JSON list of the addresses that have not got it. trouble: why, as its batch says.
CREATE TABLE ingest_letters (
    message_id TEXT PRIMARY KEY,
    batch_id TEXT NOT NULL,
    recipients TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    tries BIGINT NOT NULL,
    since BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    trouble TEXT NOT NULL
);
CREATE INDEX ingest_letters_due ON ingest_letters (next_at);
