-- Which engine claims the lots of a job, if one does: then no other worker may. 'arcs' is the engine of arcs.
ALTER TABLE lot_jobs ADD COLUMN managed_by TEXT;
UPDATE lot_jobs SET managed_by = 'arcs' WHERE job_id IN (SELECT job_id FROM arcs);
