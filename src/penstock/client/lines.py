"""Answers of many lines, each a document of its own, read while they come."""

from collections.abc import AsyncIterator, Iterator
from typing import Generic, TypeVar

from penstock.client.async_transport import AsyncTransport
from penstock.client.request import Empty, Request, reader
from penstock.client.transport import Transport

T = TypeVar("T")


class _Lines(Generic[T]):
    """What was read of a line that is not whole yet; an empty line says nothing."""

    def __init__(self, shape: type[T]) -> None:
        self._read = reader(shape)
        self._rest = b""

    def take(self, piece: bytes) -> Iterator[T]:
        """The documents that a piece completes."""
        *whole, self._rest = (self._rest + piece).split(b"\n")
        return (self._read(line) for line in whole if line)


def listen(transport: Transport, request: Request[Empty], shape: type[T]) -> Iterator[T]:
    """Every line of an answer, as it comes."""
    found = _Lines(shape)
    with transport.listen(request, {}) as pieces:
        for piece in pieces:
            yield from found.take(piece)


async def listen_async(
    transport: AsyncTransport, request: Request[Empty], shape: type[T]
) -> AsyncIterator[T]:
    """The same in an event loop."""
    found = _Lines(shape)
    async with transport.listen(request, {}) as pieces:
        async for piece in pieces:
            for line in found.take(piece):
                yield line
