"""Calls and sequences of calls, described once and made in either colour.

A method that `call` decorates describes one call; one that `procedure` decorates is a sequence of
them. On a blocking object it gives the answer, on an asynchronous one something to await. One that
`read` decorates gives what comes bit by bit, to loop over.
"""

import random
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import update_wrapper, wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast, overload

from penstock.client.errors import ApiError, Failure, Unreachable, is_passing
from penstock.client.request import Flow, Pause, Reading, Request

T = TypeVar("T")

TIMEOUT_SECONDS = 60.0
RETRY_SECONDS = 10.0
_FIRST_SECONDS = 0.1
_MOST_SECONDS = 2.0
_DONE_ALREADY = frozenset({404, 409})
_NOTE = "an earlier try of this call may have been carried out: its answer was lost"


def patiently(
    request: Request[T],
    until: float,
    again: Callable[[Failure], bool] | None = None,
) -> Flow[T]:
    """Make a call, and make it again while that is safe and may help, up to a moment.

    A call that was not carried out for certain is always safe. One of which that is not known is
    made again if it is repeatable. `again` decides otherwise.
    """
    tries, in_doubt = 0, False
    while True:
        settle = request.settle if in_doubt else None
        try:
            answer: T = yield request
            return answer if settle is None else (yield from settle(answer))
        except (ApiError, Unreachable) as error:
            failure = error
        if in_doubt and isinstance(failure, ApiError) and failure.code in _DONE_ALREADY:
            failure.add_note(_NOTE)
            if settle is not None:
                return (yield from settle(failure))
        in_doubt = in_doubt or failure.may_be_done
        wanted = again(failure) if again else _is_safe(request, failure)
        wait = _back_off(tries, failure)
        if not wanted or time.monotonic() + wait > until:
            raise failure
        yield Pause(wait)
        tries += 1


def _is_safe(request: Request[T], failure: Failure) -> bool:
    return is_passing(failure) and (request.repeatable or not failure.may_be_done)


def _back_off(tries: int, failure: Failure) -> float:
    """How long to wait; workers that failed together do not come back together."""
    most = min(_FIRST_SECONDS * 2.0 ** min(tries, 10), _MOST_SECONDS)
    wait = random.uniform(most / 2, most)
    asked = failure.retry_after_seconds if isinstance(failure, ApiError) else None
    return wait if asked is None else max(wait, asked)


P = ParamSpec("P")


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
