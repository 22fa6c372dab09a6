"""Connections to a PostgreSQL server: how they open, fail, and listen."""

import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from penstock.db.database import Row
from penstock.errors import Away, Unavailable

_RECONNECT_SECONDS = 0.25
_OPTIONS: Final[dict[str, Any]] = {
    "autocommit": True,
    "client_encoding": "utf8",
    "fallback_application_name": "penstock",
}
# By default libpq waits for ever for a server that accepts a connection and does not answer, and a
# quarter of an hour for a server whose network is cut.
_PATIENCE: Final = {
    "connect_timeout": "10",
    "tcp_user_timeout": "30000",  # milliseconds without an acknowledgment
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
}
# Faults of the server or its disk; psycopg classifies some of them as faults of the caller.
_FAULTS: Final[tuple[type[psycopg.Error], ...]] = (
    psycopg.OperationalError,
    psycopg.errors.DataCorrupted,
    psycopg.errors.IndexCorrupted,
)
FAULTS_OF_WRITERS: Final = (*_FAULTS, psycopg.errors.ReadOnlySqlTransaction)


def connect(url: str) -> psycopg.Connection[Row]:
    """Connect, with timeouts wherever the URL sets none."""
    settings = conninfo_to_dict(url)
    patience = {name: value for name, value in _PATIENCE.items() if name not in settings}
    return psycopg.connect(url, **_OPTIONS | patience)


@contextmanager
def translated_faults(faults: tuple[type[psycopg.Error], ...] = _FAULTS) -> Iterator[None]:
    """Turn a fault that may pass into Unavailable, and the loss of the server into Away."""
    try:
        yield
    except faults as error:
        reason = next(iter(str(error).strip().splitlines()), "it gave no reason")
        raise (Away if _is_gone(error) else Unavailable)(
            f"PostgreSQL failed: {reason}; check that the server is well, then try again"
        ) from error


def _is_gone(error: psycopg.Error) -> bool:
    # An error that libpq reports itself, about a connection, has no code; errors of the server do.
    return isinstance(error, psycopg.OperationalError) and (
        error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))
    )


class PostgresListener:
    """A connection that waits for notifications, and is opened again when it is lost."""

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]], channel: str) -> None:
        self._connect = connect
        self._listen = sql.SQL("LISTEN {}").format(sql.Identifier(channel))
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._connection: psycopg.Connection[Any] | None = None
        try:
            self._connection = self._open()
        except BaseException:
            self.close()
            raise

    def wait(self, seconds: float) -> bool:
        """Wait for a notification, or for a new connection: it may have missed some before."""
        deadline = time.monotonic() + seconds
        while True:
            connection = self._connection
            if connection is None:
                if self._reconnect():
                    return True
            elif self._has_notification(connection):
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if self._is_woken(left if self._connection else min(left, _RECONNECT_SECONDS)):
                return True

    def wake(self) -> None:
        """End the wait; if the socket is full, the wait is ending already."""
        try:
            self._waker.send(b"!")
        except OSError:
            return

    def close(self) -> None:
        """Stop listening."""
        if self._connection is not None:
            self._connection.close()
        self._woken.close()
        self._waker.close()

    def _open(self) -> psycopg.Connection[Any]:
        connection = self._connect()
        try:
            connection.execute(self._listen)
        except BaseException:
            connection.close()
            raise
        return connection

    def _reconnect(self) -> bool:
        try:
            self._connection = self._open()
        except psycopg.OperationalError:
            return False
        return True

    def _has_notification(self, connection: psycopg.Connection[Any]) -> bool:
        """Take all notifications; close a connection that is lost."""
        pg = connection.pgconn
        try:
            pg.consume_input()
        except psycopg.OperationalError:
            connection.close()
            self._connection = None
            return False
        has_any = False
        while pg.notifies() is not None:
            has_any = True
        return has_any

    def _is_woken(self, seconds: float) -> bool:
        """Wait for the server or for `wake`; return whether it was `wake`."""
        waiting = select.poll()
        waiting.register(self._woken, select.POLLIN)
        if self._connection is not None:
            waiting.register(self._connection.pgconn.socket, select.POLLIN)
        ready = waiting.poll(max(1, round(seconds * 1000)))
        if not any(handle == self._woken.fileno() for handle, _ in ready):
            return False
        self._woken.recv(4096)
        return True
