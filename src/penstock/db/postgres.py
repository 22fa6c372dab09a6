"""The database on a PostgreSQL server, through psycopg 3."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from importlib.resources.abc import Traversable
from itertools import count, starmap
from typing import Any

import msgspec
import psycopg
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import Format
from psycopg.types.array import ListBinaryDumper
from psycopg.types.string import TextLoader

from penstock.clock import system_clock
from penstock.config import mask_url
from penstock.db.database import Ask, Overtaken, Row, Sent, T, Write
from penstock.db.fast.pipeline import Order, Pipeline
from penstock.db.migrate import apply_migrations, load_migrations, refuse_others, take_turn
from penstock.db.pool import Pool
from penstock.db.postgres_connection import (
    FAULTS_OF_WRITERS,
    PostgresListener,
    connect,
    translated_faults,
)
from penstock.db.statements import (
    Statement,
    Statements,
    check_selects,
    check_shape,
    expand,
    load_statements,
    row_picker,
)
from penstock.db.turn import Turn
from penstock.errors import Invalid, Unavailable

_READERS_MAX = 8
_BIGINT = 20
_FEW_ROWS = 2
_BEGIN_READ = expand("begin read", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "postgresql")
# Each statement must see the writes committed while the first one waited for its turn.
_BEGIN_WRITE = expand(
    "begin write", "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", "postgresql"
)
_COMMIT = expand("commit", "COMMIT", "postgresql")
_ROLLBACK = expand("rollback", "ROLLBACK", "postgresql")
# An array of texts, in binary.
_TEXTS = ListBinaryDumper(list, Transformer()).upgrade([""], PyFormat.BINARY)


class PostgresTransaction:
    """A transaction on one connection, whose statements are queued until a result is needed."""

    __slots__ = ("_apart", "_begin", "_pipeline", "_statements", "epoch")

    def __init__(
        self,
        pipeline: Pipeline,
        statements: Statements,
        begin: Statement | None,
        *,
        apart: bool = False,
    ) -> None:
        self._pipeline = pipeline
        self._statements = statements
        self._begin = begin
        self._apart = apart
        self.epoch = 0

    @property
    def has_begun(self) -> bool:
        """Whether a statement was sent; until then the transaction costs nothing."""
        return self._begin is None

    def _send(self, name: str, params: Mapping[str, Any]) -> None:
        self._queue(_order(self._statements[name], params))

    def _queue(self, order: Order) -> None:
        if self._begin is not None:
            self._pipeline.send(Order(self._begin))
            self._begin = None
        self._pipeline.send(order)

    def _receive(self, count: int) -> list[list[Row]]:
        return self._pipeline.receive(count, apart=self._apart)

    def fetch(self, statement: str, /, **params: object) -> list[Row]:
        self._send(statement, params)
        return self._receive(1)[0]

    def fetch_one(self, statement: str, /, **params: object) -> Row | None:
        self._send(statement, params)
        rows = self._receive(1)[0]
        return rows[0] if rows else None

    def rows(self, shape: type[T], statement: str, /, **params: object) -> list[T]:
        check_selects(shape, self._statements[statement])
        self._send(statement, params)
        return list(starmap(shape, self._receive(1)[0]))

    def fetch_many(self, asks: Sequence[Ask]) -> list[list[Row]]:
        for name, params in asks:
            self._send(name, params)
        return self._receive(len(asks))

    def execute(self, statement: str, /, **params: object) -> None:
        self._send(statement, params)

    def write(self, statement: str, rows: Sequence[msgspec.Struct]) -> None:
        if rows:
            self._queue(_order_of_rows(self._statements[statement], rows))


class PostgresSent:
    """A write that was sent to PostgreSQL."""

    __slots__ = ("_pipeline", "_turn", "epoch", "name")

    def __init__(self, pipeline: Pipeline, turn: Turn, epoch: int, name: str) -> None:
        self._pipeline = pipeline
        self._turn = turn
        self.epoch = epoch
        self.name = name

    def land(self) -> None:
        try:
            with translated_faults():
                self._pipeline.land()
        except psycopg.errors.NotNullViolation as error:
            if error.diag.table_name == "writer":
                raise Overtaken from error
            raise
        finally:
            self._turn.leave()


def _order(statement: Statement, params: Mapping[str, Any]) -> Order:
    if not statement.needs <= params.keys():
        raise statement.missing(params)
    values: list[bytes | None] = []
    types: list[int] = []
    for param in statement.params:
        value = params[param]
        if kind := statement.lists.get(param):
            value = _array(value, kind)
        values.append(_text(value))
        types.append(_BIGINT if isinstance(value, int) else 0)
    return Order(statement, values, tuple(types))


def _order_of_rows(statement: Statement, rows: Sequence[msgspec.Struct]) -> Order:
    check_shape(type(rows[0]), statement)
    if len(rows) <= _FEW_ROWS:
        values = [_text(value) for row in rows for value in row_picker(statement)(row)]
        return Order(_for_few(statement, len(rows)), values)
    if statement.column_kinds:
        columns = zip(*map(row_picker(statement), rows), strict=True)
        packed = [*map(_column, columns, statement.column_kinds)]
        return Order(statement, packed, (), _formats(statement.column_kinds))
    return Order(statement, (msgspec.json.encode(rows),), (0,))


@lru_cache(maxsize=1024)
def _for_few(statement: Statement, rows: int) -> Statement:
    """Give the statement a parameter for each value: for few rows JSON costs more than it saves."""
    width = len(statement.columns)
    numbers = [f"${number}" for number in range(1, rows * width + 1)]
    values = ", ".join([statement.row_sql] * rows) % tuple(numbers)
    source = f"(VALUES {values}) AS r({', '.join(statement.columns)})"
    return replace(
        statement,
        name=f"{statement.name} of {rows}",
        sql=statement.sql.replace(statement.rows_sql, source),
    )


def _text(value: Any) -> bytes | None:
    """Encode a value as text; a flag becomes a number, because columns store numbers."""
    if value is None:
        return None
    if isinstance(value, str):
        # libpq would silently cut the text there.
        if "\x00" in value:
            raise psycopg.DataError("PostgreSQL cannot store text with a NUL character in it")
        return value.encode()
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, float):
        return repr(value).encode()
    raise TypeError(f"{type(value).__name__} cannot be a parameter; use str, int, float or bool")


def _column(values: Sequence[Any], kind: str) -> bytes:
    """Encode one column of many rows as an array."""
    if kind != "text":
        return _array(["NULL" if value is None else value for value in values], kind).encode()
    return bytes(_TEXTS.dump(list(values)) or b"")


@lru_cache(maxsize=1024)
def _formats(kinds: tuple[str, ...]) -> tuple[Format, ...]:
    return tuple(Format.BINARY if kind == "text" else Format.TEXT for kind in kinds)


def _array(values: Sequence[Any], kind: str) -> str:
    """Encode a list as an array, as text."""
    if kind == "text":
        values = [
            "NULL" if v is None else '"' + v.replace("\\", "\\\\").replace('"', '\\"') + '"'
            for v in values
        ]
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
        self._sent = count()
        self._closed = False
        self._readers = Pool(
            self._connect_reader,
            Pipeline.is_usable,
            size_max=_READERS_MAX,
            wait_seconds=wait_seconds,
        )
        self._finders = Pool(
            self._connect_writer, Pipeline.is_usable, size_max=1, wait_seconds=wait_seconds
        )
        with translated_faults():
            self._writer = self._connect_writer()
            tx = PostgresTransaction(self._writer, self._statements, None, apart=True)
            try:
                refuse_others(tx.fetch("tables_of_others"), mask_url(url))
            except BaseException:
                self._writer.close()
                raise

    def _connect_reader(self) -> Pipeline:
        return self._connect("configure_reader")

    def _connect_writer(self) -> Pipeline:
        return self._connect("configure_writer", f"{round(self._wait_seconds * 1000)}ms")

    def _connect(self, configure: str, *values: str) -> Pipeline:
        try:
            connection = connect(self._url)
        except psycopg.ProgrammingError as error:
            raise Invalid(
                f"the database URL cannot be read: {str(error).strip()}; "
                "use postgresql://user@host:5432/name"
            ) from None
        connection.adapters.register_loader("uuid", TextLoader)
        psycopg.RawCursor(connection).execute(self._statements[configure].sql.encode(), values)
        return Pipeline(connection)

    @contextmanager
    def read(self, *, by_key: bool = False) -> Iterator[PostgresTransaction]:
        readers = self._finders if by_key else self._readers
        with translated_faults(), readers.connection() as pipeline:
            try:
                # By key, each statement is a transaction of its own: that saves a round trip.
                begin = None if by_key else _BEGIN_READ
                tx = PostgresTransaction(pipeline, self._statements, begin, apart=by_key)
                yield tx
                if begin is not None and tx.has_begun:
                    pipeline.finish(_COMMIT)
            except BaseException:
                pipeline.abandon(_ROLLBACK)
                raise

    @contextmanager
    def write(self) -> Iterator[PostgresTransaction]:
        with translated_faults(FAULTS_OF_WRITERS), self._turn:
            pipeline = self._live_writer()
            try:
                tx = PostgresTransaction(pipeline, self._statements, _BEGIN_WRITE)
                tx.epoch = take_turn(tx, self._migrations)
                yield tx
                pipeline.finish(_COMMIT)
            except BaseException:
                pipeline.abandon(_ROLLBACK)
                raise

    def send(self, writes: Sequence[Write], *, after: int | Sent) -> PostgresSent:
        if isinstance(after, PostgresSent):
            epoch, behind = after.epoch, after.name
        else:
            assert isinstance(after, int), "`after` was sent by another database"
            epoch, behind = after, ""
        name = str(next(self._sent))
        # Every fault of the rows is raised here, before the first of them is sent.
        named = self._statements
        turn = {"epoch": epoch, "behind": behind, "name": name}
        orders = [_order(named["next_epoch_after"], turn)]
        orders += [_order_of_rows(named[statement], rows) for statement, rows in writes if rows]
        is_first = self._turn.board(name, behind)
        try:
            with translated_faults():
                pipeline = self._live_writer() if is_first else self._writer
                pipeline.send_whole(orders)
        except BaseException:
            self._turn.leave()
            raise
        return PostgresSent(pipeline, self._turn, epoch + 1, name)

    def _live_writer(self) -> Pipeline:
        if self._closed:
            raise Unavailable("the database was closed; open it again")
        if not self._writer.is_usable():
            self._writer.close()
            self._writer = self._connect_writer()
        return self._writer

    @contextmanager
    def listen(self, channel: str) -> Iterator[PostgresListener]:
        with translated_faults():
            listener = PostgresListener(lambda: connect(self._url), channel)
        try:
            yield listener
        finally:
            listener.close()

    def migrate(self) -> list[str]:
        with translated_faults(FAULTS_OF_WRITERS), connect(self._url) as connection:
            migrating = _Migrating(connection, self._statements)
            return apply_migrations(self._migrations, migrating.session, system_clock)

    def close(self) -> None:
        with self._turn:
            self._closed = True
            self._writer.close()
        self._readers.close()
        self._finders.close()


class _Migrating:
    """A connection outside pipeline mode: only such a connection can run scripts."""

    def __init__(self, connection: psycopg.Connection[Row], statements: Statements) -> None:
        self._cursor = psycopg.RawCursor(connection)
        self._transaction = connection.transaction
        self._statements = statements

    @contextmanager
    def session(self) -> Iterator["_Migrating"]:
        with self._transaction():
            self.execute("lock_migrations")
            yield self

    def execute(self, statement: str, /, **params: object) -> None:
        named = self._statements[statement]
        self._cursor.execute(named.sql.encode(), [params[param] for param in named.params])

    def rows(self, shape: type[T], statement: str, /, **params: object) -> list[T]:
        self.execute(statement, **params)
        return list(starmap(shape, self._cursor.fetchall()))

    def script(self, text: str) -> None:
        self._cursor.execute(text.encode())
