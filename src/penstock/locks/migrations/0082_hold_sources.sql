-- Of a hold that follows the data: the dataset whose hold it follows.
ALTER TABLE lot_holds ADD COLUMN source_id UUID;
