-- name: analyse_tables
-- Tell the planner what the tables hold, as the database would by itself after a while.
ANALYZE
