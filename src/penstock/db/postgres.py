"""The database on a PostgreSQL server: psycopg 3, its pool and its pipeline mode."""

import select
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources.abc import Traversable
from itertools import starmap
from typing import Any

import msgspec
import psycopg
from psycopg.adapt import Buffer, Dumper
from psycopg.errors import PipelineAborted
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import TextLoader
from psycopg_pool import ConnectionPool

from penstock.clock import system_clock
from penstock.db.database import Ask, Row, T
from penstock.db.migrate import apply_migrations, load_migrations
from penstock.db.statements import Statements, check_shape, load_statements
from penstock.db.turn import Turn
from penstock.errors import Unavailable

_READERS_MAX = 8
_PREPARED_MAX = 1000
_JSON_OID = 114
_OPTIONS: dict[str, Any] = {
    "autocommit": True,
    "prepare_threshold": 0,
    "cursor_factory": psycopg.RawCursor,
    "client_encoding": "utf8",
    "fallback_application_name": "penstock",
}

Connection = psycopg.Connection[Row]


class _Json(bytes):
    """JSON text that is encoded already."""


class _JsonDumper(Dumper):
    oid = _JSON_OID

    def dump(self, obj: Buffer) -> Buffer:
        return obj


class _FlagDumper(Dumper):
    """A flag as 0 or 1, because that is how columns keep it."""

    oid = Int8Dumper.oid

    def dump(self, obj: bool) -> bytes:
        return b"1" if obj else b"0"


class PostgresTransaction:
    """Statements on one connection, queued in its pipeline until a result is needed."""

    __slots__ = ("_connection", "_statements", "epoch")

    def __init__(self, connection: Connection, statements: Statements, epoch: int = 0) -> None:
        self._connection = connection
        self._statements = statements
        self.epoch = epoch

    def _send(self, name: str, params: Mapping[str, object]) -> psycopg.Cursor[Row]:
        statement = self._statements[name]
        if not statement.needs <= params.keys():
            raise statement.missing(params)
        values = [params[param] for param in statement.params]
        for param, kind in statement.lists:
            values[statement.params.index(param)] = _array(params[param], kind)
        return self._connection.execute(statement.sql.encode(), values)

    def fetch(self, statement: str, /, **params: object) -> list[Row]:
        return self._send(statement, params).fetchall()

    def fetch_one(self, statement: str, /, **params: object) -> Row | None:
        return self._send(statement, params).fetchone()

    def rows(self, shape: type[T], statement: str, /, **params: object) -> list[T]:
        return list(starmap(shape, self._send(statement, params).fetchall()))

    def fetch_many(self, asks: Sequence[Ask]) -> list[list[Row]]:
        # The first fetchall receives the results of all.
        cursors = [self._send(name, params) for name, params in asks]
        return [cursor.fetchall() for cursor in cursors]

    def execute(self, statement: str, /, **params: object) -> None:
        self._send(statement, params)

    def write(self, statement: str, rows: Sequence[msgspec.Struct]) -> None:
        if not rows:
            return
        found = self._statements[statement]
        check_shape(type(rows[0]), found)
        self._connection.execute(found.sql.encode(), [_Json(msgspec.json.encode(rows))])

    def script(self, text: str) -> None:
        self._connection.execute(text.encode(), prepare=False)


def _array(values: Any, kind: str) -> str:
    """A list as PostgreSQL writes an array."""
    if kind == "text":
        quoted = [
            "NULL" if v is None else '"' + v.replace("\\", "\\\\").replace('"', '\\"') + '"'
            for v in values
        ]
        return "{" + ",".join(quoted) + "}"
    return "{" + ",".join(map(str, values)) + "}"


class PostgresDatabase:
    """One connection that writes, and a pool of those that read."""

    dialect = "postgresql"

    def __init__(self, url: str, folders: Sequence[Traversable], wait_seconds: float) -> None:
        self._url = url
        self._wait_seconds = wait_seconds
        self._statements = load_statements(self.dialect, folders)
        self._migrations = load_migrations(self.dialect, folders)
        self._turn = Turn()
        self._closed = False
        with _passing():
            self._writer = self._connect_writer()
        self._readers: ConnectionPool[Connection] = ConnectionPool(
            url,
            kwargs=_OPTIONS,
            min_size=1,
            max_size=_READERS_MAX,
            timeout=wait_seconds,
            configure=self._configure_reader,
            check=_check_alive,
            name="penstock-readers",
            open=True,
        )

    def _connect_writer(self) -> Connection:
        connection = psycopg.connect(self._url, **_OPTIONS)
        _adapt(connection)
        milliseconds = f"{round(self._wait_seconds * 1000)}ms"
        connection.execute(self._statements["configure_writer"].sql.encode(), [milliseconds])
        return connection

    def _configure_reader(self, connection: Connection) -> None:
        _adapt(connection)
        connection.execute(self._statements["configure_reader"].sql.encode())

    @contextmanager
    def read(self) -> Iterator[PostgresTransaction]:
        with _passing(), self._readers.connection() as connection:
            try:
                with connection.pipeline():
                    connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    yield PostgresTransaction(connection, self._statements)
                    connection.execute(b"COMMIT")
            finally:
                _roll_back(connection)

    @contextmanager
    def write(self) -> Iterator[PostgresTransaction]:
        with _passing(), self._turn:
            connection = self._live_writer()
            try:
                with connection.pipeline():
                    connection.execute(b"BEGIN")
                    tx = PostgresTransaction(connection, self._statements)
                    tx.epoch = tx.fetch("next_epoch")[0][0]
                    yield tx
                    # Leaving the pipeline sends this with the last writes and waits for both.
                    connection.execute(b"COMMIT")
            finally:
                _roll_back(connection)

    def _live_writer(self) -> Connection:
        if self._closed:
            raise Unavailable("the database was closed; open it again")
        try:
            _check_alive(self._writer)
        except psycopg.Error:
            self._writer.close()
            self._writer = self._connect_writer()
        return self._writer

    @contextmanager
    def _migrating(self) -> Iterator[PostgresTransaction]:
        with _passing(), self._turn:
            connection = self._live_writer()
            try:
                connection.execute(b"BEGIN")
                tx = PostgresTransaction(connection, self._statements)
                tx.fetch("lock_migrations")
                yield tx
                connection.execute(b"COMMIT")
            finally:
                _roll_back(connection)

    def migrate(self) -> list[str]:
        return apply_migrations(self._migrations, self._migrating, system_clock)

    def close(self) -> None:
        with self._turn:
            self._closed = True
            self._writer.close()
        self._readers.close()


def _adapt(connection: Connection) -> None:
    """Every int is a bigint, so that a statement is prepared once and not once per size."""
    connection.prepared_max = _PREPARED_MAX
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_dumper(bool, _FlagDumper)
    connection.adapters.register_dumper(_Json, _JsonDumper)
    connection.adapters.register_loader("uuid", TextLoader)


def _check_alive(connection: Connection) -> None:
    """Ask the server only when it has said something unasked, as it does when it goes away."""
    watch = select.poll()
    watch.register(connection.fileno(), select.POLLIN)
    if watch.poll(0):
        ConnectionPool.check_connection(connection)


def _roll_back(connection: Connection) -> None:
    """End what is still open; a connection that cannot even do that is closed."""
    try:
        connection.rollback()
    except psycopg.Error:
        connection.close()


@contextmanager
def _passing() -> Iterator[None]:
    """Show the error that came first, as Unavailable when it may be over in a while."""
    try:
        yield
    except psycopg.Error as raised:
        error: BaseException = raised
        while isinstance(error, PipelineAborted) and error.__context__ is not None:
            error = error.__context__
        if not isinstance(error, psycopg.OperationalError):
            raise error from None
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
        raise Unavailable(
            f"PostgreSQL did not do it: {reason}; check that the server is up, then try again"
        ) from error
