-- A key for one namespace is shown the sources that its datasets are in: each is looked up here.
CREATE INDEX datasets_by_source ON datasets (source_name, namespace);
