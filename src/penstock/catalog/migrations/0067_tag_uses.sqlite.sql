INSERT INTO tag_uses (namespace, tag)
SELECT d.namespace, t.value FROM datasets d, json_each(d.tags) t
UNION
SELECT d.namespace, t.value FROM datasets d, json_each(d.field_tags) f, json_each(f.value) t
UNION
SELECT j.namespace, t.value FROM jobs j, json_each(j.tags) t;
