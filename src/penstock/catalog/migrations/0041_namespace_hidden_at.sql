-- hidden_at: when a namespace was last deleted. What was hidden with it has the very same time.
ALTER TABLE namespaces ADD COLUMN hidden_at BIGINT NOT NULL DEFAULT 0;
UPDATE namespaces SET hidden_at = updated_at WHERE hidden = 1;
