"""Claims as a worker finds them: `for claim in client.claims(job): with claim: …`."""

import logging
import os
import socket
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress

from msgspec import Struct

from penstock.client import lot_documents as docs
from penstock.client.claim import Claim, patiently
from penstock.client.heartbeats import Heartbeats
from penstock.client.lots import LotCalls
from penstock.client.names import Name
from penstock.client.transport import Unreachable
from penstock.clock import SECOND, parse_time, system_clock
from penstock.errors import PenstockError

BUSY_SECONDS_MAX = 30.0
PAUSE_SECONDS_MIN = 0.25
PAUSE_SECONDS_MAX = 5.0
_SLICE_SECONDS = 0.1

_log = logging.getLogger(__name__)


class Ask(Struct, frozen=True):
    """What a worker asks for."""

    namespace: str
    job: str
    owner: str
    count: int = 1
    newest: bool = False
    lease_seconds: int | None = None
    inputs: Sequence[Name] | None = None
    outputs: Sequence[Name] | None = None


class Claims:
    """The lots of a job, claimed one after the other; loop over it.

    When the loop ends because nothing was found, `why_nothing` says why.
    """

    def __init__(self, calls: LotCalls, heartbeats: Heartbeats, ask: Ask, *, wait: bool) -> None:
        self._calls = calls
        self._heartbeats = heartbeats
        self._ask = ask
        self._wait = wait
        self._wired = False
        self._away = False
        self._asked_at = 0.0
        self._stopped = False
        self.why_nothing: docs.Nothing | None = None

    def stop(self) -> None:
        """End the loop before it claims again; safe in a signal handler and from any thread."""
        self._stopped = True

    def __iter__(self) -> Iterator[Claim]:
        found: deque[Claim] = deque()
        pause = PAUSE_SECONDS_MIN
        try:
            while not self._stopped:
                if found:
                    claim = found.popleft()
                    # From here on it is kept by its `with` block, or not at all.
                    self._heartbeats.drop(claim)
                    if not claim.lost:
                        yield claim
                elif taken := self._take():
                    found.extend(taken)
                    pause = PAUSE_SECONDS_MIN
                    for later in taken[1:]:
                        later.keep()
                elif self._wait:
                    self._rest(pause)
                    pause = min(pause * 2, PAUSE_SECONDS_MAX)
                else:
                    return
        finally:
            for unused in found:
                with suppress(PenstockError):
                    unused.release()

    def _take(self) -> list[Claim]:
        """Claim some; one who waits is not disturbed by a server that is away."""
        try:
            answer = patiently(self._claim, time.monotonic() + BUSY_SECONDS_MAX, reached=True)
        except Unreachable as error:
            if not self._wait:
                raise
            if not self._away:
                _log.warning("%s; trying again until it answers", error)
            self._away = True
            return []
        self._away, self._wired = False, True
        self.why_nothing = answer.why
        at = self._asked_at
        return [Claim(self._calls, self._heartbeats, shown, at) for shown in answer.claims]

    def _claim(self) -> docs.Claims:
        ask = self._ask
        self._asked_at = time.monotonic()
        return self._calls.claim_lots(
            ask.namespace,
            ask.job,
            owner=ask.owner,
            count=ask.count,
            newest=ask.newest,
            lease_seconds=ask.lease_seconds,
            inputs=None if self._wired else ask.inputs,
            outputs=None if self._wired else ask.outputs,
        )

    def _rest(self, seconds: float) -> None:
        """Wait until there may be something, in small steps, so that `stop` is seen."""
        why = self.why_nothing
        if why is not None and why.next_at is not None:
            due = (parse_time(why.next_at) - system_clock()) / SECOND
            seconds = min(seconds, max(due, PAUSE_SECONDS_MIN))
        until = time.monotonic() + seconds
        while not self._stopped and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _SLICE_SECONDS))


def default_owner() -> str:
    """This process, as others know it."""
    return f"{socket.gethostname()}:{os.getpid()}"
