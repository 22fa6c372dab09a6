"""A client that writes HTTP itself, to send what no proper client would."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests.patience import HANG_SECONDS


@contextmanager
def connected(url: str) -> Iterator[socket.socket]:
    """A connection to a server."""
    address = urlsplit(url)
    assert address.hostname is not None
    with socket.create_connection((address.hostname, address.port or 0), HANG_SECONDS) as wire:
        yield wire


def everything(wire: socket.socket) -> bytes:
    """All that the server sends until it closes its side."""
    return b"".join(iter(lambda: wire.recv(65536), b""))


def status(answer: bytes) -> int:
    """The status of an answer."""
    version, code, _ = answer.split(b" ", 2)
    assert version == b"HTTP/1.1", answer
    return int(code)


def body(answer: bytes) -> bytes:
    """The body of an answer."""
    return answer.partition(b"\r\n\r\n")[2]


def is_answered(wire: socket.socket) -> bool:
    """Ask whether the server lives, and whether it answers on this connection."""
    wire.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return wire.recv(65536).startswith(b"HTTP/1.1 200 ")
