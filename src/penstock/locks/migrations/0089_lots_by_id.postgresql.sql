CREATE INDEX lot_status_by_lot ON lot_status (lot COLLATE "C", dataset_id) WHERE role = 'OUTPUT';
