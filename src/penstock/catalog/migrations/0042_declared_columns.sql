-- declared_column_set_id: the column lineage of a dataset that was last stated without a run.
ALTER TABLE datasets ADD COLUMN declared_column_set_id UUID;
