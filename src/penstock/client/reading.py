"""Answers that are read while they come."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Generic, TypeVar

from penstock.client.refusals import Failure
from penstock.client.request import Empty, Request, reader

T = TypeVar("T")

SILENCE_SECONDS_MAX = 45.0  # four empty lines of the server


class Reading(ABC, Generic[T]):
    """One answer, over as many connections as it takes; `media` is the type that it must have."""

    media: ClassVar[str]

    def __init__(self, request: Request[Empty]) -> None:
        self.request = request

    @abstractmethod
    def begin(self) -> dict[str, str]:
        """The headers that a connection begins with."""

    @abstractmethod
    def take(self, piece: bytes) -> Iterator[T]:
        """What a piece completes."""

    @abstractmethod
    def again_seconds(self, failure: Failure | None) -> float | None:
        """When to connect again after a connection has ended: None for never, or the failure."""


class Lines(Reading[T]):
    """An answer of lines, each a document of its own; an empty line says that there will be more.

    However long it takes, it is broken off only when nothing at all has come for a while.
    """

    media = "application/x-ndjson"

    def __init__(self, request: Request[Empty], shape: type[T]) -> None:
        super().__init__(replace(request, timeout_seconds=SILENCE_SECONDS_MAX))
        self._decode = reader(shape)
        self._rest = b""

    def begin(self) -> dict[str, str]:
        """Nothing is special."""
        return {}

    def take(self, piece: bytes) -> Iterator[T]:
        """The documents that a piece completes."""
        *whole, self._rest = (self._rest + piece).split(b"\n")
        return (self._decode(line) for line in whole if line)

    def again_seconds(self, failure: Failure | None) -> float | None:
        """It is asked for once."""
        if failure is not None:
            raise failure
        return None
