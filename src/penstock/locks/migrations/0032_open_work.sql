-- Ways to the lots that are not done, which are few, past all those that are.

-- Lots that wait or are stuck, said in the words of their index: SQLite uses it only then. And live
-- claims as theirs lists them: but for the limit, which nobody reaches, those of one job would be
-- looked for among all that it has done.
CREATE VIEW stuck_work AS SELECT w.* FROM lot_work w WHERE w.state IN ('WAITING', 'LATER', 'HELD');
CREATE VIEW running_work AS SELECT w.* FROM lot_work w WHERE w.state = 'RUNNING' ORDER BY w.lease_until LIMIT 10000000;

-- Jobs with lots that are READY, and jobs with lots that wait or are stuck, each once. From one to
-- the next leads an index that holds only such lots: jobs with nothing to do cost nothing, and who
-- asks for the first few pays for no more.
CREATE VIEW ready_jobs AS
WITH RECURSIVE found (job_id) AS (
    SELECT (SELECT w.job_id FROM lot_work w WHERE w.state = 'READY' ORDER BY w.job_id LIMIT 1)
    UNION ALL
    SELECT (SELECT w.job_id FROM lot_work w WHERE w.state = 'READY' AND w.job_id > last.job_id ORDER BY w.job_id LIMIT 1)
    FROM found last WHERE last.job_id IS NOT NULL
)
SELECT f.job_id FROM found f WHERE f.job_id IS NOT NULL;
CREATE VIEW stuck_jobs AS
WITH RECURSIVE found (job_id) AS (
    SELECT (SELECT w.job_id FROM stuck_work w ORDER BY w.job_id LIMIT 1)
    UNION ALL
    SELECT (SELECT w.job_id FROM stuck_work w WHERE w.job_id > last.job_id ORDER BY w.job_id LIMIT 1)
    FROM found last WHERE last.job_id IS NOT NULL
)
SELECT f.job_id FROM found f WHERE f.job_id IS NOT NULL;
