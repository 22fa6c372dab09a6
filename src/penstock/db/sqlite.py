"""The database in one file: the standard library's sqlite3 in WAL mode."""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from importlib.resources.abc import Traversable
from itertools import chain, starmap
from pathlib import Path
from typing import Any

import msgspec

from penstock.clock import system_clock
from penstock.db.database import Ask, Overtaken, Row, Sent, T, Write
from penstock.db.fast.one_statement import OneStatementWriter, Packed, pack
from penstock.db.migrate import (
    apply_migrations,
    load_migrations,
    refuse_others,
    split_script,
    take_turn,
)
from penstock.db.pool import Pool
from penstock.db.statements import (
    Statement,
    Statements,
    check_selects,
    check_shape,
    load_statements,
    row_picker,
)
from penstock.db.turn import Turn
from penstock.errors import Away, Invalid, Unavailable
from penstock.private_files import create_private_file, make_private, make_private_folder

_READERS_MAX = 8
_SETTINGS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA journal_size_limit = 67108864",
)
# Copy pages that every batch changes back once in 64 MB of log, not once in 4 MB. The cache is
# small because each commit scans the whole of it.
_WRITER_SETTINGS = ("PRAGMA cache_size = -16384", "PRAGMA wal_autocheckpoint = 16384")
_LISTEN_SECONDS = 0.05
_PARAMETERS_MAX = 32_766 // 2  # half of the limit: batches are rounded up to a power of two
_Identity = tuple[int, int]
_ENDINGS = ("", "-wal", "-shm")
_FAULTS = {
    sqlite3.SQLITE_BUSY: "is locked by another program; try again",
    sqlite3.SQLITE_LOCKED: "is locked by another program; try again",
    sqlite3.SQLITE_FULL: "has no space left on its disk; free some, then try again",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; check that its folder exists and may be written",
    sqlite3.SQLITE_IOERR: "could not be read or written because of a disk error; check the disk "
    "and the system's log, then try again",
    sqlite3.SQLITE_CORRUPT: "is damaged; stop every penstock process, and restore a backup as in "
    "docs/operations.md",
    sqlite3.SQLITE_NOTADB: "is not a database of SQLite any more; stop every penstock process, and "
    "restore a backup as in docs/operations.md",
}
_FAULTS_OF_WRITERS = {
    sqlite3.SQLITE_READONLY: "cannot be written to: its file, folder or disk is read-only, or "
    "owned by another user; correct that, then try again",
}


class SqliteTransaction:
    """A transaction on one connection; each statement is done when its call returns."""

    __slots__ = ("_connection", "_statements", "epoch")

    def __init__(
        self, connection: sqlite3.Connection, statements: Statements, epoch: int = 0
    ) -> None:
        self._connection = connection
        self._statements = statements
        self.epoch = epoch

    def _run(self, name: str, params: dict[str, Any]) -> sqlite3.Cursor:
        statement = self._statements[name]
        if not statement.needs <= params.keys():
            raise statement.missing(params)
        for param in statement.lists:
            params[param] = msgspec.json.encode(params[param]).decode()
        return self._connection.execute(statement.sql, params)

    def fetch(self, statement: str, /, **params: object) -> list[Row]:
        return self._run(statement, params).fetchall()

    def fetch_one(self, statement: str, /, **params: object) -> Row | None:
        rows = self._run(statement, params).fetchall()
        return rows[0] if rows else None

    def rows(self, shape: type[T], statement: str, /, **params: object) -> list[T]:
        check_selects(shape, self._statements[statement])
        return list(starmap(shape, self._run(statement, params)))

    def fetch_many(self, asks: Sequence[Ask]) -> list[list[Row]]:
        return [self._run(name, dict(params)).fetchall() for name, params in asks]

    def execute(self, statement: str, /, **params: object) -> None:
        self._run(statement, params).close()

    def write(self, statement: str, rows: Sequence[msgspec.Struct]) -> None:
        if not rows:
            return
        named = self._statements[statement]
        check_shape(type(rows[0]), named)
        pick, rows_max = row_picker(named), _PARAMETERS_MAX // len(named.columns)
        for first in range(0, len(rows), rows_max):
            part = rows[first : first + rows_max]
            count, sql = _sql_for(named, len(part))
            values = list(chain.from_iterable(map(pick, part)))
            values += [None] * (count * len(named.columns) - len(values))
            self._connection.execute(sql, values)

    def script(self, text: str) -> None:
        # executescript would commit first, but a migration is one transaction.
        for sql in split_script(text):
            self._connection.execute(sql)


class SqliteSent:
    """A write that is made in `land`."""

    def __init__(
        self, write: Callable[[int, Packed], None], packed: Packed, after: int | Sent
    ) -> None:
        self._write = write
        self._packed = packed
        self._behind = after if isinstance(after, SqliteSent) else None
        self._has_landed = False
        self.epoch = (after if isinstance(after, int) else after.epoch) + 1

    def land(self) -> None:
        behind, self._behind = self._behind, None  # or each write would keep all before it
        if behind is not None and not behind._has_landed:
            raise Overtaken
        self._write(self.epoch, self._packed)
        self._has_landed = True


@lru_cache(maxsize=4096)
def _sql_for(statement: Statement, rows: int) -> tuple[int, str]:
    """Return SQL for at least this many rows, and its number of rows; unused rows are NULL.

    One statement for many rows releases the interpreter once; a statement for each row would take
    it back after every row. Powers of two give few statements, and all of them stay prepared.
    """
    count = 1 << (rows - 1).bit_length()
    return count, statement.sql.replace(statement.row_sql, ", ".join([statement.row_sql] * count))


class SqliteDatabase:
    """One connection that writes, and one for each reader at a time."""

    dialect = "sqlite"

    def __init__(self, path: Path, folders: Sequence[Traversable], wait_seconds: float) -> None:
        self._path = path
        self._files = SqliteFiles(path)
        self._wait_seconds = wait_seconds
        self._statements = load_statements(self.dialect, folders)
        self._migrations = load_migrations(self.dialect, folders)
        self._turn = Turn()
        self._closed = False
        try:
            self._files.create()
        except OSError as error:
            raise Unavailable(f"the database {path} cannot be opened: {error}") from error
        with self._files.translated_faults(writing=True):
            self._writer = self._open_writer()
        writing = SqliteTransaction(self._writer, self._statements)
        self._sent = OneStatementWriter(self._statements, self._writer.execute, writing.write)
        self._readers = Pool(
            self._connect_reader,
            lambda _: True,
            size_max=_READERS_MAX,
            wait_seconds=wait_seconds,
        )

    def _open_writer(self) -> sqlite3.Connection:
        try:
            connection = self._connect(str(self._path.absolute()), *_WRITER_SETTINGS)
            tx = SqliteTransaction(connection, self._statements)
            # First: the switch to write-ahead logging changes the file.
            refuse_others(tx.fetch("tables_of_others"), str(self._path))
            self._files.make_private()
            _use_wal(connection, self._wait_seconds)
            # After its first read a connection keeps the log open, so others do not delete it.
            tx.fetch("tables_of_others")
            self._files.remember()
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_NOTADB:
                raise
            raise Invalid(
                f"{self._path} is a file, but not a database of SQLite; name another file, or one "
                "that does not exist yet"
            ) from error
        return connection

    def _connect(self, name: str, *settings: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            name,
            uri=name.startswith("file:"),
            timeout=self._wait_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
        for setting in (*_SETTINGS, *settings):
            connection.execute(setting)
        return connection

    def _connect_reader(self) -> sqlite3.Connection:
        self._files.check()
        # Readers share the cache of the operating system, so their own is small.
        settings = ("PRAGMA cache_size = -16384", "PRAGMA query_only = ON")
        connection = self._connect(f"{self._path.absolute().as_uri()}?mode=rw", *settings)
        try:
            self._files.check()  # the file may have been removed meanwhile
        except Unavailable:
            connection.close()
            raise
        return connection

    @contextmanager
    def read(self, *, by_key: bool = False) -> Iterator[SqliteTransaction]:
        with self._files.translated_faults(), self._readers.connection() as connection:
            self._files.check()
            connection.execute("BEGIN")
            try:
                yield SqliteTransaction(connection, self._statements)
            finally:
                connection.rollback()

    @contextmanager
    def write(self) -> Iterator[SqliteTransaction]:
        with self._writing() as tx:
            tx.epoch = take_turn(tx, self._migrations)
            yield tx

    def send(self, writes: Sequence[Write], *, after: int | Sent) -> "SqliteSent":
        return SqliteSent(self._write_sent, pack(self._statements, writes), after)

    def _write_sent(self, epoch: int, packed: Packed) -> None:
        with self._exclusive():
            self._sent.write(epoch, packed)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Take the connection that writes; fail if its files are gone before or after the write."""
        with self._files.translated_faults(writing=True), self._turn:
            if self._closed:
                raise Unavailable(f"the database {self._path} was closed; open it again")
            self._files.check()
            yield
            self._files.check()

    @contextmanager
    def _writing(self) -> Iterator[SqliteTransaction]:
        with self._exclusive():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield SqliteTransaction(self._writer, self._statements)
                self._writer.execute("COMMIT")
            except BaseException:
                self._writer.rollback()
                raise

    @contextmanager
    def listen(self, channel: str) -> Iterator["SqliteListener"]:
        with self._files.translated_faults():
            connection = self._connect_reader()
        try:
            yield SqliteListener(connection, self._files.translated_faults)
        finally:
            connection.close()

    def migrate(self) -> list[str]:
        done = apply_migrations(self._migrations, self._writing, system_clock)
        # Migrations write statistics. A connection reads them when it opens, or on this command.
        with self._writing() as tx:
            tx.script("ANALYZE sqlite_schema")
        return done

    def close(self) -> None:
        with self._turn:
            self._closed = True
            self._writer.close()
        self._readers.close()


class SqliteListener:
    """A listener that polls the version of the file, which every commit changes."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        translated_faults: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._connection = connection
        self._translated_faults = translated_faults
        self._woken = threading.Event()
        self._seen = self._version()

    def wait(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while True:
            version = self._version()
            changed, self._seen = version != self._seen, version
            left = deadline - time.monotonic()
            if changed or left <= 0:
                return changed
            if self._woken.wait(min(left, _LISTEN_SECONDS)):
                self._woken.clear()
                return True

    def wake(self) -> None:
        self._woken.set()

    def _version(self) -> int:
        with self._translated_faults():
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        return int(version)


class SqliteFiles:
    """The files of a database: the named one, its log and its shared memory.

    An open file that is removed, replaced or unmounted takes writes as before, and loses them all
    when it is closed. So a writer checks the files before it writes, and again before it answers.
    """

    def __init__(self, path: Path) -> None:
        self._names = [f"{path.absolute()}{ending}" for ending in _ENDINGS]
        self._opened: list[_Identity] = []

    def create(self) -> None:
        """Create the file and its folder if they are missing, readable by their owner alone."""
        path = Path(self._names[0])
        make_private_folder(path.parent)
        create_private_file(path)

    def make_private(self) -> None:
        """Let only the owner read the files; call it when they are known to be ours."""
        for name in self._names:
            make_private(Path(name))

    def remember(self) -> None:
        """Record the files that were opened; call it while a connection keeps all three."""
        self._opened = [_identity(name) for name in self._names]

    def check(self) -> None:
        """Raise Away unless the names lead to the files that were opened."""
        for name, opened in zip(self._names, self._opened, strict=True):
            try:
                identity = _identity(name)
            except OSError as error:
                raise self._gone(name, error.strerror or str(error)) from None
            if identity != opened:
                raise self._gone(name, "another file is in its place")

    def _gone(self, name: str, reason: str) -> Away:
        return Away(
            f"the file {name} of the database was removed ({reason}), and nothing is read or "
            "written: put back the former file, or mount its disk; to go on with the file that is "
            "there now, stop every penstock process and start again"
        )

    @contextmanager
    def translated_faults(self, *, writing: bool = False) -> Iterator[None]:
        """Turn a fault of the files, not of a statement, into Unavailable."""
        reasons = _FAULTS | _FAULTS_OF_WRITERS if writing else _FAULTS
        try:
            yield
        except sqlite3.DatabaseError as error:
            # The lowest byte of an extended code is the plain code; errors of sqlite3 have none.
            reason = reasons.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
            if reason is None:
                raise
            raise Unavailable(f"the database {self._names[0]} {reason} ({error})") from error


def _identity(name: str) -> _Identity:
    status = os.stat(name)
    return status.st_dev, status.st_ino


def _use_wal(connection: sqlite3.Connection, wait_seconds: float) -> None:
    """Switch the file to write-ahead logging for good.

    Two programs that switch a new file at the same time collide, and SQLite reports that at once
    in spite of busy_timeout.
    """
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
            continue
        if mode != "wal":
            raise Unavailable(f"the database's file system cannot do write-ahead logging ({mode})")
        return
