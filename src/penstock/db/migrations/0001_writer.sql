-- The writer's turn. Every writer updates this row first: the lock on it admits one writer at a
-- time, and epoch counts the writes.
CREATE TABLE writer (
    id    BIGINT PRIMARY KEY CHECK (id = 1),
    epoch BIGINT NOT NULL
);

INSERT INTO writer (id, epoch) VALUES (1, 0);
