-- Manifests that say something else than complete are few: who looks for gaps finds them here.
CREATE INDEX lot_manifests_odd ON lot_manifests (dataset_id, lot, version_id, state) WHERE state <> 'complete';
-- Those of lots that failed their checks, which are fewer.
CREATE INDEX lot_manifests_partial ON lot_manifests (dataset_id, lot, version_id) WHERE state = 'partial';
