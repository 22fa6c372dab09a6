-- Lots are worked on in the order of these keys, byte by byte.
ALTER TABLE lot_work ALTER COLUMN lot_key TYPE text COLLATE "C";
ALTER TABLE lot_work SET (fillfactor = 80);
ALTER TABLE lot_status SET (fillfactor = 80);

CREATE TABLE lot_log (
    id         bigint GENERATED ALWAYS AS IDENTITY,
    at         bigint NOT NULL,
    action     text NOT NULL,
    lot        text NOT NULL,
    job_id     uuid,
    dataset_id uuid,
    run_id     uuid,
    was        text NOT NULL,
    became     text NOT NULL,
    who        text NOT NULL,
    why        text NOT NULL
);
CREATE INDEX lot_log_of_job ON lot_log (job_id, id) WHERE job_id IS NOT NULL;
CREATE INDEX lot_log_of_work ON lot_log (job_id, lot) WHERE job_id IS NOT NULL;
CREATE INDEX lot_log_of_lot ON lot_log (dataset_id, lot) WHERE dataset_id IS NOT NULL;
