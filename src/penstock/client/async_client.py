"""The client that is awaited: the same calls for programs with an event loop."""

from collections.abc import AsyncIterator, Sequence
from typing import Self, TypeVar

from penstock.client.async_heartbeats import AsyncHeartbeats
from penstock.client.async_transport import AsyncTransport
from penstock.client.calls import Calls
from penstock.client.claims import AsyncClaims, asked
from penstock.client.names import Name
from penstock.client.operation import Awaiting, AwaitingReader
from penstock.client.place import place
from penstock.client.reading import Reading
from penstock.client.request import Flow
from penstock.client.retries import RETRY_SECONDS, TIMEOUT_SECONDS

T = TypeVar("T")


class AsyncClient(Calls, Awaiting, AwaitingReader):
    """A server, as asynchronous Python sees it; for one event loop.

    Every call is awaited, and is else what Client's is. Use it in an `async with` block, or await
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
        url, api_key = place(url, api_key)
        self._retry_seconds = retry_seconds
        self._transport = AsyncTransport(url, api_key, timeout_seconds)
        self._heartbeats = AsyncHeartbeats(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; claims are kept alive no more."""
        await self._heartbeats.close()
        await self._transport.close()

    @property
    def url(self) -> str:
        """Where the server is."""
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
        """The lots that a job can work on, claimed `count` at a time: loop over them.

        The same as Client's, but for `async for` and `async with`.
        """
        ask = asked(
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
