"""One PostgreSQL connection in libpq's pipeline mode.

psycopg opens the connection and loads the rows. This module sends and receives on its `PGconn`,
because the cursors of psycopg cost more than three times the processor time per statement, and the
processor limits a server.

Benchmark: `make bench`, "Acknowledged events per second" on PostgreSQL (bench/throughput.py). A
write of an epoch, four reads and eight writes takes 146 µs of processor time instead of 485 µs with
cursors, and three round trips (ADR 0009).
"""

import itertools
import select
import socket
import threading
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import InFailedSqlTransaction, error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult

from penstock.db.database import Row
from penstock.db.statements import Statement

_Key = tuple[str, tuple[int, ...]]
_FAILED: Final = "an earlier statement of this transaction has failed"
_OK = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)


class Order(NamedTuple):
    """A statement and its values; a type is its OID, or 0 for PostgreSQL to infer it."""

    statement: Statement
    values: Sequence[bytes | None] = ()
    types: tuple[int, ...] = ()
    formats: Sequence[Format] | None = None


class Pipeline:
    """A queue of statements that are sent at once, and whose results are read when needed.

    A statement is prepared at its first use, and again for values of other types. Values are sent
    as text, unless their format is binary.

    One thread uses a pipeline at a time, with one exception: while a thread waits in `land`,
    another one may call `send_whole`.
    """

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection
        self._pg = connection.pgconn
        self._pg.enter_pipeline_mode()
        self._rows = Transformer(connection)
        self._names = map("s{}".format, itertools.count())
        self._prepared: dict[_Key, bytes] = {}
        # The answers that the server owes; a key belongs to a statement that is being prepared.
        self._owed: deque[_Key | None] = deque()
        self._using = threading.Lock()  # libpq admits one thread at a time
        self._in_step = True
        self._has_failed = False  # a statement sent since the last sync
        self._incoming, self._either = select.poll(), select.poll()
        self._incoming.register(self._pg.socket, select.POLLIN)
        self._either.register(self._pg.socket, select.POLLIN | select.POLLOUT)
        self._woken, self._waker = socket.socketpair()
        self._is_woken = False
        for ready in (self._incoming, self._either):
            ready.register(self._woken, select.POLLIN)

    def send(self, order: Order) -> None:
        """Queue a statement."""
        key = (order.statement.name, order.types)
        name = self._prepared.get(key)
        if name is None:
            name = self._prepared[key] = next(self._names).encode()
            self._pg.send_prepare(name, order.statement.sql.encode(), order.types)
            self._owed.append(key)
        self._pg.send_query_prepared(name, order.values, order.formats)
        self._owed.append(None)

    def send_whole(self, orders: Sequence[Order]) -> None:
        """Queue a transaction of its own, without statements that begin or commit it.

        The server commits the statements between two syncs at the second sync. The sync is sent
        last, so an error in this method means that nothing can have been committed.
        """
        with self._using:
            try:
                for order in orders:
                    self.send(order)
                self._sync()
                self._pg.flush()
            finally:
                self._wake_reader()

    def land(self) -> None:
        """Wait until the oldest transaction of `send_whole` is committed, or raise its error."""
        self._answers()

    def receive(self, count: int, *, apart: bool = False) -> list[list[Row]]:
        """Wait for all queued statements, and load the rows of the last `count`.

        With `apart`, outside a transaction, these statements are a transaction of their own.
        """
        if apart:
            self._sync()
        else:
            self._pg.send_flush_request()
        results = self._answers()[-count:] if count else []
        return [self._load(result) for result in results]

    def finish(self, statement: Statement) -> None:
        """Queue the statement that ends the transaction, and wait for all answers."""
        has_failed = self._has_failed
        self.send(Order(statement))
        self._sync()
        self._answers()
        if has_failed:  # the caller may have ignored the error: nothing was committed
            raise InFailedSqlTransaction(_FAILED)

    def abandon(self, statement: Statement) -> None:
        """End the transaction with this statement after any error, or close the connection."""
        if not self._in_step or self._pg.status != ConnStatus.OK:
            self.close()
            return
        try:
            # After an error the server skips every statement until the next sync.
            self._sync()
            self._skip_answers()
            self.finish(statement)
        except psycopg.Error:
            self.close()

    def is_usable(self) -> bool:
        """Check that the connection is idle, and that the server has not gone away."""
        pg = self._pg
        if pg.status != ConnStatus.OK or pg.transaction_status != TransactionStatus.IDLE:
            return False
        if not self._incoming.poll(0):
            return True
        # The server has sent an unasked message: mostly its shutdown, sometimes only a notice.
        try:
            self._sync()
            self._answers()
        except psycopg.Error:
            return False
        return True

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        self._woken.close()
        self._waker.close()

    def _wake_reader(self) -> None:
        """Wake the thread that reads, if libpq has read answers, or the end, while it sent.

        The socket does not report data that libpq has already read from it.
        """
        has_answer = self._pg.status != ConnStatus.OK or not self._pg.is_busy()
        if has_answer and not self._is_woken:
            self._is_woken = True
            self._waker.send(b"!")

    def _sync(self) -> None:
        self._pg.pipeline_sync()
        self._owed.append(None)

    def _skip_answers(self) -> None:
        """Read all answers, and ignore the errors among them."""
        try:
            self._answers()
        except psycopg.Error:
            if not self._in_step:
                raise

    def _answers(self) -> list[PGresult]:
        """Read the owed answers up to a sync; raise the first error after the last answer."""
        self._in_step = False
        results = []
        failed: psycopg.Error | None = None
        while self._owed:
            result = self._answer()
            prepared = self._owed.popleft()
            if result.status in _OK:
                if prepared is None:
                    results.append(result)
            elif result.status == ExecStatus.PIPELINE_SYNC:
                self._has_failed = False
                break
            else:
                if prepared is not None:
                    self._prepared.pop(prepared, None)
                self._has_failed = True
                failed = failed or self._error(result)
        self._in_step = True
        if failed is not None:
            raise failed
        return results

    def _answer(self) -> PGresult:
        """Wait for the answer to one statement or sync, and go on sending meanwhile."""
        pg = self._pg
        while True:
            with self._using:
                if not pg.is_busy():
                    return self._next_result()
                ready = self._either if pg.flush() else self._incoming
            ready.poll()
            with self._using:
                if self._is_woken:
                    self._is_woken = False
                    self._woken.recv(1)
                pg.consume_input()

    def _next_result(self) -> PGresult:
        """Take the next answer from libpq, with the None that ends it.

        The answer to a statement ends with None, the answer to a sync does not. In a pipeline that
        has failed, libpq leaves that None out if more is sent before it is taken.
        """
        result = self._pg.get_result()
        if result is None:
            raise psycopg.OperationalError("the connection was lost")
        if result.status != ExecStatus.PIPELINE_SYNC:
            self._pg.get_result()
        return result

    def _error(self, result: PGresult) -> psycopg.Error:
        if result.status == ExecStatus.PIPELINE_ABORTED:
            return InFailedSqlTransaction(_FAILED)
        error = error_from_result(result)
        if self._pg.status != ConnStatus.OK and not isinstance(error, psycopg.OperationalError):
            return psycopg.OperationalError(str(error))
        return error

    def _load(self, result: PGresult) -> list[Row]:
        self._rows.set_pgresult(result)
        return self._rows.load_rows(0, result.ntuples, tuple)
