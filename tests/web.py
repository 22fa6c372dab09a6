"""A real HTTP server for tests that misbehaves on request.

Each path has a script of answers; the last one repeats. An answer writes to the connection itself,
so it may lie, stall or hang up at any byte. Every connection ends after one answer. The server
keeps every request.
"""

import re
import socket
import socketserver
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Self

REASONS = {200: "OK", 206: "Partial Content", 302: "Found", 404: "Not Found", 503: "Busy"}


class Request(NamedTuple):
    """A client's request. Header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


Answer = Callable[[Request, socket.socket], None]


class Web:
    """A server on 127.0.0.1 for the length of a block."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self._scripts: dict[str, tuple[Answer, ...]] = {}
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._server = _Server(self, tls)
        self.port: int = self._server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def on(self, path: str, *answers: Answer) -> str:
        """Set the answers of a path, in order, and return its URL."""
        with self._lock:
            self._scripts[path] = answers
            self._asked[path] = 0
        return self.url + path

    def requests_to(self, path: str, method: str = "GET") -> list[Request]:
        """Return the requests to the path, in order."""
        with self._lock:
            requests = [request for request in self.requests if request.path == path]
        return [request for request in requests if request.method == method]

    def answer(self, request: Request, connection: socket.socket) -> None:
        """Send the next answer in the script of the request's path."""
        path = request.path.partition("?")[0]
        with self._lock:
            self.requests.append(request._replace(path=path))
            script = self._scripts.get(path)
            turn = self._asked[path]
            # A request for the size does not consume an answer.
            self._asked[path] += request.method != "HEAD"
        if not script:
            status(404)(request, connection)
        else:
            script[min(turn, len(script) - 1)](request, connection)


class _Server(socketserver.ThreadingTCPServer):
    # Closing waits for every answer, so that no thread outlives its test.
    daemon_threads = False
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, web: Web, tls: ssl.SSLContext | None) -> None:
        self._web = web
        self._tls = tls
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)

    def finish_request(self, request: object, client_address: object) -> None:
        assert isinstance(request, socket.socket)
        request.settimeout(30)
        try:
            connection = self._tls.wrap_socket(request, server_side=True) if self._tls else request
            with connection:
                http_request = _read(connection)
                if http_request is not None:
                    self._web.answer(http_request, connection)
        except OSError:
            return  # the client hung up, as some tests make it do


def _read(connection: socket.socket) -> Request | None:
    file = connection.makefile("rb")
    first = file.readline().decode("latin-1").split()
    if len(first) != 3:
        return None
    headers = {}
    while (line := file.readline().decode("latin-1").strip()) != "":
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = file.read(int(headers.get("content-length", "0")))
    return Request(first[0], first[1], headers, body)


def head(code: int, headers: Mapping[str, str | int]) -> bytes:
    """Return the start line and headers of an answer."""
    lines = [f"HTTP/1.1 {code} {REASONS.get(code, 'Status')}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def status(code: int, headers: Mapping[str, str | int] | None = None, body: bytes = b"") -> Answer:
    """Answer with a status alone."""

    def answer(request: Request, connection: socket.socket) -> None:
        connection.sendall(head(code, {"Content-Length": len(body), **(headers or {})}) + body)

    return answer


def redirect(to: str, code: int = 302) -> Answer:
    """Redirect to this URL."""
    return status(code, {"Location": to})


def content(
    body: bytes,
    *,
    etag: str | None = '"one"',
    modified: str | None = None,
    ranges: bool = True,
    cut_after: int | None = None,
    length: int | None = None,
    heeds_if_range: bool = True,
    headers: Mapping[str, str | int] | None = None,
) -> Answer:
    """Answer with a file. It may be cut off or announce a wrong length."""

    def answer(request: Request, connection: socket.socket) -> None:
        if request.headers.get("if-match", etag) != etag:
            connection.sendall(head(412, {"Content-Length": 0}))
            return
        first = _first_byte(request, etag or modified, heeds_if_range) if ranges else None
        part = body[first or 0 :]
        fields: dict[str, str | int] = {"Content-Length": len(part) if length is None else length}
        if etag:
            fields["ETag"] = etag
        if modified:
            fields["Last-Modified"] = modified
        if first is not None and first >= len(body):
            connection.sendall(head(416, {"Content-Length": 0}))
            return
        if first is not None:
            fields["Content-Range"] = f"bytes {first}-{len(body) - 1}/{len(body)}"
        fields |= headers or {}
        connection.sendall(head(200 if first is None else 206, fields))
        if request.method != "HEAD":
            connection.sendall(part if cut_after is None else part[:cut_after])

    return answer


def _first_byte(request: Request, mark: str | None, heeds_if_range: bool) -> int | None:
    match = re.fullmatch(r"bytes=(\d+)-", request.headers.get("range", ""))
    if match is None:
        return None
    condition = request.headers.get("if-range")
    if heeds_if_range and condition is not None and condition != mark:
        return None
    return int(match[1])


def raw(*pieces: bytes) -> Answer:
    """Send exactly these bytes and close."""
    return drip(pieces)


def drip(pieces: Iterable[bytes], wait: Callable[[], object] = lambda: None) -> Answer:
    """Send these bytes piece by piece, waiting before each."""

    def answer(request: Request, connection: socket.socket) -> None:
        for piece in pieces:
            wait()
            connection.sendall(piece)

    return answer


def hang_up(request: Request, connection: socket.socket) -> None:
    """Close the connection without an answer."""


def reset(request: Request, connection: socket.socket) -> None:
    """Reset the connection."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
