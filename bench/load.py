"""The load generator: many clients on kept-alive connections, each with one open request.

It only writes prepared bytes and looks for the end of each answer, so that the measurement shows
the server and not the generator.
"""

import asyncio
import gc
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import cast

import uvloop
from msgspec import Struct

STALL_SECONDS_MAX = 60
_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


class Round(Struct, frozen=True):
    """The result of one round; only answers with the expected status count."""

    answered: int
    seconds: float
    p50_ms: float
    p99_ms: float
    refused: dict[str, int]
    ran_out: bool  # of requests, within the round

    @property
    def rate(self) -> float:
        """Return answers per second."""
        return self.answered / self.seconds if self.seconds else 0.0


class _Tally:
    """The counters of all clients of a round."""

    def __init__(self, requests: Iterator[bytes], status: bytes, idle: asyncio.Event) -> None:
        self.requests = requests
        self.status = b"HTTP/1.1 " + status
        self.idle = idle
        self.deadline = 0.0
        self.last = 0.0
        self.busy = 0
        self.latencies: list[float] = []
        self.refused: Counter[str] = Counter()
        self.ran_out = False


class Client(asyncio.Protocol):
    """A connection with at most one open request."""

    def __init__(self, tally: _Tally) -> None:
        self._tally = tally
        self._transport: asyncio.WriteTransport
        self._held = b""
        self._sent = 0.0
        self._waiting = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        # uvloop's transports do not declare asyncio's type.
        self._transport = cast(asyncio.WriteTransport, transport)

    def send_next(self) -> None:
        """Send the next request, unless the round is over."""
        tally = self._tally
        now = time.perf_counter()
        request = next(tally.requests, None) if now < tally.deadline else None
        if request is None:
            tally.ran_out = tally.ran_out or now < tally.deadline
            self._rest()
            return
        self._sent, self._waiting = now, True
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Count a complete answer, and send the next request."""
        self._held = held = self._held + data if self._held else data
        if not _is_whole(held):
            return
        tally = self._tally
        tally.last = now = time.perf_counter()
        if held.startswith(tally.status):
            tally.latencies.append(now - self._sent)
        else:
            tally.refused[held[9:12].decode("latin-1")] += 1
        self._held, self._waiting = b"", False
        self.send_next()

    def connection_lost(self, error: Exception | None) -> None:
        """Count a closed connection as a refused request."""
        if self._waiting:
            self._waiting = False
            self._tally.refused["hung up"] += 1
            self._rest()

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def _rest(self) -> None:
        self._tally.busy -= 1
        if not self._tally.busy:
            self._tally.idle.set()


def _is_whole(held: bytes) -> bool:
    end = held.find(_END)
    if end < 0:
        return False
    at = held.find(_LENGTH, 0, end)
    length = int(held[at + len(_LENGTH) : held.index(b"\r\n", at)]) if at >= 0 else 0
    return len(held) >= end + len(_END) + length


def send(
    port: int, requests: Sequence[bytes], clients: int, seconds: float, status: int = 201
) -> Round:
    """Send for a number of seconds, or until no request is left."""
    return uvloop.run(_send(port, requests, clients, seconds, status))


async def _send(
    port: int, requests: Sequence[bytes], clients: int, seconds: float, status: int
) -> Round:
    loop = asyncio.get_running_loop()
    tally = _Tally(iter(requests), str(status).encode(), asyncio.Event())
    pairs = [
        await loop.create_connection(lambda: Client(tally), "127.0.0.1", port)
        for _ in range(clients)
    ]
    gc.collect()
    gc.disable()
    try:
        tally.busy = clients
        began = time.perf_counter()
        tally.deadline = began + seconds
        for _, client in pairs:
            client.send_next()
        await asyncio.wait_for(tally.idle.wait(), seconds + STALL_SECONDS_MAX)
    finally:
        gc.enable()
    for _, client in pairs:
        client.close()
    return _round(tally, max(tally.last - began, 0.0))


def _round(tally: _Tally, seconds: float) -> Round:
    latencies = sorted(tally.latencies)
    return Round(
        answered=len(latencies),
        seconds=seconds,
        p50_ms=percentile(latencies, 50) * 1000,
        p99_ms=percentile(latencies, 99) * 1000,
        refused=dict(tally.refused),
        ran_out=tally.ran_out,
    )


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the percentile of sorted values."""
    if not values:
        return 0.0
    if percent == 50:
        return statistics.median(values)
    return values[min(len(values) - 1, len(values) * percent // 100)]
