-- When live claims were last given or renewed, by the clock that did: one from far ahead is found here.
CREATE INDEX lot_work_renewed ON lot_work ((lease_until - lease_seconds * 1000000)) WHERE state = 'RUNNING';
