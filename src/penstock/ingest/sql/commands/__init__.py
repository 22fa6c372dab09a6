"""The writes of ingest where state is kept in SQL: one class each."""
