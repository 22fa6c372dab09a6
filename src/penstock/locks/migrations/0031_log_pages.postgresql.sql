-- The log is forgotten from its beginning, page by page; SQLite has its rows in this order anyway.
ALTER TABLE lot_log ADD PRIMARY KEY (id);
