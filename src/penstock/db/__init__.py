"""One `Database` with two backends, SQLite and PostgreSQL, chosen by URL."""

from collections.abc import Sequence
from pathlib import Path

from penstock.db.database import Database, Transaction
from penstock.db.folders import capability_folders
from penstock.db.sqlite import SqliteDatabase
from penstock.errors import Invalid, NotFound

__all__ = ["Database", "Transaction", "open_database"]


def open_database(
    url: str,
    *,
    extra: Sequence[Path] = (),
    wait_seconds: float = 30,
    must_exist: bool = False,
) -> Database:
    """Open the database of the URL. Call `migrate()` next: opening leaves the schema as it is.

    `extra` adds folders of SQL outside the package. `wait_seconds` limits the wait for a lock of
    another program, and for a free connection. A missing file is created, unless it `must_exist`.
    A database of another program is refused.
    """
    folders = [*capability_folders(), *extra]
    scheme, separator, rest = url.partition("://")
    if separator and scheme in ("postgresql", "postgres"):
        # Imported late: psycopg is slow to load, and SQLite does not need it.
        from penstock.db.postgres import PostgresDatabase

        return PostgresDatabase(url, folders, wait_seconds)
    if separator and scheme == "sqlite":
        path = _sqlite_path(rest)
        if must_exist and not path.exists():
            raise NotFound(f"there is no database {path}; check --database or PENSTOCK_DATABASE")
        return SqliteDatabase(path, folders, wait_seconds)
    raise Invalid(
        f"{scheme[:32]!r} is not the scheme of a database URL; use sqlite:///path/to/file or "
        "postgresql://user@host/name"
    )


def _sqlite_path(rest: str) -> Path:
    """Return the file after `sqlite://`: one slash for a relative path, two for an absolute one."""
    if not rest.startswith("/") or rest == "/":
        raise Invalid(
            f"sqlite://{rest} names no file; use sqlite:///relative/path or sqlite:////absolute/path"
        )
    path = rest[1:]
    if path.startswith(":memory:"):
        raise Invalid("a database in memory is not durable; name a file: sqlite:///path/to/file")
    if "?" in path:
        raise Invalid(f"sqlite:///{path} has options after '?'; give the path of a file alone")
    return Path(path)
