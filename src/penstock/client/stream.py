"""Following what happens to lots, over as many connections as it takes."""

import time
from collections.abc import Callable, Iterable, Iterator

import msgspec
from msgspec import Struct

from penstock.client.documents import Document, EntityId
from penstock.client.transport import ApiError, Transport, Unreachable

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


class _Block(Struct):
    """What stands between two empty lines of a stream."""

    id: int | None = None
    data: bytes = b""


def follow(
    transport: Transport,
    *,
    after: int | None,
    namespace: str | None,
    dataset: str | None,
    wait: Callable[[float], object] = time.sleep,
) -> Iterator[LotEvent]:
    """Every event, in order, for ever; a connection that is lost is made again where it was."""
    position, failures, was_there = after, 0, False
    while True:
        headers = {"accept": "text/event-stream"}
        if was_there and position is not None:
            headers["last-event-id"] = str(position)
        try:
            with transport.listen(
                "events",
                "stream",
                headers=headers,
                silence_seconds=SILENCE_SECONDS_MAX,
                after=after,
                namespace=namespace,
                dataset=dataset,
            ) as pieces:
                was_there = True
                for block in _blocks(pieces):
                    failures = 0
                    # Not before it was handed out: an event that is asked for again is no harm.
                    if block.data:
                        yield _decode(block.data)
                    position = block.id if block.id is not None else position
        except (ApiError, Unreachable) as error:
            if not was_there or (isinstance(error, ApiError) and error.code not in _PASSING):
                raise
        wait(min(0.25 * 2.0 ** min(failures, 10), WAIT_SECONDS_MAX))
        failures += 1


def _blocks(pieces: Iterable[bytes]) -> Iterator[_Block]:
    """Cut a stream at its empty lines; one that is not whole is left out."""
    block = _Block()
    for line in _lines(pieces):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            yield block
            block = _Block()
        elif name == b"id" and value.isdigit():
            block.id = int(value)
        elif name == b"data":
            block.data += value if not block.data else b"\n" + value


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r")
