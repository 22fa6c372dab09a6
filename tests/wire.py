"""A TCP proxy to a real server that can be cut, or fall silent, and be restored."""

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator

_BUFFER = 65536


class Wire:
    """A proxy that forwards every byte until a test breaks it."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._changing = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._is_silent = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._own = self._listener.getsockname()
        self.address = f"127.0.0.1:{self._own[1]}"
        self.met = threading.Event()  # a client has connected since the last change
        self._listen()

    def cut(self) -> None:
        """Break every connection and refuse new ones."""
        with self._changing:
            _end(self._listener)
            self._break_all()
        self.met.clear()

    def stall(self) -> None:
        """Accept connections and data, old and new, and answer nothing."""
        self._is_silent.set()
        self.met.clear()

    def mend(self) -> None:
        """Forward again. Break the silent connections, as they have lost data."""
        with self._changing:
            self._is_silent.clear()
            self._break_all()
            if self._listener.fileno() < 0:
                self._listener = socket.create_server(self._own, backlog=64)
                self._listen()

    def close(self) -> None:
        """Close the proxy."""
        self.cut()

    def _listen(self) -> None:
        threading.Thread(target=self._take, args=(self._listener,), daemon=True).start()

    def _take(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            self.met.set()
            with self._changing:
                try:
                    far = socket.create_connection(self._target)
                except OSError:
                    near.close()
                    continue
                self._pairs.append((near, far))
            threading.Thread(target=self._pass_on, args=(near, far), daemon=True).start()

    def _pass_on(self, near: socket.socket, far: socket.socket) -> None:
        with selectors.DefaultSelector() as ready, contextlib.suppress(OSError, ValueError):
            ready.register(near, selectors.EVENT_READ, far)
            ready.register(far, selectors.EVENT_READ, near)
            while True:
                for key, _ in ready.select():
                    assert isinstance(key.fileobj, socket.socket)
                    data = key.fileobj.recv(_BUFFER)
                    if not data:
                        return _end(near, far)
                    if self._is_silent.is_set():
                        self.met.set()
                    else:
                        key.data.sendall(data)
        _end(near, far)

    def _break_all(self) -> None:
        for pair in self._pairs:
            _end(*pair)
        self._pairs.clear()


def _end(*sockets: socket.socket) -> None:
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()


@contextlib.contextmanager
def wired(target: str) -> Iterator[Wire]:
    """Run a proxy for the length of a block."""
    wire = Wire(target)
    try:
        yield wire
    finally:
        wire.close()
