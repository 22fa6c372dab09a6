-- Replays: what was made from bad lots, made again in order as one operation.

-- target (JSON) is what was asked for. counts (JSON) are of its steps by state, and of the time that
-- they took before. is_open: it is running or paused, or something that it set going has not ended.
-- ran is how long it was running before `since`.
CREATE TABLE replays (
    id          UUID PRIMARY KEY,
    namespace   TEXT NOT NULL,
    target      TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('running', 'paused', 'done', 'failed', 'cancelled')),
    is_open     BIGINT NOT NULL CHECK (is_open IN (0, 1)),
    counts      TEXT NOT NULL,
    max_running BIGINT NOT NULL CHECK (max_running > 0),
    who         TEXT NOT NULL,
    why         TEXT NOT NULL,
    ran         BIGINT NOT NULL,
    since       BIGINT NOT NULL,
    created_at  BIGINT NOT NULL
);
CREATE INDEX replays_open ON replays (created_at) WHERE is_open = 1;
CREATE INDEX replays_by_age ON replays (created_at);

-- One job's work on one lot, to be done again. number is its place in the order. waits_for: how many
-- steps before it are not done. run_before is the last run that does not count; run_id the one that did
-- it again. micros is how long it took before.
CREATE TABLE replay_steps (
    replay_id  UUID NOT NULL,
    number     BIGINT NOT NULL,
    job_id     UUID NOT NULL,
    lot        TEXT NOT NULL,
    depth      BIGINT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('pending', 'going', 'done', 'failed', 'blocked')),
    waits_for  BIGINT NOT NULL CHECK (waits_for >= 0),
    run_before UUID,
    run_id     UUID,
    micros     BIGINT NOT NULL,
    note       TEXT NOT NULL,
    at         BIGINT NOT NULL,
    PRIMARY KEY (replay_id, number)
) WITHOUT ROWID;
CREATE UNIQUE INDEX replay_steps_of_work ON replay_steps (replay_id, job_id, lot);
CREATE INDEX replay_steps_by_state ON replay_steps (replay_id, state, number);
-- What could not be begun yet is looked at again after the others.
CREATE INDEX replay_steps_next ON replay_steps (replay_id, at, number) WHERE state = 'pending' AND waits_for = 0;

-- Which step has to be done before which.
CREATE TABLE replay_edges (
    replay_id UUID NOT NULL,
    earlier   BIGINT NOT NULL,
    later     BIGINT NOT NULL,
    PRIMARY KEY (replay_id, earlier, later)
) WITHOUT ROWID;
