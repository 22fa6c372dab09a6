-- Work that waits for its turn: while it does, no rule of its own sets it going.

-- Who has work done in an order of their own, and stands: a replay that is running or paused.
CREATE TABLE turn_keepers (
    id        UUID PRIMARY KEY,
    name      TEXT NOT NULL,
    is_paused BIGINT NOT NULL CHECK (is_paused IN (0, 1))
);

-- keepers (a JSON list of their ids) are those in whose order the work has not begun yet. kept_since:
-- if it became stale meanwhile, what lot_work.stale_since was before that.
CREATE TABLE lot_turns (
    job_id     UUID NOT NULL,
    lot        TEXT NOT NULL,
    keepers    TEXT NOT NULL,
    kept_since BIGINT,
    PRIMARY KEY (job_id, lot)
) WITHOUT ROWID;
