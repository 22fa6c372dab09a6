-- Who is told of what happens to lots, and how far each has been told.

-- cursor: the last event that it has had, of the outbox that its kind follows. namespace, dataset:
-- only events about these; empty is all. token only grows: whoever delivers with an older one is
-- refused. owner and lease_until are of whoever delivers to it now.
CREATE TABLE subscribers (
    name         TEXT PRIMARY KEY,
    kind         TEXT NOT NULL CHECK (kind IN ('webhook', 'openlineage')),
    url          TEXT NOT NULL,
    secret       TEXT,
    namespace    TEXT NOT NULL,
    dataset      TEXT NOT NULL,
    cursor       BIGINT NOT NULL CHECK (cursor >= 0),
    token        BIGINT NOT NULL,
    owner        TEXT NOT NULL,
    lease_until  BIGINT NOT NULL,
    failures     BIGINT NOT NULL,
    next_try_at  BIGINT NOT NULL,
    error        TEXT NOT NULL,
    failed_at    BIGINT,
    delivered_at BIGINT,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL
);

-- Up to which event each outbox was pruned: whoever asks for what came before must be told.
CREATE TABLE outbox_pruned (
    outbox TEXT PRIMARY KEY CHECK (outbox IN ('lots', 'runs')),
    upto   BIGINT NOT NULL
);
