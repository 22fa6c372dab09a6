"""The blocking client, for plain Python programs."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, Self, TypeVar

from penstock.client.claims import BEAT_SECONDS_MAX, Claims, read_ask
from penstock.client.names import Name, endpoint
from penstock.client.request import (
    RETRY_SECONDS,
    TIMEOUT_SECONDS,
    Blocking,
    BlockingReader,
    Flow,
    Reading,
)
from penstock.client.resources import Calls

T = TypeVar("T")


# An idle thread ends; the next claim starts another.
IDLE_SECONDS = 10.0


class Leased(Protocol):
    """A thing with a lease."""

    def beat(self) -> Flow[float | None]:
        """Renew the lease; return the seconds until the next time, or None."""


class Heartbeats:
    """Heartbeats of claims, from one thread with a connection and a short timeout of its own."""

    def __init__(self, connect: Callable[[], AbstractContextManager[Blocking]]) -> None:
        self._connect = connect
        self._changed = threading.Condition()
        self._due: dict[Leased, float] = {}
        self._thread: threading.Thread | None = None
        self._closed = False

    def keep(self, leased: Leased, seconds: float) -> None:
        """Send heartbeats, the first after `seconds`."""
        with self._changed:
            self._due[leased] = time.monotonic() + seconds
            # A fork does not copy the thread.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name="penstock heartbeats", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def drop(self, leased: Leased) -> None:
        """Stop the heartbeats; one that is under way may still arrive."""
        with self._changed:
            self._due.pop(leased, None)

    def close(self) -> None:
        """Stop all heartbeats."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _run(self) -> None:
        with self._connect() as caller:
            while (leased := self._next()) is not None:
                again = caller._perform(leased.beat())
                with self._changed:
                    if leased not in self._due:
                        continue
                    if again is None:
                        del self._due[leased]
                    else:
                        self._due[leased] = time.monotonic() + again

    def _next(self) -> Leased | None:
        """Wait for the next heartbeat that is due; return None after a while without any."""
        with self._changed:
            idle_until = time.monotonic() + IDLE_SECONDS
            while not self._closed:
                now = time.monotonic()
                leased = min(self._due, key=self._due.__getitem__, default=None)
                until = idle_until if leased is None else self._due[leased]
                if leased is not None and until <= now:
                    return leased
                if until <= now:
                    break
                self._changed.wait(until - now)
            self._thread = None
            return None


class Client(Calls, Blocking, BlockingReader):
    """The client of a server, at a URL or at that of the settings (PENSTOCK_URL and so on).

    Calls block; any thread may make them. A refusal raises ApiError with `code` and
    `message`; without an answer, a call raises Unreachable. Requests that are safe to repeat are
    repeated for `retry_seconds` while the server is busy or away. Use `with`, or call `close`.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        # Importing httpx takes as long as `penstock --help` does without it.
        from penstock.client.transport import Transport

        url, api_key = endpoint(url, api_key)
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
        """Close the connection, and stop the heartbeats of claims."""
        self._heartbeats.close()
        self._transport.close()

    @property
    def url(self) -> str:
        """The URL of the server."""
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
        """Claim the lots that a job can work on, `count` at a time; loop over the result.

        The job is NAMESPACE/NAME, or its namespace and its name. With inputs and outputs it is
        wired first. The loop ends without work, and `why_nothing` of the result has the
        reason; with `wait` it waits for more. With `ahead` a lot is completed by the request that
        claims the next, which halves the requests. A loop that is left releases its unused
        claims. With `lots` exactly these are claimed; a lot that the job may not work
        on is a conflict. Leave the loop after them.
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
        return Claims(self, self._heartbeats, ask)
