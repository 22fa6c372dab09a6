-- A version from before this step looks at the ledger when it starts and not again: one that is still
-- running would go on to write, as if nothing had changed. It is told what to do instead, as it tells
-- whoever calls it.
CREATE FUNCTION refuse_old_writers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'this Penstock is older than the database, and nothing was written: stop it, and start the version that brought the database up to date'
        USING ERRCODE = 'cannot_connect_now';
END $$;
CREATE TRIGGER refuse_old_writers BEFORE UPDATE ON writer
FOR EACH ROW WHEN (current_setting('penstock.asks', true) IS DISTINCT FROM 'newest')
EXECUTE FUNCTION refuse_old_writers();
