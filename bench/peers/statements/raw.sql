-- name: keep_raw_events
-- Keep bodies as they came, and nothing else.
INSERT INTO raw_events (payload)
{rows payload long}
