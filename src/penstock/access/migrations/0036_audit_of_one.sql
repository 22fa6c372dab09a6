-- What somebody did of one kind, among all that they did.
CREATE INDEX audit_log_by_who_and_action ON audit_log (who, action, at, id);
