-- Lots that were tried, and are neither made nor being made: few, whatever there is of the others.
CREATE INDEX lot_work_failed ON lot_work (job_id, lot) WHERE tries > 0 AND state <> 'DONE' AND state <> 'RUNNING';
