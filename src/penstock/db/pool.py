"""A pool of connections for readers."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from penstock.errors import Unavailable


class Closable(Protocol):
    """A connection that a pool can hold."""

    def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


class Pool(Generic[C]):
    """At most `size_max` connections, opened when needed; the last one returned is lent first."""

    def __init__(
        self,
        connect: Callable[[], C],
        is_usable: Callable[[C], bool],
        *,
        size_max: int,
        wait_seconds: float,
    ) -> None:
        self._connect = connect
        self._is_usable = is_usable
        self._size_max = size_max
        self._wait_seconds = wait_seconds
        self._free = threading.BoundedSemaphore(size_max)
        self._lock = threading.Lock()
        self._idle: list[C] = []
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[C]:
        """Lend a connection for the length of the block."""
        if not self._free.acquire(timeout=self._wait_seconds):
            raise Unavailable(
                f"all {self._size_max} connections for readers are in use, and none was returned "
                f"within {self._wait_seconds} seconds; try again when there is less load"
            )
        try:
            connection = self._acquire()
            try:
                yield connection
            finally:
                self._release(connection)
        finally:
            self._free.release()

    def close(self) -> None:
        """Close idle connections now, and lent ones when they are returned."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _acquire(self) -> C:
        while True:
            with self._lock:
                if self._closed:
                    raise Unavailable("the database was closed; open it again")
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._connect()
            if self._is_usable(connection):
                return connection
            connection.close()

    def _release(self, connection: C) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()
