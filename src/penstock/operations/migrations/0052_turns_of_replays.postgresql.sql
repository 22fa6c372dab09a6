INSERT INTO lot_turns (job_id, lot, keepers)
SELECT s.job_id, s.lot, '["' || string_agg(CAST(s.replay_id AS TEXT), '","') || '"]'
FROM replays r JOIN replay_steps s ON s.replay_id = r.id AND s.state IN ('pending', 'blocked')
WHERE r.state IN ('running', 'paused')
GROUP BY s.job_id, s.lot;
