-- Runs of ours that have ended, in the order in which that was committed: the outbox of runs.
CREATE TABLE run_ends (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     bigint NOT NULL,
    run_id uuid NOT NULL
);

CREATE TRIGGER run_ends_told AFTER INSERT ON run_ends
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_lots();
