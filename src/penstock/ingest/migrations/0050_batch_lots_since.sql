-- A batch is a lot since its first report; later ones used to move that time.
UPDATE batch_lots SET at = COALESCE(
    (SELECT MIN(m.at) FROM lot_manifests m
     WHERE m.dataset_id = batch_lots.dataset_id AND m.lot = batch_lots.lot), at)
WHERE lot = batch_id AND report > 1;
