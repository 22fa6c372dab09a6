"""Following what happens to lots, over as many connections as it takes."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import msgspec
from msgspec import Struct

from penstock.client.async_transport import AsyncTransport
from penstock.client.documents import Document, EntityId
from penstock.client.operation import call
from penstock.client.refusals import ApiError, Failure, Unreachable
from penstock.client.request import Empty, Request, get
from penstock.client.transport import Transport

SILENCE_SECONDS_MAX = 45.0  # three heartbeats of the server
WAIT_SECONDS_MAX = 10.0
_PASSING = frozenset({429, 500, 502, 503, 504})


class LotEvent(Document, frozen=True):
    """Something that happened to a lot: `state` is its manifest's, `run` what made it so."""

    id: int
    at: str
    kind: str
    dataset: EntityId
    lot: str
    state: str
    version: str | None
    job: EntityId | None
    run: str | None


_decode = msgspec.json.Decoder(LotEvent).decode


class StreamCalls:
    """What a server tells of lots while it happens."""

    @call
    def _stream(
        self,
        *,
        after: int | None = None,
        namespace: str | None = None,
        dataset: str | None = None,
    ) -> Request[Empty]:
        """The stream of events; it does not end, so that it is followed and not called."""
        where = {"namespace": namespace, "dataset": dataset}
        described = get(Empty, "events", "stream", after=after, **where)
        return replace(described, timeout_seconds=SILENCE_SECONDS_MAX)


class _Block(Struct):
    """What stands between two empty lines of a stream."""

    id: int | None = None
    data: bytes = b""


class Following:
    """How far a stream was read, and how it is asked for again when its connection is lost."""

    def __init__(self, after: int | None, namespace: str | None, dataset: str | None) -> None:
        self.request = StreamCalls._stream.request(
            after=after, namespace=namespace, dataset=dataset
        )
        self._position = after
        self._failures = 0
        self._was_there = False
        self._rest = b""
        self._block = _Block()

    def begin(self) -> dict[str, str]:
        """The headers that go on where the last connection ended."""
        self._rest, self._block = b"", _Block()
        headers = {"accept": "text/event-stream"}
        if self._was_there and self._position is not None:
            headers["last-event-id"] = str(self._position)
        return headers

    def take(self, piece: bytes) -> Iterator[LotEvent]:
        """The events that a piece completes; one counts as seen when the next is asked for."""
        self._was_there = True
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            block = self._take_line(line.removesuffix(b"\r"))
            if block is None:
                continue
            self._failures = 0
            # Not before it was handed out: an event that is asked for again is no harm.
            if block.data:
                yield _decode(block.data)
            self._position = block.id if block.id is not None else self._position

    def _take_line(self, line: bytes) -> _Block | None:
        """The block that an empty line ends; what a stream breaks off in is left out."""
        block = self._block
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            self._block = _Block()
            return block
        if name == b"id" and value.isdigit():
            block.id = int(value)
        elif name == b"data":
            block.data += value if not block.data else b"\n" + value
        return None

    def check(self, error: Failure) -> None:
        """Raise an error after which there is no use in asking again."""
        if not self._was_there or (isinstance(error, ApiError) and error.code not in _PASSING):
            raise error

    def pause_seconds(self) -> float:
        """How long to wait before it is asked for again."""
        seconds = min(0.25 * 2.0 ** min(self._failures, 10), WAIT_SECONDS_MAX)
        self._failures += 1
        return seconds


def follow(transport: Transport, following: Following) -> Iterator[LotEvent]:
    """Every event, in order, for ever; a connection that is lost is made again where it was."""
    while True:
        try:
            with transport.listen(following.request, following.begin()) as pieces:
                for piece in pieces:
                    yield from following.take(piece)
        except (ApiError, Unreachable) as error:
            following.check(error)
        time.sleep(following.pause_seconds())


async def follow_async(transport: AsyncTransport, following: Following) -> AsyncIterator[LotEvent]:
    """The same in an event loop."""
    while True:
        try:
            async with transport.listen(following.request, following.begin()) as pieces:
                async for piece in pieces:
                    for event in following.take(piece):
                        yield event
        except (ApiError, Unreachable) as error:
            following.check(error)
        await asyncio.sleep(following.pause_seconds())
