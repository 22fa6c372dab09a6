"""Waiting for what PostgreSQL notifies, on a connection that does nothing else."""

import select
import socket
import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import sql

_AGAIN_SECONDS = 0.25  # between two tries to reach a server that is gone


class PostgresListener:
    """A connection that listens; one that is lost is made anew."""

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]], channel: str) -> None:
        self._connect = connect
        self._listen = sql.SQL("LISTEN {}").format(sql.Identifier(channel))
        self._ear, self._bell = socket.socketpair()
        self._ear.setblocking(False)
        self._bell.setblocking(False)
        self._connection: psycopg.Connection[Any] | None = None
        try:
            self._connection = self._connected()
        except BaseException:
            self.close()
            raise

    def wait(self, seconds: float) -> bool:
        """Whether something may have happened; also after a loss, for what was missed by it."""
        deadline = time.monotonic() + seconds
        while True:
            connection = self._connection
            if connection is None:
                if self._reconnected():
                    return True
            elif self._told(connection):
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if self._rung(left if self._connection is not None else min(left, _AGAIN_SECONDS)):
                return True

    def wake(self) -> None:
        """Ring the bell; one that is full of rings needs no more of them."""
        try:
            self._bell.send(b"!")
        except OSError:
            return

    def close(self) -> None:
        """Hear no more."""
        if self._connection is not None:
            self._connection.close()
        self._ear.close()
        self._bell.close()

    def _connected(self) -> psycopg.Connection[Any]:
        connection = self._connect()
        try:
            connection.execute(self._listen)
        except BaseException:
            connection.close()
            raise
        return connection

    def _reconnected(self) -> bool:
        try:
            self._connection = self._connected()
        except psycopg.OperationalError:
            return False
        return True

    def _told(self, connection: psycopg.Connection[Any]) -> bool:
        """Whether a notification has come; a connection that is lost is closed."""
        pg = connection.pgconn
        try:
            pg.consume_input()
        except psycopg.OperationalError:
            connection.close()
            self._connection = None
            return False
        told = False
        while pg.notifies() is not None:
            told = True
        return told

    def _rung(self, seconds: float) -> bool:
        """Wait for the server, or for the bell; whether it was the bell."""
        waiting = select.poll()
        waiting.register(self._ear, select.POLLIN)
        if self._connection is not None:
            waiting.register(self._connection.pgconn.socket, select.POLLIN)
        heard = waiting.poll(max(1, round(seconds * 1000)))
        if not any(handle == self._ear.fileno() for handle, _ in heard):
            return False
        self._ear.recv(4096)
        return True
