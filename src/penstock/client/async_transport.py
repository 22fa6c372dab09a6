"""How the client speaks to a server, in an event loop."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx

from penstock.client.refusals import refused, unreachable
from penstock.client.request import Flow, Pause, Request
from penstock.client.transport import sendable, settings, taken

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
            return await asyncio.sleep(step.seconds)
        return await self.send(step)

    async def send(self, request: Request[T]) -> T:
        """Make one call and read its answer."""
        sent = sendable(request, self._timeout_seconds)
        if request.upload is not None:
            sent["content"] = request.upload.pieces_async()
        try:
            answer = await self._http.request(**sent)
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from None
        return taken(request, answer, self.url)

    @asynccontextmanager
    async def listen(
        self, request: Request[T], headers: Mapping[str, str]
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read an answer while it comes; one that falls silent for too long is broken off."""
        sent = sendable(request, self._timeout_seconds)
        sent["headers"] |= headers
        try:
            async with self._http.stream(**sent) as answer:
                if not answer.is_success:
                    await answer.aread()
                    raise refused(answer, self.url)
                yield answer.aiter_bytes()
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from None
