-- The least that a queue can be: what is to be done, how far it is, and who does it.
CREATE TABLE skip_locked_work (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    lot   text NOT NULL,
    state text NOT NULL,
    owner text NOT NULL DEFAULT '',
    since bigint NOT NULL DEFAULT 0
);
CREATE INDEX skip_locked_work_ready ON skip_locked_work (id) WHERE state = 'READY';
ALTER TABLE skip_locked_work SET (fillfactor = 80);
