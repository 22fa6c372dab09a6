-- What stands in the profiles of collections, which are JSON.
UPDATE arks SET storage = COALESCE((
    SELECT rtrim(c.profile::json ->> 'storage', '/')
    FROM stored_objects o JOIN collections c ON c.name = o.collection
    WHERE o.ark = arks.ark ORDER BY o.version DESC LIMIT 1
), '')
WHERE storage IS NOT NULL;
-- Names of objects that are not stored yet.
UPDATE local_ids SET namespace = COALESCE((
    SELECT MIN(c.profile::json ->> 'namespace')
    FROM collections c
    WHERE COALESCE(NULLIF(c.profile::json ->> 'owner', ''), c.name) = local_ids.owner
), '')
WHERE namespace = '';
