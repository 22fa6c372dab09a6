-- For this step alone, or it would walk through the datasets of all jobs for every lot.
CREATE INDEX lot_job_datasets_of_job ON lot_job_datasets (job_id, role, dataset_id);

-- Lots that are done, of which an output that their job was wired to since lacks them: few or none.
ALTER TABLE lot_work ADD COLUMN unmade BIGINT NOT NULL DEFAULT 0 CHECK (unmade IN (0, 1));
UPDATE lot_work SET unmade = 1
WHERE state = 'DONE' AND EXISTS (
    SELECT 1 FROM lot_job_datasets d
    WHERE d.job_id = lot_work.job_id AND d.role = 'OUTPUT' AND NOT EXISTS (
        SELECT 1 FROM lot_status s
        WHERE s.dataset_id = d.dataset_id AND s.lot = lot_work.lot AND s.role = 'OUTPUT' AND s.version_id IS NOT NULL
    )
);
CREATE INDEX lot_work_unmade ON lot_work (job_id, lot) WHERE unmade = 1;

DROP INDEX lot_job_datasets_of_job;
