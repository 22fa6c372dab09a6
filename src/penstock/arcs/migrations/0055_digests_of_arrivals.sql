-- What an object held when it became part of a lot, as manifests tell it; empty if it was not read.
ALTER TABLE arrived_objects ADD COLUMN digest TEXT NOT NULL DEFAULT '';
