"""One PostgreSQL connection in libpq's pipeline mode.

psycopg opens the connection and loads the rows. Sending and receiving are done here, on its
`PGconn`: psycopg's own cursors cost four times the processor time for each statement, and that
is time in which a server can do nothing else.
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
    """A statement and its values; a type is PostgreSQL's number of it, or 0 for it to infer."""

    statement: Statement
    values: Sequence[bytes | None] = ()
    types: tuple[int, ...] = ()
    formats: Sequence[Format] | None = None


class Pipeline:
    """Statements go out as they come; results are read when somebody needs one.

    A statement is prepared at its first use, and again for other types of its values. Values
    travel as text, unless their format says that they are as PostgreSQL has them.

    One thread uses it at a time, but for this: while one waits for what was queued whole to land,
    another may queue more.
    """

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection
        self._pg = connection.pgconn
        self._pg.enter_pipeline_mode()
        self._rows = Transformer(connection)
        self._names = map("s{}".format, itertools.count())
        self._prepared: dict[_Key, bytes] = {}
        # What the server still has to answer; a key is that of a statement being prepared.
        self._owed: deque[_Key | None] = deque()
        self._using = threading.Lock()  # libpq, which is for one thread at a time
        self._in_step = True
        self._has_failed = False  # something that was sent since the last sync
        self._incoming, self._either = select.poll(), select.poll()
        self._incoming.register(self._pg.socket, select.POLLIN)
        self._either.register(self._pg.socket, select.POLLIN | select.POLLOUT)
        self._bell, self._button = socket.socketpair()
        self._is_rung = False
        for ready in (self._incoming, self._either):
            ready.register(self._bell, select.POLLIN)

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
        """Queue a transaction of its own, which is not begun or ended by statements.

        What is sent between two syncs is one; the server commits it at the second. That is the
        last to go out, so an error here means that nothing of it can be committed.
        """
        with self._using:
            try:
                for order in orders:
                    self.send(order)
                self._sync()
                self._pg.flush()
            finally:
                self._tell()

    def land(self) -> None:
        """Wait until the first that was queued whole is committed, or raise what undid it."""
        self._answers()

    def receive(self, count: int, *, apart: bool = False) -> list[list[Row]]:
        """Wait for all that is queued, and load the rows of the last `count` statements.

        With `apart`, outside a transaction, these statements are one of their own.
        """
        if apart:
            self._sync()
        else:
            self._pg.send_flush_request()
        results = self._answers()[-count:] if count else []
        return [self._load(result) for result in results]

    def finish(self, statement: Statement) -> None:
        """Queue the statement that ends the transaction, and wait until all is done."""
        has_failed = self._has_failed
        self.send(Order(statement))
        self._sync()
        self._answers()
        if has_failed:  # the caller knows, or should: nothing of it was committed
            raise InFailedSqlTransaction(_FAILED)

    def abandon(self, statement: Statement) -> None:
        """End the transaction with this statement, whatever went wrong, or close the connection."""
        if not self._in_step or self._pg.status != ConnStatus.OK:
            self.close()
            return
        try:
            # An error stops the server until a sync; only then can it hear the statement.
            self._sync()
            self._settle()
            self.finish(statement)
        except psycopg.Error:
            self.close()

    def is_usable(self) -> bool:
        """Whether the connection is at rest and the server has not gone away."""
        pg = self._pg
        if pg.status != ConnStatus.OK or pg.transaction_status != TransactionStatus.IDLE:
            return False
        if not self._incoming.poll(0):
            return True
        # The server said something unasked: mostly that it leaves, sometimes only a notice.
        try:
            self._sync()
            self._answers()
        except psycopg.Error:
            return False
        return True

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        self._bell.close()
        self._button.close()

    def _tell(self) -> None:
        """Wake who waits if libpq has taken in answers, or the server's end, while it sent.

        The socket is silent about what was read from it.
        """
        came = self._pg.status != ConnStatus.OK or not self._pg.is_busy()
        if came and not self._is_rung:
            self._is_rung = True
            self._button.send(b"!")

    def _sync(self) -> None:
        self._pg.pipeline_sync()
        self._owed.append(None)

    def _settle(self) -> None:
        """Read all answers, and let errors among them pass."""
        try:
            self._answers()
        except psycopg.Error:
            if not self._in_step:
                raise

    def _answers(self) -> list[PGresult]:
        """Read what is owed up to a sync; the first error of it is raised after the last answer."""
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
        """Wait for the answer to one statement or sync, sending what is not yet sent meanwhile."""
        pg = self._pg
        while True:
            with self._using:
                if not pg.is_busy():
                    return self._take()
                ready = self._either if pg.flush() else self._incoming
            ready.poll()
            with self._using:
                if self._is_rung:
                    self._is_rung = False
                    self._bell.recv(1)
                pg.consume_input()

    def _take(self) -> PGresult:
        """Take an answer that is there, whole.

        A statement's answer ends with None, a sync's does not. In a pipeline that has failed libpq
        leaves that None out if more is sent before it is asked for.
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
