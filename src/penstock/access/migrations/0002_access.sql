-- Who may do what, and who did what.

CREATE TABLE api_keys (
    id         UUID PRIMARY KEY,
    name       TEXT NOT NULL,
    role       TEXT NOT NULL CHECK (role IN ('reader', 'writer', 'admin')),
    namespace  TEXT,
    digest     TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
);
CREATE UNIQUE INDEX api_keys_live_name ON api_keys (name) WHERE revoked_at IS NULL;
