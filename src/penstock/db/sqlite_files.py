"""The files of a SQLite database: whether they are still those that were opened, and fit to use.

An open file that is removed, replaced or unmounted takes writes as before, and all of them are lost
when it is closed. So whoever writes looks before it writes, and again before it answers.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import Away, Unavailable
from penstock.private_files import create_private_file, make_private, make_private_folder

_Identity = tuple[int, int]
_ENDINGS = ("", "-wal", "-shm")
_TROUBLES = {
    sqlite3.SQLITE_BUSY: "is locked by another program; try again",
    sqlite3.SQLITE_LOCKED: "is locked by another program; try again",
    sqlite3.SQLITE_FULL: "has no room left on its disk; free some, then try again",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; check that its folder exists and may be written",
    sqlite3.SQLITE_IOERR: "could not be read or written, says its disk; look at the disk and the "
    "system's log, then try again",
    sqlite3.SQLITE_CORRUPT: "is damaged; stop every penstock process, and put back a backup, as "
    "docs/operations.md says",
    sqlite3.SQLITE_NOTADB: "is not a database of SQLite any more; stop every penstock process, and "
    "put back a backup, as docs/operations.md says",
}
_TROUBLES_OF_WRITERS = {
    sqlite3.SQLITE_READONLY: "cannot be written to: its file, folder or disk is read-only, or "
    "another user's; correct that, then try again",
}


class SqliteFiles:
    """The file that a path names, and what SQLite keeps beside it."""

    def __init__(self, path: Path) -> None:
        self._names = [f"{path.absolute()}{ending}" for ending in _ENDINGS]
        self._opened: list[_Identity] = []

    def create(self) -> None:
        """Make the file, and its folder, if they are not there; only their owner may read them."""
        path = Path(self._names[0])
        make_private_folder(path.parent)
        create_private_file(path)

    def make_private(self) -> None:
        """Let only the owner read the files; to be called once they are known to be ours."""
        for name in self._names:
            make_private(Path(name))

    def remember(self) -> None:
        """What is there now is what was opened; to be called while a connection keeps all three."""
        self._opened = [_identity(name) for name in self._names]

    def check(self) -> None:
        """Raise Unavailable unless the names lead to what was opened."""
        for name, opened in zip(self._names, self._opened, strict=True):
            try:
                found = _identity(name)
            except OSError as error:
                raise self._gone(name, error.strerror or str(error)) from None
            if found != opened:
                raise self._gone(name, "another file is in its place")

    def _gone(self, name: str, reason: str) -> Away:
        return Away(
            f"the file {name} of the database was taken away ({reason}), and nothing is read or "
            "written: put back the file that was there, or mount its disk; to go on with what is "
            "there now, stop every penstock process and start again"
        )

    @contextmanager
    def troubles(self, *, writing: bool = False) -> Iterator[None]:
        """Turn what is the matter with the files, and not with a statement, into Unavailable."""
        known = _TROUBLES | _TROUBLES_OF_WRITERS if writing else _TROUBLES
        try:
            yield
        except sqlite3.DatabaseError as error:
            # An extended code has the plain one in its lowest byte; sqlite3's own errors have none.
            reason = known.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
            if reason is None:
                raise
            raise Unavailable(f"the database {self._names[0]} {reason} ({error})") from error


def _identity(name: str) -> _Identity:
    met = os.stat(name)
    return met.st_dev, met.st_ino
