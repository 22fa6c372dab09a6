CREATE TABLE audit_log (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     bigint NOT NULL,
    who    text NOT NULL,
    action text NOT NULL,
    target text NOT NULL,
    detail text NOT NULL
);
CREATE INDEX audit_log_by_time ON audit_log (at, id);
CREATE INDEX audit_log_by_who ON audit_log (who, at, id);
CREATE INDEX audit_log_by_action ON audit_log (action, at, id);
