-- The one row that every writer changes first.
CREATE TABLE writer (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    epoch BIGINT NOT NULL
);

INSERT INTO writer (id, epoch) VALUES (1, 0);
