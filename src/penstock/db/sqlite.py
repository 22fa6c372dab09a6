"""The database in one file: the standard library's sqlite3 in WAL mode."""

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
from penstock.db.at_once import AtOnce, Packed, pack
from penstock.db.database import Ask, Overtaken, Row, Sent, T, Write
from penstock.db.migrate import (
    Table,
    apply_migrations,
    load_migrations,
    refuse_others,
    split_script,
    take_turn,
)
from penstock.db.pool import Pool
from penstock.db.sqlite_files import SqliteFiles
from penstock.db.statements import Statement, Statements, check_shape, load_statements, row_picker
from penstock.db.turn import Turn
from penstock.errors import Invalid, Unavailable

_READERS_MAX = 8
_SETTINGS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA journal_size_limit = 67108864",
)
# Pages that every batch changes are copied back once in 64 MB of log, not once in 4. Each commit
# looks through the whole cache.
_WRITER_SETTINGS = ("PRAGMA cache_size = -16384", "PRAGMA wal_autocheckpoint = 16384")
_LISTEN_SECONDS = 0.05
_PARAMETERS_MAX = 32_766 // 2  # of one statement, as SQLite is built everywhere


class SqliteTransaction:
    """Statements on one connection, each done when its call returns."""

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
        found = self._run(statement, params).fetchall()
        return found[0] if found else None

    def rows(self, shape: type[T], statement: str, /, **params: object) -> list[T]:
        return list(starmap(shape, self._run(statement, params)))

    def fetch_many(self, asks: Sequence[Ask]) -> list[list[Row]]:
        return [self._run(name, dict(params)).fetchall() for name, params in asks]

    def execute(self, statement: str, /, **params: object) -> None:
        self._run(statement, params).close()

    def write(self, statement: str, rows: Sequence[msgspec.Struct]) -> None:
        if not rows:
            return
        found = self._statements[statement]
        check_shape(type(rows[0]), found)
        pick, room = row_picker(found), _PARAMETERS_MAX // len(found.columns)
        for first in range(0, len(rows), room):
            part = rows[first : first + room]
            count, sql = _sql_for(found, len(part))
            values = list(chain.from_iterable(map(pick, part)))
            values += [None] * (count * len(found.columns) - len(values))
            self._connection.execute(sql, values)

    def script(self, text: str) -> None:
        # executescript would commit first, and a migration must stay in one transaction.
        for sql in split_script(text):
            self._connection.execute(sql)


class SqliteSent:
    """A write that is made when somebody waits for it."""

    def __init__(
        self, make: Callable[[int, Packed], None], packed: Packed, after: int | Sent
    ) -> None:
        self._make = make
        self._packed = packed
        self._behind = after if isinstance(after, SqliteSent) else None
        self._has_landed = False
        self.epoch = (after if isinstance(after, int) else after.epoch) + 1

    def land(self) -> None:
        behind, self._behind = self._behind, None  # or each would hold all before it
        if behind is not None and not behind._has_landed:
            raise Overtaken
        self._make(self.epoch, self._packed)
        self._has_landed = True


@lru_cache(maxsize=4096)
def _sql_for(statement: Statement, rows: int) -> tuple[int, str]:
    """SQL that writes many rows at once, and how many it has room for; places left are NULL.

    One statement leaves the interpreter to other threads while it runs; one for each row would
    ask for it back after every row. Sizes are few, so that all stay prepared.
    """
    count = 1 << (rows - 1).bit_length()
    return count, statement.sql.replace(statement.row_sql, ", ".join([statement.row_sql] * count))


class SqliteDatabase:
    """One connection that writes, and as many that read as there are readers at once."""

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
        with self._files.troubles(writing=True):
            self._writer = self._open_writer()
        writing = SqliteTransaction(self._writer, self._statements)
        self._at_once = AtOnce(self._statements, self._writer.execute, writing.write)
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
            # Also switching to write-ahead logging changes the file.
            refuse_others(tx.rows(Table, "tables_of_others"), str(self._path))
            self._files.make_private()
            _use_wal(connection, self._wait_seconds)
            # From its first reading on a connection keeps the log, and whoever closes leaves it.
            tx.fetch("tables_of_others")
            self._files.remember()
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_NOTADB:
                raise
            raise Invalid(
                f"{self._path} is a file, but not a database of SQLite; name another, or one "
                "that is not there yet"
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
        # Readers share the file's pages through the system's cache, so their own is small.
        settings = ("PRAGMA cache_size = -16384", "PRAGMA query_only = ON")
        connection = self._connect(f"{self._path.absolute().as_uri()}?mode=rw", *settings)
        try:
            self._files.check()  # it may have been taken away meanwhile
        except Unavailable:
            connection.close()
            raise
        return connection

    @contextmanager
    def read(self, *, by_key: bool = False) -> Iterator[SqliteTransaction]:
        with self._files.troubles(), self._readers.connection() as connection:
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
        return SqliteSent(self._make, pack(self._statements, writes), after)

    def _make(self, epoch: int, packed: Packed) -> None:
        with self._alone():
            self._at_once.make(epoch, packed)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Have the connection that writes; what was written into lost files was not written."""
        with self._files.troubles(writing=True), self._turn:
            if self._closed:
                raise Unavailable(f"the database {self._path} was closed; open it again")
            self._files.check()
            yield
            self._files.check()

    @contextmanager
    def _writing(self) -> Iterator[SqliteTransaction]:
        with self._alone():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield SqliteTransaction(self._writer, self._statements)
                self._writer.execute("COMMIT")
            except BaseException:
                self._writer.rollback()
                raise

    @contextmanager
    def listen(self, channel: str) -> Iterator["SqliteListener"]:
        with self._files.troubles():
            connection = self._connect_reader()
        try:
            yield SqliteListener(connection, self._files.troubles)
        finally:
            connection.close()

    def migrate(self) -> list[str]:
        done = apply_migrations(self._migrations, self._writing, system_clock)
        # Migrations write statistics, which a connection reads when it is opened, or when told.
        with self._writing() as tx:
            tx.script("ANALYZE sqlite_schema")
        return done

    def close(self) -> None:
        with self._turn:
            self._closed = True
            self._writer.close()
        self._readers.close()


class SqliteListener:
    """Looks at the file's version every few milliseconds: whoever commits changes it."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        passing: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._connection = connection
        self._passing = passing
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
        with self._passing():
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        return int(version)


def _use_wal(connection: sqlite3.Connection, wait_seconds: float) -> None:
    """Switch the file to write-ahead logging, which stays with the file.

    Two programs that switch a new file at once collide, and SQLite reports that without
    waiting for busy_timeout.
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
