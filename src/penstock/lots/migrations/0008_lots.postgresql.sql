-- What happened to lots, in the order in which it was committed: the outbox.
CREATE TABLE lot_events (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         bigint NOT NULL,
    kind       text NOT NULL,
    dataset_id uuid NOT NULL,
    lot        text NOT NULL,
    state      text NOT NULL,
    version_id uuid,
    job_id     uuid,
    run_id     uuid
);

-- Whoever waits for lots is told once for each commit.
CREATE FUNCTION tell_of_lots() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('penstock_lots', '');
    RETURN NULL;
END
$$;
CREATE TRIGGER lot_events_told AFTER INSERT ON lot_events
    FOR EACH STATEMENT EXECUTE FUNCTION tell_of_lots();
