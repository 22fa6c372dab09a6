-- name: column_versions
-- Find the version of each dataset whose columns count: the current one, else the newest.
SELECT d.id, d.namespace, d.name, d.observed, d.declared_column_set_id, d.declared_stamps,
       CASE WHEN d.declared_column_set_id IS NOT NULL THEN v.stamps END,
       CASE WHEN d.declared_column_set_id IS NOT NULL THEN (
           SELECT f.stamps FROM facet_sets f WHERE f.id = v.inherited_set_id) END,
       v.id, v.fields, v.column_set_id
FROM {each ids uuid AS k}
JOIN datasets d ON d.id = k.value
LEFT JOIN dataset_versions v ON v.id = COALESCE(d.current_version_id, d.latest_version_id)
WHERE NOT (d.hidden = 1 AND d.hidden_at <= :at AND d.id <> :root)

-- name: column_versions_as_of
-- Find the version of each dataset that was current at a time, else the newest begun by then.
SELECT d.id, d.namespace, d.name, d.observed, d.declared_column_set_id, d.declared_stamps,
       CASE WHEN d.declared_column_set_id IS NOT NULL THEN v.stamps END,
       CASE WHEN d.declared_column_set_id IS NOT NULL THEN (
           SELECT f.stamps FROM facet_sets f WHERE f.id = v.inherited_set_id) END,
       v.id, v.fields, v.column_set_id
FROM {each ids uuid AS k}
JOIN datasets d ON d.id = k.value
LEFT JOIN dataset_versions v ON v.id = COALESCE(
    (SELECT w.id
     FROM dataset_versions w
     WHERE w.dataset_id = k.value AND w.published_at <= :at
     ORDER BY w.published_at DESC, w.id DESC
     LIMIT 1),
    (SELECT w.id
     FROM dataset_versions w
     WHERE w.dataset_id = k.value AND w.created_at <= :at
     ORDER BY w.number DESC
     LIMIT 1)
)
WHERE NOT (d.hidden = 1 AND d.hidden_at <= :at AND d.id <> :root)

-- name: column_inputs
-- Find the inputs of these fields, by their sets of column lineage.
SELECT c.dataset_id, c.field, c.input_dataset_id, c.input_field, c.description, c.type, c.indirect
FROM {each sets uuid AS k}
JOIN column_edges c ON c.set_id = k.value
WHERE c.field IN (SELECT f.value FROM {each fields text AS f})

-- name: column_outputs
-- Find the fields that are, or once were, made from these fields of these datasets.
SELECT c.input_dataset_id, c.input_field, c.dataset_id, c.field, c.set_id
FROM {each ids uuid AS k}
JOIN column_edges c ON c.input_dataset_id = k.value
WHERE c.input_field IN (SELECT f.value FROM {each fields text AS f})

-- name: column_fields
-- List the fields of these sets of column lineage.
SELECT DISTINCT c.dataset_id, c.field
FROM {each sets uuid AS k}
JOIN column_edges c ON c.set_id = k.value
WHERE c.field <> ''

-- name: column_datasets_known
-- Find the datasets that are in the catalog, deleted or not.
SELECT d.id FROM {each ids uuid AS k} JOIN datasets d ON d.id = k.value

-- name: column_facets
-- Find the facets of these versions, and those of their datasets that were stated without a run.
SELECT v.facets, COALESCE(f.facets, '{}'), d.declared
FROM {each ids uuid AS k}
JOIN dataset_versions v ON v.id = k.value
JOIN datasets d ON d.id = v.dataset_id
LEFT JOIN facet_sets f ON f.id = v.inherited_set_id
