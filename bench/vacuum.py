"""What PostgreSQL does by itself after a while, done now.

Its log has its full size, old rows are cleared, tables are counted.
"""

import psycopg

from bench.graph import FOLDER
from penstock.db.statements import load_statements

LOG_MEGABYTES = 1024


def fill_log(url: str) -> None:
    """Bring a new server's log to its full size, so that it is written over from now on.

    Until then each segment is first filled with zeros and flushed, by whoever writes: a stall for
    every 16 MB, which strikes those most who write most. A server that has run for a while keeps
    as much of its log as `min_wal_size` says.
    """
    found = load_statements("postgresql", [FOLDER])
    with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        connection.execute(found["fill_log"].sql.encode(), [LOG_MEGABYTES])
        connection.execute(found["let_log_be_reused"].sql.encode())


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
