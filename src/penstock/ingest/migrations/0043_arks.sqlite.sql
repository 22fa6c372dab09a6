-- What stands in the profiles of collections, which are JSON.
UPDATE arks SET storage = COALESCE((
    SELECT rtrim(json_extract(c.profile, '$.storage'), '/')
    FROM stored_objects o JOIN collections c ON c.name = o.collection
    WHERE o.ark = arks.ark ORDER BY o.version DESC LIMIT 1
), '')
WHERE storage IS NOT NULL;
-- Names of objects that are not stored yet.
UPDATE local_ids SET namespace = COALESCE((
    SELECT MIN(json_extract(c.profile, '$.namespace'))
    FROM collections c
    WHERE COALESCE(NULLIF(json_extract(c.profile, '$.owner'), ''), c.name) = local_ids.owner
), '')
WHERE namespace = '';
