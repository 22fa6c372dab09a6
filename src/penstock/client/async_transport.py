"""How the client speaks to a server, in an event loop."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx

from penstock.client.reading import Reading
from penstock.client.refusals import ApiError, Failure, Unreachable
from penstock.client.request import Flow, Pause, Request
from penstock.client.uploads import Upload
from penstock.client.wire import (
    check_media,
    closed,
    refused,
    sendable,
    settings,
    taken,
    unreachable,
)

T = TypeVar("T")


class AsyncTransport:
    """Connections to one server, kept open between calls; for one event loop."""

    def __init__(self, url: str, api_key: str | None, timeout_seconds: float) -> None:
        self.url = url.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self._http = httpx.AsyncClient(**settings(self.url, api_key, timeout_seconds))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def perform(self, flow: Flow[T]) -> T:
        """Take the steps of a flow; what a step fails with is the flow's to handle."""
        try:
            step = next(flow)
            while True:
                try:
                    answer = await self._take(step)
                except Exception as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            flow.close()

    async def _take(self, step: Request[Any] | Pause) -> Any:
        if isinstance(step, Pause):
            return await self.pause(step.seconds)
        return await self.send(step)

    async def pause(self, seconds: float) -> None:
        """Do nothing for a while."""
        await asyncio.sleep(seconds)

    async def send(self, request: Request[T]) -> T:
        """Make one call and read its answer."""
        self._check_open()
        sent = sendable(request, self._timeout_seconds)
        if request.upload is not None:
            sent["content"] = _pieces(request.upload)
        try:
            answer = await self._http.request(**sent)
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from None
        return taken(request, answer, self.url)

    async def read(self, reading: Reading[T]) -> AsyncIterator[T]:
        """Everything that is read of an answer, as it comes."""
        while True:
            failure: Failure | None = None
            try:
                async with self._listen(reading) as pieces:
                    async for piece in pieces:
                        for found in reading.take(piece):
                            yield found
            except (ApiError, Unreachable) as error:
                failure = error
            seconds = reading.again_seconds(failure)
            if seconds is None:
                return
            await self.pause(seconds)

    @asynccontextmanager
    async def _listen(self, reading: Reading[T]) -> AsyncIterator[AsyncIterator[bytes]]:
        """The pieces of an answer; one that falls silent for too long is broken off."""
        self._check_open()
        sent = sendable(reading.request, self._timeout_seconds)
        sent["headers"] |= reading.begin()
        try:
            async with self._http.stream(**sent) as answer:
                if not answer.is_success:
                    await answer.aread()
                    raise refused(answer, self.url)
                check_media(reading, answer, self.url)
                yield answer.aiter_bytes()
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from None

    def _check_open(self) -> None:
        if self._http.is_closed:
            raise closed()


async def _pieces(upload: Upload) -> AsyncIterator[bytes]:
    """All of a body; the event loop is not held up by a slow disk."""
    if isinstance(upload.content, AsyncIterable):
        async for piece in upload.content:
            yield piece
        return
    pieces = upload.pieces()
    while piece := await asyncio.to_thread(_next, pieces):
        yield piece


def _next(pieces: Iterator[bytes]) -> bytes:
    """The next piece that is not empty; nothing at the end."""
    return next(filter(None, pieces), b"")
