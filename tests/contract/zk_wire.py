"""A wire to ZooKeeper that can be cut, mended, and made to lose what goes one way."""

import contextlib
import socket
import threading
from typing import Literal, Self


class Wire:
    """Passes bytes on between a client and the server at an address."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self._turn = threading.Lock()
        self._is_cut = False
        self._losing: str | None = None
        self.lost_bytes = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._listener.close()

    @property
    def address(self) -> str:
        """Where a client finds this end."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """Break what is connected, and let nothing connect."""
        with self._turn:
            self._is_cut = True
            for end in self._ends:
                _hang_up(end)
            self._ends.clear()

    def mend(self) -> None:
        """Let clients connect again, and lose nothing."""
        with self._turn:
            self._is_cut = False
            self._losing = None

    def lose(self, what: Literal["requests", "answers"]) -> None:
        """Let what goes this way vanish, while both sides believe that they are connected."""
        self._losing = what

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._join(self._listener.accept()[0])

    def _join(self, client: socket.socket) -> None:
        with self._turn:
            if self._is_cut:
                _hang_up(client)
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:
                _hang_up(client)
                return
            self._ends += [client, server]
        for source, sink, what in ((client, server, "requests"), (server, client, "answers")):
            threading.Thread(target=self._pass_on, args=(source, sink, what), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, what: str) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self._losing == what:
                    self.lost_bytes += len(data)
                else:
                    sink.sendall(data)
        _hang_up(source)
        _hang_up(sink)


def _hang_up(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
