"""How the client speaks to a server, in threads: one request, one answer."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx

from penstock.client.reading import Reading
from penstock.client.refusals import ApiError, Failure, Unreachable
from penstock.client.request import Flow, Pause, Request
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


class Transport:
    """A connection to one server, kept open between calls; any thread may use it."""

    def __init__(self, url: str, api_key: str | None, timeout_seconds: float) -> None:
        self.url = url.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self._http = httpx.Client(**settings(self.url, api_key, timeout_seconds))

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def perform(self, flow: Flow[T]) -> T:
        """Take the steps of a flow; what a step fails with is the flow's to handle."""
        try:
            step = next(flow)
            while True:
                try:
                    answer = self._take(step)
                except Exception as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            flow.close()

    def _take(self, step: Request[Any] | Pause) -> Any:
        return self.pause(step.seconds) if isinstance(step, Pause) else self.send(step)

    def pause(self, seconds: float) -> None:
        """Do nothing for a while."""
        time.sleep(seconds)

    def send(self, request: Request[T]) -> T:
        """Make one call and read its answer."""
        self._check_open()
        sent = sendable(request, self._timeout_seconds)
        if request.upload is not None:
            sent["content"] = request.upload.pieces()
        try:
            answer = self._http.request(**sent)
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from None
        return taken(request, answer, self.url)

    def read(self, reading: Reading[T]) -> Iterator[T]:
        """Everything that is read of an answer, as it comes."""
        while True:
            failure: Failure | None = None
            try:
                with self._listen(reading) as pieces:
                    for piece in pieces:
                        yield from reading.take(piece)
            except (ApiError, Unreachable) as error:
                failure = error
            seconds = reading.again_seconds(failure)
            if seconds is None:
                return
            self.pause(seconds)

    @contextmanager
    def _listen(self, reading: Reading[T]) -> Iterator[Iterator[bytes]]:
        """The pieces of an answer; one that falls silent for too long is broken off."""
        self._check_open()
        sent = sendable(reading.request, self._timeout_seconds)
        sent["headers"] |= reading.begin()
        try:
            with self._http.stream(**sent) as answer:
                if not answer.is_success:
                    answer.read()
                    raise refused(answer, self.url)
                check_media(reading, answer, self.url)
                yield answer.iter_bytes()
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from None

    def _check_open(self) -> None:
        if self._http.is_closed:
            raise closed()
