-- Every write makes a new version of the one row. While the page has little room for more, who
-- looks for the row also clears away the old ones; else up to two hundred are walked through first.
ALTER TABLE writer SET (fillfactor = 10);
