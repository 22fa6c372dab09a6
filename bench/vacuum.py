"""Background work of PostgreSQL, done at once.

The log gets its full size, old rows are removed, tables are analyzed.
"""

import psycopg

from bench.graph import FOLDER
from penstock.db.statements import load_statements

LOG_MEGABYTES = 1024


def fill_log(url: str) -> None:
    """Fill a new server's log to its full size, so that segments are reused from then on.

    Until then each segment is first filled with zeros and flushed by a writer: a stall for every 16
    MB, which affects the systems that write most. A server that has run for a while keeps as much
    of its log as `min_wal_size` says.
    """
    found = load_statements("postgresql", [FOLDER])
    with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        connection.execute(found["fill_log"].sql.encode(), [LOG_MEGABYTES])
        connection.execute(found["let_log_be_reused"].sql.encode())


def vacuum(url: str) -> None:
    """Vacuum and analyze a database; SQLite needs neither.

    The planner has no statistics of a queue that was just filled. Some systems then scan their
    whole table for every job until autovacuum runs, which may take a minute.
    """
    if not url.startswith("postgresql:"):
        return
    statement = load_statements("postgresql", [FOLDER])["vacuum_tables"]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.sql.encode())
