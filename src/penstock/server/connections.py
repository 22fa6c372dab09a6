"""Connections of one server and their limits, and the file descriptors of the process."""

import asyncio
import logging
import math
import os
import resource
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

import httptools
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from penstock.errors import Busy, Malformed, PenstockError, Unavailable
from penstock.server.errors import HeadTooLarge, TooSlow, refusal
from penstock.server.responses import Header, JoiningTransport, messages
from penstock.telemetry import logs

# For the database, objects, uploads and calls to other servers.
RESERVED = 256
# A share of the limit; above it, a line is logged every minute.
_NEAR = 0.9
_REPORT_SECONDS = 60
_LOOK_SECONDS = 5
_OPEN = Path("/dev/fd")

_log = logging.getLogger(__name__)


def raise_descriptor_limit() -> None:
    """Raise the descriptor limit of this process to the maximum."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # a sandbox may forbid it
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def descriptor_limit() -> int | None:
    """Return the descriptor limit of this process; None is no limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if limit == resource.RLIM_INFINITY else limit


def connections_possible(wanted: int) -> int:
    """Return the wanted number of connections, or fewer if the descriptors do not suffice."""
    limit = descriptor_limit()
    if limit is None:
        return wanted
    possible = max(limit // 4, limit - RESERVED)
    if possible < wanted:
        _log.warning(
            "the limit of %d open files allows %d connections, fewer than connections_max=%d; "
            "raise it with `ulimit -n` or LimitNOFILE",
            limit,
            possible,
            wanted,
        )
    return min(possible, wanted)


class DescriptorWatch:
    """Logs a line when descriptors are nearly used up."""

    def __init__(self) -> None:
        self._next_look = 0.0
        self._next_line = 0.0

    def check(self, now: float) -> None:
        """Count the open descriptors every few seconds."""
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_SECONDS
        limit = descriptor_limit()
        if limit is None or now < self._next_line:
            return
        used = len(os.listdir(_OPEN))
        if used >= limit * _NEAR:
            self._next_line = now + _REPORT_SECONDS
            _log.warning(
                "descriptors are nearly used up: used=%d limit=%d; raise the limit with "
                "`ulimit -n` or LimitNOFILE, or lower connections_max",
                used,
                limit,
            )


# Most proxies and clients close an idle connection after a minute; this is longer.
KEEP_ALIVE_SECONDS = 75
# A client that is refused may still be sending. A connection that is closed while bytes arrive is
# reset, and the client may lose the answer: the rest is read and dropped for this long.
LINGER_SECONDS = 30
LINGER_SILENCE_SECONDS = 5
# Requests that one client may send ahead of their answers.
PIPELINE_MAX = 64
REPORT_SECONDS = 10

_NOT_HTTP = (
    "the request is not HTTP as it is spoken here: its method, its headers or its chunks cannot be "
    "read, or its URL is too long"
)
_NEVER = math.inf


class ConnectionLimits(NamedTuple):
    """The limits of one server for its clients."""

    header_bytes_max: int
    header_count_max: int
    first_request_seconds: int
    header_seconds: int
    silence_seconds: int
    connections_max: int
    connections_per_address_max: int


class RefusalLog:
    """The log of refused clients: the first line of each reason, then a count."""

    def __init__(self) -> None:
        self._left_out: Counter[str] = Counter()
        self._next_line: dict[str, float] = {}

    def add(self, reason: str, client: str, now: float) -> None:
        """Log that a client was refused, or count it if the reason was logged a moment ago."""
        if now < self._next_line.get(reason, 0.0):
            self._left_out[reason] += 1
            return
        self._next_line[reason] = now + REPORT_SECONDS
        with logs.about(client=client):
            _log.warning("refused: %s", reason)

    def report(self, now: float) -> None:
        """Log the count of each reason since its last line."""
        for reason in [each for each in self._left_out if now >= self._next_line[each]]:
            count = self._left_out.pop(reason)
            self._next_line[reason] = now + REPORT_SECONDS
            with logs.about(clients=str(count)):
                _log.warning("refused more: %s", reason)


class Connections:
    """The open connections of one server. Used by its event loop only."""

    def __init__(
        self, limits: ConnectionLimits, is_proxy: Callable[[str], bool] = lambda address: False
    ) -> None:
        self.limits = limits
        self.refusals = RefusalLog()
        self._is_proxy = is_proxy
        self._open: set[LimitedProtocol] = set()
        self._by_address: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: "LimitedProtocol", now: float) -> None:
        """Add a connection, or raise Unavailable if too many are open.

        An idle connection is closed to make room. The connections of a proxy are those of many
        clients, so they count only in the total.
        """
        address = connection.address
        if self._by_address[
            address
        ] >= self.limits.connections_per_address_max and not self._is_proxy(address):
            raise Unavailable(
                f"one address may have {self.limits.connections_per_address_max} connections; "
                "close some, or raise the server's connections_per_address_max"
            )
        if len(self._open) >= self.limits.connections_max:
            idle = min(
                (each for each in self._open if each.is_idle),
                key=lambda each: each.due,
                default=None,
            )
            if idle is None:
                raise Unavailable(
                    f"the server has {self.limits.connections_max} connections already; try again, "
                    "or raise the server's connections_max"
                )
            self.refusals.add("an idle connection was closed to make room", idle.client_text, now)
            self.discard(idle)
            idle.transport.close()
        self._open.add(connection)
        self._by_address[address] += 1

    def discard(self, connection: "LimitedProtocol") -> None:
        """Forget a connection that is closed."""
        if connection in self._open:
            self._open.remove(connection)
            self._by_address[connection.address] -= 1
            if not self._by_address[connection.address]:
                del self._by_address[connection.address]

    def check(self, now: float) -> None:
        """End the connections that are overdue. The server calls this every second."""
        for connection in list(self._open):
            connection.check(now)
        self.refusals.report(now)


class LingeringTransport(JoiningTransport):
    """A transport that, while the client still sends, closes only its own half at first."""

    def __init__(self, transport: asyncio.Transport, may_close: Callable[[], bool]) -> None:
        super().__init__(transport)
        self._may_close = may_close
        self.lingers = False

    def write(self, data: bytes) -> None:
        """Send data, or buffer it; after `close`, drop it."""
        if not self.lingers:
            super().write(data)

    def close(self) -> None:
        """Close after all written data was sent; a second call closes at once."""
        if self.lingers or self._transport.is_closing() or self._may_close():
            super().close()
            return
        self.flush()
        self.lingers = True
        self._transport.write_eof()
        self._transport.resume_reading()

    def is_closing(self) -> bool:
        """Return whether the transport accepts no more data."""
        return self.lingers or self._transport.is_closing()


class LimitedProtocol(HttpToolsProtocol):
    """Uvicorn's HTTP protocol with limits, for one connection.

    `due` is when the connection has to have made its next step. No timer is started for a request:
    `Connections.check` looks at all connections every second.
    """

    transport: LingeringTransport  # type: ignore[assignment]

    def __init__(
        self,
        connections: Connections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.due = _NEVER
        self.address = ""
        self._all = connections
        self._limits = connections.limits
        self._unread = 0  # bytes since the parser last finished a piece of a request
        self._in_head = False
        self._has_body_to_come = False
        self._offers_upgrade = False
        self._refused: PenstockError | None = None
        self._unsent = 0
        self._unsent_since = 0.0

    @property
    def client_text(self) -> str:
        """The client's address and port, for the log."""
        return f"{self.client[0]}:{self.client[1]}" if self.client else "unknown"

    @property
    def is_idle(self) -> bool:
        """Whether every request that began was answered."""
        return not self._in_head and not self._has_body_to_come and not self._is_answering

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Add the connection, or refuse it."""
        lingering = LingeringTransport(
            cast(asyncio.Transport, transport),
            may_close=lambda: not self._in_head and not self._has_body_to_come,
        )
        super().connection_made(cast(asyncio.Transport, lingering))
        self.address = self.client[0] if self.client else ""
        now = self.loop.time()
        try:
            self._all.add(self, now)
        except Unavailable as error:
            self._refuse(error, now)
            return
        self.due = now + self._limits.first_request_seconds

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._all.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what arrives, unless it is the rest of a request that was refused."""
        if self.transport.lingers:
            self.due = min(self.due, self.loop.time() + LINGER_SILENCE_SECONDS)
            return
        self._unset_keepalive_if_required()
        self._unread += len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self._refuse(self._refused or Malformed(_NOT_HTTP), self.loop.time())
            return
        if self._unread > self._limits.header_bytes_max or self._has_too_many_headers:
            self._refuse(self._head_too_large(), self.loop.time())

    def on_message_begin(self) -> None:
        """Record the start of a request."""
        self._in_head = True
        self._offers_upgrade = False
        self.due = self.loop.time() + self._limits.header_seconds
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Check the head of a request, and hand the request to the application."""
        if self._unread > self._limits.header_bytes_max or self._has_too_many_headers:
            size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
            if size > self._limits.header_bytes_max or self._has_too_many_headers:
                self._stop_parsing(self._head_too_large())
        if self.parser.should_upgrade():
            # The parser takes what follows for another protocol, and skips the body.
            self._offers_upgrade = True
            return
        if len(self.pipeline) >= PIPELINE_MAX:
            self._stop_parsing(Busy("too many requests were sent ahead of their answers"))
        self._in_head = False
        self._has_body_to_come = True
        self._unread = 0
        self.due = self.loop.time() + self._limits.silence_seconds
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body. A body that is dropped gets no more time."""
        self._unread = 0
        if not self.cycle.response_complete:
            self.due = self.loop.time() + self._limits.silence_seconds
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Record the end of the request."""
        if self._offers_upgrade:
            return
        self._unread = 0
        self._has_body_to_come = False
        self.due = self._idle_until() if self.cycle.response_complete else _NEVER
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of a body that was not read."""
        super().on_response_complete()
        if self.transport.lingers:
            self.due = self.loop.time() + LINGER_SILENCE_SECONDS
        elif self._has_body_to_come:
            self.due = self.loop.time() + LINGER_SECONDS
        elif self.is_idle:
            self.due = self._idle_until()

    def shutdown(self) -> None:
        """Close an idle connection at once, and others after their answer: the server stops."""
        super().shutdown()
        if self.transport.lingers:
            self.transport.close()

    def check(self, now: float) -> None:
        """End the connection if it is overdue, or if the client does not read its answer."""
        unsent = self.transport.get_write_buffer_size()
        if unsent != self._unsent or not unsent:
            self._unsent, self._unsent_since = unsent, now
        elif now - self._unsent_since > self._limits.silence_seconds:
            self._all.refusals.add("an answer was not read in time", self.client_text, now)
            self.transport.abort()
            return
        if now < self.due:
            return
        if self.transport.is_closing():
            self.transport.abort()
        elif self.is_idle:
            self.transport.close()
        elif self.flow.read_paused or (self._in_head and self._is_answering):
            # The server itself has paused reading, or has not answered the previous request.
            self.due = now + self._limits.silence_seconds
        elif self._in_head:
            seconds = self._limits.header_seconds
            self._refuse(TooSlow(f"the headers did not arrive within {seconds} seconds"), now)
        else:
            seconds = self._limits.silence_seconds
            self._refuse(TooSlow(f"no more of the body arrived within {seconds} seconds"), now)

    def _idle_until(self) -> float:
        return self.loop.time() + KEEP_ALIVE_SECONDS

    @property
    def _has_too_many_headers(self) -> bool:
        return self.headers is not None and len(self.headers) > self._limits.header_count_max

    def _head_too_large(self) -> HeadTooLarge:
        return HeadTooLarge(
            f"the request has more than {self._limits.header_bytes_max} bytes of headers, or more "
            f"than {self._limits.header_count_max} headers; send less, or raise the server's "
            "header_bytes_max or header_count_max"
        )

    def _stop_parsing(self, error: PenstockError) -> NoReturn:
        """Stop the parser from inside one of its calls."""
        self._refused = error
        raise httptools.HttpParserError(str(error))

    def _parse(self, data: bytes) -> None:
        """Parse data. A request that offers another protocol is read as plain HTTP.

        RFC 9110, section 7.8: a server may ignore the Upgrade header. The parser cannot, so a new
        one gets the same head without the header, and then the body.
        """
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            method, version = self.parser.get_method(), self.parser.get_http_version()
            if method == b"CONNECT":  # the method CONNECT only leaves HTTP
                self._stop_parsing(Malformed(_NOT_HTTP))
            lines = [b"%b %b HTTP/%b" % (method, self.url, version.encode())]
            lines += [b"%b: %b" % kept for kept in map(_without_upgrade, self.headers) if kept]
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            self.parser.feed_data(b"\r\n".join([*lines, b"", b""]))
            self._parse(data[upgrade.args[0] :])

    def _refuse(self, error: PenstockError, now: float) -> None:
        """Answer instead of the application, and close."""
        self._all.refusals.add(str(error), self.client_text, now)
        if self._is_answering and (self._in_head or self.cycle.response_started):
            # An answer was begun; the client would take another one for its rest.
            self.transport.abort()
            return
        start, body = messages(refusal(error))
        lines = [b": ".join(header) for header in (*start["headers"], (b"connection", b"close"))]
        head = STATUS_LINE[start["status"]] + b"\r\n".join([*lines, b"", b""])
        self.transport.write(head + body["body"])
        self.transport.close()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.due = now + LINGER_SILENCE_SECONDS


def _without_upgrade(header: Header) -> Header | None:
    """Return a header without the offer of another protocol; None if nothing is left."""
    name, value = header
    if name in (b"upgrade", b"http2-settings"):
        return None
    if name != b"connection":
        return header
    tokens = [token.strip() for token in value.split(b",")]
    remaining = [token for token in tokens if token.lower() not in (b"upgrade", b"http2-settings")]
    return (name, b", ".join(remaining)) if remaining else None
