-- indirect = 1: the field depends on the input field, but is not made from its value. An empty field
-- stands for every field of the dataset.
ALTER TABLE column_edges ADD COLUMN indirect BIGINT NOT NULL DEFAULT 0 CHECK (indirect IN (0, 1));
