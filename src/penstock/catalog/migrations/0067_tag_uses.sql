-- Which tags something in a namespace carries, or did once: a key for one namespace is shown those.
CREATE TABLE tag_uses (
    namespace TEXT NOT NULL,
    tag       TEXT NOT NULL,
    PRIMARY KEY (namespace, tag)
) WITHOUT ROWID;
