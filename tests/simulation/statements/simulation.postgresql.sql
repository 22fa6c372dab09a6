-- name: every_search_doc
-- Differs by necessity: PostgreSQL keeps words as a tsvector.
-- All that things are found by and shown as.
SELECT id, kind, namespace, name, hidden, array_to_string(tsvector_to_array(words), ' ')
FROM search_docs;
