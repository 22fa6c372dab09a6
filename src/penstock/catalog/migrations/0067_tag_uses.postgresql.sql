INSERT INTO tag_uses (namespace, tag)
SELECT d.namespace, t.value FROM datasets d, jsonb_array_elements_text(d.tags::jsonb) t
UNION
SELECT d.namespace, t.value
FROM datasets d, jsonb_each(d.field_tags::jsonb) f, jsonb_array_elements_text(f.value) t
UNION
SELECT j.namespace, t.value FROM jobs j, jsonb_array_elements_text(j.tags::jsonb) t;
