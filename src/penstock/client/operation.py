"""Calls and sequences of calls, described once and made in either colour.

A method that `call` decorates describes one call; one that `procedure` decorates is a sequence of
them. On a blocking object it gives the answer, on an asynchronous one something to await. One that
`read` decorates gives what comes bit by bit, to loop over.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import update_wrapper, wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast, overload

from penstock.client.reading import Reading
from penstock.client.request import Flow, Request
from penstock.client.retries import patiently

P = ParamSpec("P")
T = TypeVar("T")


class Blocking(ABC):
    """Whose calls block until they are answered."""

    _retry_seconds: float = 0.0

    @abstractmethod
    def _perform(self, flow: Flow[T]) -> T:
        """Take the steps of a flow, and return what it comes to."""


class Awaiting(ABC):
    """Whose calls are awaited."""

    _retry_seconds: float = 0.0

    @abstractmethod
    async def _perform(self, flow: Flow[T]) -> T:
        """Take the steps of a flow, and return what it comes to."""


class _Method(ABC, Generic[P, T]):
    """A method that is there in both colours."""

    def __init__(self, function: Callable[Concatenate[Any, P], Any]) -> None:
        self._function = function
        self.__name__: str
        update_wrapper(cast(Any, self), function)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self

        @wraps(self._function)
        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return instance._perform(self._flow(instance, *args, **kwargs))

        return method

    @abstractmethod
    def _flow(self, instance: Any, *args: P.args, **kwargs: P.kwargs) -> Flow[T]:
        """The steps that a call of the method is."""


class Operation(_Method[P, T]):
    """One call of the server's API."""

    def request(self, *args: P.args, **kwargs: P.kwargs) -> Request[T]:
        """What would be sent."""
        described: Request[T] = self._function(None, *args, **kwargs)
        return described

    def _flow(self, instance: Any, *args: P.args, **kwargs: P.kwargs) -> Flow[T]:
        until = time.monotonic() + instance._retry_seconds
        return patiently(self.request(*args, **kwargs), until)


class Procedure(_Method[P, T]):
    """A sequence of calls."""

    def _flow(self, instance: Any, *args: P.args, **kwargs: P.kwargs) -> Flow[T]:
        steps: Flow[T] = self._function(instance, *args, **kwargs)
        return steps


def call(function: Callable[Concatenate[Any, P], Request[T]]) -> Operation[P, T]:
    """Make a method that describes a call one that makes it; it is given no object."""
    return Operation(function)


def procedure(function: Callable[Concatenate[Any, P], Flow[T]]) -> Procedure[P, T]:
    """Make a method that is a sequence of calls one that makes them."""
    return Procedure(function)


class BlockingReader(ABC):
    """What reads an answer while it comes, and blocks until there is more."""

    @abstractmethod
    def _read(self, reading: Reading[T]) -> Iterator[T]:
        """Everything that is read, as it comes."""


class AwaitingReader(ABC):
    """What reads an answer while it comes, in an event loop."""

    @abstractmethod
    def _read(self, reading: Reading[T]) -> AsyncIterator[T]:
        """Everything that is read, as it comes."""


class Listening(Generic[P, T]):
    """A method that gives what comes bit by bit, in both colours."""

    def __init__(self, function: Callable[Concatenate[Any, P], Reading[T]]) -> None:
        self._function = function
        update_wrapper(cast(Any, self), function)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: BlockingReader, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, instance: AwaitingReader, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self

        @wraps(self._function)
        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return instance._read(self._function(None, *args, **kwargs))

        return method


def read(function: Callable[Concatenate[Any, P], Reading[T]]) -> Listening[P, T]:
    """Make a method that says how an answer is read one that reads it; it is given no object."""
    return Listening(function)
