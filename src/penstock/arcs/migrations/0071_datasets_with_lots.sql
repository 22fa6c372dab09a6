-- Datasets that have lots, or are wired, held or watched for them.
DROP VIEW kept_datasets;
CREATE VIEW kept_datasets AS
SELECT s.dataset_id AS id FROM lot_status s
UNION ALL SELECT w.dataset_id FROM lot_job_datasets w
UNION ALL SELECT l.dataset_id FROM lot_datasets l
UNION ALL SELECT m.dataset_id FROM lot_manifests m
UNION ALL SELECT c.dataset_id FROM lot_clocks c
UNION ALL SELECT h.id FROM lot_holds h
UNION ALL SELECT a.dataset_id FROM arrivals a;
