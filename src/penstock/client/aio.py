"""The asynchronous client: the same calls for programs with an event loop."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

import httpx

from penstock.client.claims import AsyncClaims, read_ask
from penstock.client.errors import ApiError, Failure, Unreachable
from penstock.client.names import Name, endpoint
from penstock.client.request import (
    RETRY_SECONDS,
    TIMEOUT_SECONDS,
    Awaiting,
    AwaitingReader,
    Flow,
    Pause,
    Reading,
    Request,
    Upload,
)
from penstock.client.resources import Calls
from penstock.client.sync import Leased
from penstock.client.transport import (
    check_media,
    closed_error,
    connection_settings,
    http_arguments,
    read_answer,
    refusal_error,
    unreachable_error,
)

T = TypeVar("T")


class AsyncTransport:
    """Connections to one server that stay open between calls, for one event loop."""

    def __init__(self, url: str, api_key: str | None, timeout_seconds: float) -> None:
        self.url = url.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self._http = httpx.AsyncClient(**connection_settings(self.url, api_key, timeout_seconds))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def perform(self, flow: Flow[T]) -> T:
        """Run the steps of a flow, and pass the error of a step to the flow."""
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
        """Wait."""
        await asyncio.sleep(seconds)

    async def send(self, request: Request[T]) -> T:
        """Send one request and decode its answer."""
        self._check_open()
        sent = http_arguments(request, self._timeout_seconds)
        if request.upload is not None:
            sent["content"] = _pieces(request.upload)
        try:
            answer = await self._http.request(**sent)
        except httpx.TransportError as error:
            raise unreachable_error(self.url, error) from None
        return read_answer(request, answer, self.url)

    async def read(self, reading: Reading[T]) -> AsyncIterator[T]:
        """Yield the values of a streamed answer, as they arrive."""
        while True:
            failure: Failure | None = None
            try:
                async with self._listen(reading) as pieces:
                    async for piece in pieces:
                        for value in reading.take(piece):
                            yield value
            except (ApiError, Unreachable) as error:
                failure = error
            seconds = reading.again_seconds(failure)
            if seconds is None:
                return
            await self.pause(seconds)

    @asynccontextmanager
    async def _listen(self, reading: Reading[T]) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a streamed answer; one that is silent for too long is cut off."""
        self._check_open()
        sent = http_arguments(reading.request, self._timeout_seconds)
        sent["headers"] |= reading.begin()
        try:
            async with self._http.stream(**sent) as answer:
                if not answer.is_success:
                    await answer.aread()
                    raise refusal_error(answer, self.url)
                check_media(reading, answer, self.url)
                yield answer.aiter_bytes()
        except httpx.TransportError as error:
            raise unreachable_error(self.url, error) from None

    def _check_open(self) -> None:
        if self._http.is_closed:
            raise closed_error()


async def _pieces(upload: Upload) -> AsyncIterator[bytes]:
    """Yield a body; threads read files, so that a slow disk does not block the event loop."""
    if isinstance(upload.content, AsyncIterable):
        async for piece in upload.content:
            yield piece
        return
    pieces = upload.pieces()
    while piece := await asyncio.to_thread(_next, pieces):
        yield piece


def _next(pieces: Iterator[bytes]) -> bytes:
    """Return the next piece that is not empty, or an empty one at the end."""
    return next(filter(None, pieces), b"")


class AsyncHeartbeats:
    """Heartbeats of claims, from one task of the event loop for each claim."""

    def __init__(self, caller: Awaiting) -> None:
        self._caller = caller
        self._tasks: dict[Leased, asyncio.Task[None]] = {}

    def keep(self, leased: Leased, seconds: float) -> None:
        """Send heartbeats, the first after `seconds`."""
        self.drop(leased)
        self._tasks[leased] = asyncio.create_task(self._beat(leased, seconds), name="heartbeats")

    def drop(self, leased: Leased) -> None:
        """Stop the heartbeats; one that is under way may still arrive."""
        task = self._tasks.pop(leased, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Stop all heartbeats."""
        tasks = list(self._tasks.values())
        for leased in list(self._tasks):
            self.drop(leased)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _beat(self, leased: Leased, seconds: float) -> None:
        again: float | None = seconds
        while again is not None:
            await asyncio.sleep(again)
            again = await self._caller._perform(leased.beat())
        self._tasks.pop(leased, None)


class AsyncClient(Calls, Awaiting, AwaitingReader):
    """The client of a server for asynchronous Python, for one event loop.

    Every call of Client is a coroutine here. Use it in an `async with` block, or await
    `close`.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        url, api_key = endpoint(url, api_key)
        self._retry_seconds = retry_seconds
        self._transport = AsyncTransport(url, api_key, timeout_seconds)
        self._heartbeats = AsyncHeartbeats(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections, and stop the heartbeats of claims."""
        await self._heartbeats.close()
        await self._transport.close()

    @property
    def url(self) -> str:
        """The URL of the server."""
        return self._transport.url

    async def _perform(self, flow: Flow[T]) -> T:
        return await self._transport.perform(flow)

    def _read(self, reading: Reading[T]) -> AsyncIterator[T]:
        return self._transport.read(reading)

    def claims(
        self,
        where: str,
        job: str | None = None,
        /,
        *,
        inputs: Sequence[Name] | None = None,
        outputs: Sequence[Name] | None = None,
        owner: str | None = None,
        count: int = 1,
        newest: bool = False,
        lease_seconds: int | None = None,
        wait: bool = False,
        ahead: bool = False,
        lots: Sequence[str] | None = None,
    ) -> AsyncClaims:
        """Claim the lots that a job can work on, `count` at a time; loop over the result.

        As in Client, but for `async for` and `async with`.
        """
        ask = read_ask(
            where,
            job,
            owner,
            count=count,
            newest=newest,
            lease_seconds=lease_seconds,
            inputs=inputs,
            outputs=outputs,
            wait=wait,
            ahead=ahead,
            lots=lots,
        )
        return AsyncClaims(self, self._heartbeats, ask)
