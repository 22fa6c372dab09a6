-- Backfills: the lots of an arc over a range of time, repaired a few at a time.

-- spec (JSON) is what was asked for. looked_to is how far the range was looked through, as a time:
-- upwards, or downwards from its end. counts (JSON) are of the lots looked at that nothing was done
-- about, and of those that ended. ran is how long it was running before `since`.
CREATE TABLE backfills (
    id         UUID PRIMARY KEY,
    job_id     UUID NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('running', 'paused', 'done', 'cancelled')),
    spec       TEXT NOT NULL,
    looked_to  BIGINT NOT NULL,
    counts     TEXT NOT NULL,
    who        TEXT NOT NULL,
    why        TEXT NOT NULL,
    ran        BIGINT NOT NULL,
    since      BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX backfills_running ON backfills (created_at) WHERE state = 'running';
CREATE INDEX backfills_by_age ON backfills (created_at);

-- The lots that a backfill has set going, and what became of them.
CREATE TABLE backfill_lots (
    backfill_id UUID NOT NULL,
    lot         TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('going', 'done', 'failed', 'waiting')),
    action      TEXT NOT NULL,
    at          BIGINT NOT NULL,
    PRIMARY KEY (backfill_id, lot)
) WITHOUT ROWID;
CREATE INDEX backfill_lots_going ON backfill_lots (backfill_id) WHERE state = 'going';
CREATE INDEX backfill_lots_failed ON backfill_lots (backfill_id) WHERE state = 'failed';
