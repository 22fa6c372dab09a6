CREATE TABLE raw_events (
    id      INTEGER PRIMARY KEY,
    payload TEXT NOT NULL
);
