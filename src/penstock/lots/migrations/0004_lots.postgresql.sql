-- One notification for each commit wakes the readers of the outboxes.
CREATE FUNCTION notify_lots() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('penstock_lots', '');
    RETURN NULL;
END
$$;
CREATE TRIGGER lot_events_notify AFTER INSERT ON lot_events
    FOR EACH STATEMENT EXECUTE FUNCTION notify_lots();
CREATE TRIGGER run_ends_notify AFTER INSERT ON run_ends
    FOR EACH STATEMENT EXECUTE FUNCTION notify_lots();
