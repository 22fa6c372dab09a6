-- declared: facets of a dataset that were stated without a run. They hold whichever version is
-- current, until somebody says otherwise.
ALTER TABLE datasets ADD COLUMN declared TEXT NOT NULL DEFAULT '{}';
ALTER TABLE datasets ADD COLUMN declared_stamps TEXT NOT NULL DEFAULT '{}';
