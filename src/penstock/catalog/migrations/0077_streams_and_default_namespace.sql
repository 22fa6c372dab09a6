-- Where the schema of a stream is kept, as its declaration states it.
CREATE TABLE stream_schemas (
    dataset_id UUID PRIMARY KEY,
    location   TEXT NOT NULL
) WITHOUT ROWID;
