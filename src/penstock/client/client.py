"""The client that blocks: a server, as plain Python programs see it."""

from collections.abc import Iterator, Sequence
from typing import Self, TypeVar

from penstock.client.calls import Calls
from penstock.client.claims import Claims, asked
from penstock.client.heartbeats import Heartbeats
from penstock.client.hold import BEAT_SECONDS_MAX
from penstock.client.names import Name
from penstock.client.operation import Blocking, BlockingReader
from penstock.client.place import place
from penstock.client.reading import Reading
from penstock.client.request import Flow
from penstock.client.retries import RETRY_SECONDS, TIMEOUT_SECONDS

T = TypeVar("T")


class Client(Calls, Blocking, BlockingReader):
    """A server, as Python sees it: at a URL, or where the settings say (PENSTOCK_URL and so on).

    Calls block; any thread may make them. One that is refused raises ApiError with `code` and
    `message`; where no server answers, Unreachable. What is safe to do again is tried again for
    `retry_seconds` while the server is busy or away. Use it in a `with` block, or call `close`.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        # Late, because it loads httpx: `penstock --help` is twice as fast without.
        from penstock.client.transport import Transport

        url, api_key = place(url, api_key)
        self._retry_seconds = retry_seconds
        self._transport = Transport(url, api_key, timeout_seconds)
        self._heartbeats = Heartbeats(
            lambda: Client(url, api_key, timeout_seconds=BEAT_SECONDS_MAX, retry_seconds=0)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; claims are kept alive no more."""
        self._heartbeats.close()
        self._transport.close()

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._transport.url

    def _perform(self, flow: Flow[T]) -> T:
        return self._transport.perform(flow)

    def _read(self, reading: Reading[T]) -> Iterator[T]:
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
    ) -> Claims:
        """The lots that a job can work on, claimed `count` at a time: loop over them.

        The job is NAMESPACE/NAME, or its namespace and its name. With inputs and outputs it is
        wired first. The loop ends when nothing is found, and `why_nothing` of what is returned
        says why; with `wait` it waits for more. With `ahead` each lot is completed by the call that
        claims the next, which takes half the calls; what a loop that is left has claimed and not
        used is given back. With `lots` only these are claimed, and one that the job may not work
        on is refused as a conflict; leave the loop after them.
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
        return Claims(self, self._heartbeats, ask)
