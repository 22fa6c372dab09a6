"""Commands that work straight on the database, without a server."""

import getpass
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.cli.options import DatabaseFlags
from penstock.db import Database, open_database


@contextmanager
def opened(flags: DatabaseFlags, *, must_exist: bool = True) -> Iterator[Database]:
    """The database that the flags name, with its schema up to date."""
    database = open_database(flags.load().settings.database, must_exist=must_exist)
    try:
        database.migrate()
        yield database
    finally:
        database.close()


def operator() -> str:
    """Who is recorded for what is done on the command line."""
    try:
        return f"command line ({getpass.getuser()})"
    except (KeyError, OSError):
        return "command line"
