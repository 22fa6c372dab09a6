"""A gateway in front of a real server that loses what it is told to lose."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

import httpx
from msgspec import Struct

from tests.patience import HANG_SECONDS

# before: the request never gets there; after: it does, and its answer is lost; half: its answer
# breaks off. Nothing is lost of one that is kept.
Loss = Literal["before", "after", "half", "kept"] | int


class Line(Struct):
    """What is to be lost next of requests whose path ends in a word, and what came so far."""

    url: str
    losses: deque[Loss]
    word: str = ""
    seen: list[str] = []

    def lose(self, word: str, *losses: Loss) -> None:
        """Lose the next requests whose path ends so, or answer them with a status."""
        self.word = word
        self.losses.extend(losses)
        self.seen.clear()

    def next(self, method: str, path: str) -> Loss | None:
        """What is to become of a request."""
        if not path.partition("?")[0].endswith(self.word):
            return None
        self.seen.append(f"{method} {path}")
        return self.losses.popleft() if self.losses else None


@contextmanager
def lossy(server_url: str) -> Iterator[Line]:
    """A gateway for the length of a block; `url` is where it listens."""
    with httpx.Client(base_url=server_url, timeout=HANG_SECONDS, verify=False) as onward:
        line = Line("", deque(), seen=[])
        gateway = ThreadingHTTPServer(("127.0.0.1", 0), _handler(line, onward))
        gateway.daemon_threads = True
        line.url = f"http://127.0.0.1:{gateway.server_address[1]}"
        thread = threading.Thread(target=gateway.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield line
        finally:
            gateway.shutdown()
            thread.join()
            gateway.server_close()


def _handler(line: Line, onward: httpx.Client) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self) -> None:
            content = self._content()
            loss = line.next(self.command, self.path)
            if loss == "before":
                self.close_connection = True
                return
            if isinstance(loss, int):
                self._answer(httpx.Response(loss, text="{}"))
                return
            kind = {"content-type": self.headers.get("content-type", "")}
            answer = onward.request(self.command, self.path, content=content, headers=kind)
            if loss == "after":
                self.close_connection = True
                return
            self._answer(answer, is_half=loss == "half")

        do_GET = do_PUT = do_POST = do_DELETE = pass_on  # noqa: N815

        def _content(self) -> bytes:
            if self.headers.get("transfer-encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("content-length", 0)))
            pieces = []
            while size := int(self.rfile.readline(), 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)

        def _answer(self, answer: httpx.Response, *, is_half: bool = False) -> None:
            content = answer.content
            self.send_response(answer.status_code)
            for name in ("content-type", "etag"):
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.close_connection = is_half
            self.wfile.write(content[: len(content) // 2] if is_half else content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler
