-- For this step alone, or it would walk through the datasets of all jobs for every lot.
CREATE INDEX lot_job_datasets_of_job ON lot_job_datasets (job_id, role, dataset_id);

-- What a job has done by what it was wired to before, and not by what it is wired to now, was shown as
-- done until an input of today arrived. It waits for that, or can be done.
UPDATE lot_work AS w SET
    state = CASE
        WHEN EXISTS (SELECT 1 FROM lot_job_datasets d
                     WHERE d.job_id = w.job_id AND d.role = 'INPUT'
                       AND NOT EXISTS (SELECT 1 FROM lot_status s
                                       WHERE s.dataset_id = d.dataset_id AND s.lot = w.lot
                                         AND s.role = 'OUTPUT' AND s.status = 'READY'))
          OR EXISTS (SELECT 1 FROM lot_job_datasets d
                     JOIN lot_status s ON s.dataset_id = d.dataset_id AND s.lot = w.lot AND s.role = 'OUTPUT'
                     WHERE d.job_id = w.job_id AND d.role = 'OUTPUT'
                       AND s.status NOT IN ('ERROR', 'RESUBMIT'))
        THEN 'WAITING' ELSE 'READY' END,
    tries = 0,
    not_before = 0,
    error = ''
WHERE w.state = 'DONE'
  AND EXISTS (SELECT 1 FROM lot_jobs j WHERE j.job_id = w.job_id AND j.updated_at >= w.since)
  AND NOT EXISTS (SELECT 1 FROM lot_job_datasets d
                  JOIN lot_status s ON s.dataset_id = d.dataset_id AND s.lot = w.lot AND s.role = d.role
                  WHERE d.job_id = w.job_id AND s.job_id = w.job_id
                    AND (d.role = 'INPUT' OR s.status IN ('READY', 'HOLD')));

DROP INDEX lot_job_datasets_of_job;
