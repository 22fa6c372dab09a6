-- What replays that stand have not begun waits for its turn.

INSERT INTO turn_keepers (id, name, is_paused)
SELECT r.id, 'replay ' || CAST(r.id AS TEXT), CASE WHEN r.state = 'paused' THEN 1 ELSE 0 END
FROM replays r WHERE r.state IN ('running', 'paused');
