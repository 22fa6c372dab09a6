-- API keys and the audit log.
-- Times are microseconds since 1970 (UTC).

-- digest: of the key itself, which is not stored. requests_per_second and bytes_per_second: NULL is
-- the server's default, 0 is no limit.
CREATE TABLE api_keys (
    id                  UUID PRIMARY KEY,
    name                TEXT NOT NULL,
    role                TEXT NOT NULL CHECK (role IN ('reader', 'writer', 'admin')),
    namespace           TEXT,
    digest              TEXT NOT NULL UNIQUE,
    created_at          BIGINT NOT NULL,
    revoked_at          BIGINT,
    requests_per_second BIGINT,
    bytes_per_second    BIGINT
);
CREATE UNIQUE INDEX api_keys_live_name ON api_keys (name) WHERE revoked_at IS NULL;

-- The actions of administrators. address: the client's. hash: over this entry and the hash before it.
CREATE TABLE audit_log (
    id      {identity},
    at      BIGINT NOT NULL,
    who     TEXT NOT NULL,
    action  TEXT NOT NULL,
    target  TEXT NOT NULL,
    detail  TEXT NOT NULL,
    address TEXT NOT NULL DEFAULT '',
    hash    TEXT NOT NULL DEFAULT ''
);
CREATE INDEX audit_log_by_time ON audit_log (at, id);
CREATE INDEX audit_log_by_who ON audit_log (who, at, id);
CREATE INDEX audit_log_by_action ON audit_log (action, at, id);
CREATE INDEX audit_log_by_who_and_action ON audit_log (who, action, at, id);

-- The hash of the newest entry; empty before the first one.
CREATE TABLE audit_chain (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    hash TEXT NOT NULL
);
INSERT INTO audit_chain (id, hash) VALUES (1, '');
