"""Calls of lot events: the stream, and subscribers."""

from collections.abc import Iterator
from dataclasses import replace

import msgspec
from msgspec import UNSET, Struct, UnsetType

from penstock.client.errors import ApiError, Failure
from penstock.client.request import Reading, Request, call, delete, encode_json, get, put, read
from penstock.schema.shape import Empty
from penstock.schema.subscribers import LotEvent, Subscriber, SubscriberKind, Subscribers


class _Settings(Struct, frozen=True, omit_defaults=True):
    kind: str
    url: str
    secret: str | UnsetType | None = UNSET
    namespace: str | None = None
    dataset: str | None = None
    after: int | None = None


class OutboxCalls:
    """Calls of subscribers, for administrators."""

    @call
    def subscribers(self) -> Request[Subscribers]:
        """All subscribers."""
        return get(Subscribers, "subscribers")

    @call
    def subscriber(self, name: str) -> Request[Subscriber]:
        """One subscriber."""
        return get(Subscriber, "subscribers", name)

    @call
    def set_subscriber(
        self,
        name: str,
        kind: SubscriberKind | str,
        url: str,
        *,
        secret: str | UnsetType | None = UNSET,
        namespace: str | None = None,
        dataset: str | None = None,
        after: int | None = None,
    ) -> Request[Subscriber]:
        """Create or change a subscriber; an omitted secret stays, None removes it."""
        settings = _Settings(kind, url, secret, namespace, dataset, after)
        return put(Subscriber, "subscribers", name, body=encode_json(settings))

    @call
    def delete_subscriber(self, name: str) -> Request[Subscriber]:
        """Delete a subscriber."""
        return delete(Subscriber, "subscribers", name)


SILENCE_SECONDS_MAX = 45.0  # three heartbeats of the server
WAIT_SECONDS_MAX = 10.0
_PASSING = frozenset({429, 500, 502, 503, 504})


_decode = msgspec.json.Decoder(LotEvent).decode


class _Block(Struct):
    """The lines between two empty lines of a stream."""

    id: int | None = None
    data: bytes = b""


class Following(Reading[LotEvent]):
    """A stream of lot events, and its position, from which it reconnects."""

    media = "text/event-stream"

    def __init__(self, request: Request[Empty], after: int | None) -> None:
        super().__init__(request)
        self._position = after
        self._failures = 0
        self._was_there = False
        self._rest = b""
        self._block = _Block()

    def begin(self) -> dict[str, str]:
        """Return headers that resume after the last event."""
        self._rest, self._block = b"", _Block()
        headers = {"accept": self.media}
        if self._was_there and self._position is not None:
            headers["last-event-id"] = str(self._position)
        return headers

    def take(self, piece: bytes) -> Iterator[LotEvent]:
        """Yield the events that a piece completes; one counts as seen once the next is read."""
        self._was_there = True
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            block = self._take_line(line.removesuffix(b"\r"))
            if block is None:
                continue
            self._failures = 0
            # After the yield: reading an event twice does no harm, losing one does.
            if block.data:
                yield _decode(block.data)
            self._position = block.id if block.id is not None else self._position

    def _take_line(self, line: bytes) -> _Block | None:
        """Return the block that an empty line ends; an incomplete block is dropped."""
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

    def again_seconds(self, failure: Failure | None) -> float:
        """Return the seconds until the next connection, or raise a final failure."""
        refused = isinstance(failure, ApiError) and failure.code not in _PASSING
        if failure is not None and (refused or not self._was_there):
            raise failure
        seconds = min(0.25 * 2.0 ** min(self._failures, 10), WAIT_SECONDS_MAX)
        self._failures += 1
        return seconds


class StreamCalls:
    """The call of the stream of lot events."""

    @call
    def _stream(
        self,
        *,
        after: int | None = None,
        namespace: str | None = None,
        dataset: str | None = None,
    ) -> Request[Empty]:
        """The request for the stream, which does not end."""
        where = {"namespace": namespace, "dataset": dataset}
        described = get(Empty, "events", "stream", after=after, **where)
        return replace(described, timeout_seconds=SILENCE_SECONDS_MAX)

    @read
    def lot_events(
        self,
        *,
        after: int | None = None,
        namespace: str | None = None,
        dataset: str | None = None,
    ) -> Following:
        """The events of lots, as they happen. Loop over it; it does not end.

        It begins now, or after an event; 0 begins with the oldest. A lost connection is opened
        again, and no event is skipped. After an event that was pruned it raises ApiError (409).
        """
        request = StreamCalls._stream.request(after=after, namespace=namespace, dataset=dataset)
        return Following(request, after)
