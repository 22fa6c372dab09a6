"""Reaching a PostgreSQL server: how long to wait for it, and what may be over in a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from penstock.db.database import Row
from penstock.errors import Away, Unavailable

_OPTIONS: Final[dict[str, Any]] = {
    "autocommit": True,
    "client_encoding": "utf8",
    "fallback_application_name": "penstock",
}
# Left alone, one waits for ever for a server that takes a connection and says nothing, and a
# quarter of an hour for one whose network is cut.
_PATIENCE: Final = {
    "connect_timeout": "10",
    "tcp_user_timeout": "30000",  # milliseconds without an answer to what was sent
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
}
# What is the matter with the server or its disk, though psycopg takes some of it for our fault.
_TROUBLES: Final[tuple[type[psycopg.Error], ...]] = (
    psycopg.OperationalError,
    psycopg.errors.DataCorrupted,
    psycopg.errors.IndexCorrupted,
)
TROUBLES_OF_WRITERS: Final = (*_TROUBLES, psycopg.errors.ReadOnlySqlTransaction)


def connect(url: str) -> psycopg.Connection[Row]:
    """A connection that does not wait for ever; what the URL says of that itself holds."""
    said = conninfo_to_dict(url)
    patience = {name: value for name, value in _PATIENCE.items() if name not in said}
    return psycopg.connect(url, **_OPTIONS | patience)


@contextmanager
def passing(troubles: tuple[type[psycopg.Error], ...] = _TROUBLES) -> Iterator[None]:
    """Turn what may be over in a while into Unavailable, and a server that is gone into Away."""
    try:
        yield
    except troubles as error:
        reason = next(iter(str(error).strip().splitlines()), "it gave no reason")
        raise (Away if _is_gone(error) else Unavailable)(
            f"PostgreSQL did not do it: {reason}; check that the server is well, then try again"
        ) from error


def _is_gone(error: psycopg.Error) -> bool:
    """Whether the server cannot be reached, has gone, or is on its way down or up."""
    # What libpq says by itself, of a connection, has no code; the server's own words have one.
    return isinstance(error, psycopg.OperationalError) and (
        error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))
    )
