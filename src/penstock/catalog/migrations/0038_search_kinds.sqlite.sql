-- What kind of thing has the words is a word of the index itself: those of one kind are counted
-- without looking up each. No word of a name begins with a digit.
DROP TRIGGER search_docs_added;
DROP TRIGGER search_docs_removed;
DROP TRIGGER search_docs_changed;
DROP VIEW visible_search_docs;

CREATE VIEW visible_search_docs AS SELECT rowid, body || ' 0' || kind AS body FROM search_docs WHERE hidden = 0;
CREATE TRIGGER search_docs_added AFTER INSERT ON search_docs WHEN new.hidden = 0 BEGIN
    INSERT INTO search_words (rowid, body) VALUES (new.rowid, new.body || ' 0' || new.kind);
END;
CREATE TRIGGER search_docs_removed AFTER DELETE ON search_docs WHEN old.hidden = 0 BEGIN
    INSERT INTO search_words (search_words, rowid, body) VALUES ('delete', old.rowid, old.body || ' 0' || old.kind);
END;
CREATE TRIGGER search_docs_changed AFTER UPDATE ON search_docs BEGIN
    INSERT INTO search_words (search_words, rowid, body)
    SELECT 'delete', old.rowid, old.body || ' 0' || old.kind WHERE old.hidden = 0;
    INSERT INTO search_words (rowid, body) SELECT new.rowid, new.body || ' 0' || new.kind WHERE new.hidden = 0;
END;
INSERT INTO search_words (search_words) VALUES ('rebuild');
