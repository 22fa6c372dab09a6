-- Datasets that another capability refers to: they keep their id, so that no other takes them in.
-- That capability says which by another view in the place of this one.
CREATE VIEW kept_datasets AS SELECT d.id FROM datasets d WHERE 1 = 0;
