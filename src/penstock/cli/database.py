"""Database access of commands that need no server."""

import getpass
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.cli.options import DatabaseOptions
from penstock.db import Database, open_database


@contextmanager
def opened(options: DatabaseOptions, *, must_exist: bool = True) -> Iterator[Database]:
    """Open the database of the options, and migrate its schema."""
    database = open_database(options.load().settings.database, must_exist=must_exist)
    try:
        database.migrate()
        yield database
    finally:
        database.close()


def operator() -> str:
    """Return the name that the audit log shows for the command line."""
    try:
        return f"command line ({getpass.getuser()})"
    except (KeyError, OSError):
        return "command line"
