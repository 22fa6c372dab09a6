-- Replays: everything made from bad lots is made again, in order, as one operation.
-- Times are microseconds since 1970 (UTC).

-- target (JSON): the request. counts (JSON): of the steps by state, and of the time that they took
-- before. is_open = 1: running or paused, or a step that it started has not ended. ran: the time
-- spent running before `since`.
CREATE TABLE replays (
    id          UUID PRIMARY KEY,
    namespace   TEXT NOT NULL,
    target      TEXT NOT NULL,
    state       TEXT NOT NULL {check state ReplayState},
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

-- The work of one job on one lot, to be repeated. number: the position in the order. waits_for: how
-- many earlier steps are not done. run_before: the last run that does not count; run_id: the run
-- that repeated the work. micros: how long the work took before.
CREATE TABLE replay_steps (
    replay_id  UUID NOT NULL,
    number     BIGINT NOT NULL,
    job_id     UUID NOT NULL,
    lot        TEXT NOT NULL,
    depth      BIGINT NOT NULL,
    state      TEXT NOT NULL {check state StepState},
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
-- A step that could not start yet gets a later `at`: the other steps come first.
CREATE INDEX replay_steps_next ON replay_steps (replay_id, at, number) WHERE state = 'pending' AND waits_for = 0;

-- The order: step `earlier` must be done before step `later`.
CREATE TABLE replay_edges (
    replay_id UUID NOT NULL,
    earlier   BIGINT NOT NULL,
    later     BIGINT NOT NULL,
    PRIMARY KEY (replay_id, earlier, later)
) WITHOUT ROWID;
