"""Calls that are made again: only those of which a second is as good as none."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from penstock.client.refusals import ApiError, Failure, Unreachable, is_passing
from penstock.client.request import Flow, Pause, Request

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
