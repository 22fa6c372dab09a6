"""What PostgreSQL does by itself after a while, done now: old rows cleared, tables counted."""

import psycopg

from bench.graph import FOLDER
from penstock.db.statements import load_statements


def vacuum(url: str) -> None:
    """Vacuum and analyse a database; SQLite needs neither.

    A queue that was filled a moment ago is one the planner knows nothing of. Left like that, some
    systems read their whole table for every job until PostgreSQL looks at it, which may take a
    minute.
    """
    if not url.startswith("postgresql:"):
        return
    statement = load_statements("postgresql", [FOLDER])["vacuum_tables"]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.sql.encode())
