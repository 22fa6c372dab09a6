"""One claim, as a worker holds it: in a thread, or in an event loop."""

import logging
import os
import socket
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from msgspec import Struct

from penstock import ids
from penstock.client.claim_base import ClaimLost, Hold, Keeper, Onward
from penstock.client.errors import ApiError, Failure, Unreachable, is_passing
from penstock.client.names import Name, read_name
from penstock.client.operation import Awaiting, Blocking, patiently
from penstock.client.request import Flow, Pause, Request
from penstock.client.resources.claims import ClaimCalls
from penstock.clock import SECOND, parse_time, system_clock
from penstock.errors import PenstockError
from penstock.schema import locks as docs

T = TypeVar("T")


class Claim(Hold, Blocking):
    """One job's hold on one lot.

    In a `with` block its lease is extended in the background. Leaving the block completes it; an
    error fails it with the error's text; an interrupt gives it back. All three raise ClaimLost
    where the lease was lost meanwhile, except that an error of the block goes first.
    """

    def __init__(
        self,
        caller: Blocking,
        keeper: Keeper,
        shown: docs.Claim,
        taken_at: float,
        onward: Onward | None = None,
    ) -> None:
        super().__init__(keeper, shown, taken_at, onward)
        self._caller = caller

    def _perform(self, flow: Flow[T]) -> T:
        return self._caller._perform(flow)

    def __enter__(self) -> Self:
        self.keep()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._keeper.drop(self)
        if self._ended or isinstance(error, ClaimLost):
            return
        if error is None:
            self.complete()
            return
        try:
            if isinstance(error, Exception):
                self.fail(told(error))
            else:
                self.release()
        except PenstockError as refusal:
            error.add_note(f"penstock: {refusal}")


class AsyncClaim(Hold, Awaiting):
    """One job's hold on one lot, in an `async with` block; else as a Claim is.

    Work that does not await keeps the lease from being extended: give it to a thread.
    """

    def __init__(
        self,
        caller: Awaiting,
        keeper: Keeper,
        shown: docs.Claim,
        taken_at: float,
        onward: Onward | None = None,
    ) -> None:
        super().__init__(keeper, shown, taken_at, onward)
        self._caller = caller

    async def _perform(self, flow: Flow[T]) -> T:
        return await self._caller._perform(flow)

    async def __aenter__(self) -> Self:
        self.keep()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._keeper.drop(self)
        if self._ended or isinstance(error, ClaimLost):
            return
        if error is None:
            await self.complete()
            return
        try:
            if isinstance(error, Exception):
                await self.fail(told(error))
            else:
                await self.release()
        except PenstockError as refusal:
            error.add_note(f"penstock: {refusal}")


def told(error: Exception) -> str:
    """An error as the server is told of it."""
    return f"{type(error).__name__}: {error}"


BUSY_SECONDS_MAX = 30.0
PAUSE_SECONDS_MIN = 0.25
PAUSE_SECONDS_MAX = 5.0
_SLICE_SECONDS = 0.1

_log = logging.getLogger(__name__)

H = TypeVar("H", bound=Hold)


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
    wait: bool = False
    lots: Sequence[str] | None = None  # only these: all of them, or the call is refused
    ahead: bool = False  # complete a lot by the call that claims the next


def asked(where: str, job: str | None, owner: str | None, **more: Any) -> Ask:
    """What is meant by a job, which is NAMESPACE/NAME or its namespace and its name."""
    named = read_name(where if job is None else (where, job))
    mine = owner or f"{socket.gethostname()}:{os.getpid()}"
    return Ask(named.namespace, named.name, mine, **more)


class Search(ABC, Generic[H]):
    """How lots of a job are looked for again and again, whichever way one waits.

    `why_nothing` says why nothing was found the last time.
    """

    def __init__(self, keeper: Keeper, ask: Ask) -> None:
        self._keeper = keeper
        self._ask = ask
        self._wired = False
        self._away = False
        self._pause = PAUSE_SECONDS_MIN
        self._stopped = False
        self._asked_at = 0.0
        self._key = ""
        self._in_doubt = False  # whether an answer was lost that may have been claims
        self.why_nothing: docs.NoWorkReason | None = None

    def stop(self) -> None:
        """End the loop before it claims again; safe in a signal handler and from any thread."""
        self._stopped = True

    @abstractmethod
    def _claim(self, shown: docs.Claim, found: deque[H]) -> H:
        """A claim for who loops; `found` are those that come after it."""

    def _asking(self, complete: Sequence[tuple[str, int]] = ()) -> Request[docs.Claims]:
        """The call that claims some; after a lost answer it asks for the same."""
        ask = self._ask
        if not self._in_doubt:
            self._key, self._asked_at = ids.new_id(), time.monotonic()
        return ClaimCalls.claim_lots.request(
            ask.namespace,
            ask.job,
            owner=ask.owner,
            count=ask.count,
            newest=ask.newest,
            lease_seconds=ask.lease_seconds,
            lots=ask.lots,
            inputs=None if self._wired else ask.inputs,
            outputs=None if self._wired else ask.outputs,
            key=self._key,
            complete=complete,
        )

    def _go_on(self, found: deque[H], hold: Hold) -> Flow[docs.Completed]:
        """Complete a claim by the call that claims the next, unless there is one already."""
        if found or self._stopped:
            return (yield from hold._complete_alone())
        claim = self._asking([(hold.id, hold.token)])
        try:
            answer = yield from hold._patiently(claim, self._may_ask_again)
        except ApiError as refused:
            if is_passing(refused):
                raise
            # Nothing can be claimed, and so nothing was completed either.
            return (yield from hold._complete_alone())
        self._in_doubt = False
        for shown in answer.claims:
            found.append(self._claim(shown, found))
            found[-1].keep()
        return (yield from hold._read_end(answer.ended[0]))

    def _may_ask_again(self, failure: Failure) -> bool:
        """Whether the same call later may do; with its key it is always safe."""
        self._in_doubt = self._in_doubt or failure.may_be_done
        return is_passing(failure)

    def _onward(self, found: deque[H]) -> Onward | None:
        return partial(self._go_on, found) if self._ask.ahead else None

    def _take(self) -> Flow[Sequence[docs.Claim]]:
        """Claim some; one who waits is not disturbed by a server that is away."""
        ask = self._ask
        claim = self._asking()
        until = time.monotonic() + BUSY_SECONDS_MAX
        try:
            answer = yield from patiently(claim, until, self._is_busy)
        except ApiError as refused:
            is_over = self._in_doubt and refused.code == 409
            self._in_doubt = self._in_doubt and is_passing(refused)
            if not is_over:
                raise
            # What the lost answer told of was taken away meanwhile.
            return (yield from self._take())
        except Unreachable as error:
            if not ask.wait:
                raise
            if not self._away:
                _log.warning("%s; trying again until it answers", error)
            self._away = True
            return ()
        self._away, self._wired, self._in_doubt = False, True, False
        self.why_nothing = answer.why
        if answer.claims:
            self._pause = PAUSE_SECONDS_MIN
        return answer.claims

    def _is_busy(self, failure: Failure) -> bool:
        """Whether to ask again, as also those who do not wait do while an answer may be lost.

        What was claimed by a call whose answer was lost is held since then, and not for longer.
        """
        may_help = self._may_ask_again(failure)
        if not self._in_doubt:
            self._asked_at = time.monotonic()
        return may_help and (self._in_doubt or isinstance(failure, ApiError))

    def _rest(self) -> Flow[None]:
        """Wait in small steps, so that `stop` is seen."""
        until = time.monotonic() + self._rest_seconds()
        while not self._stopped and (left := until - time.monotonic()) > 0:
            yield Pause(min(left, _SLICE_SECONDS))

    def _rest_seconds(self) -> float:
        """How long until there may be something."""
        seconds, why = self._pause, self.why_nothing
        self._pause = min(self._pause * 2, PAUSE_SECONDS_MAX)
        if why is not None and why.next_at is not None:
            due = (parse_time(why.next_at) - system_clock()) / SECOND
            seconds = min(seconds, max(due, PAUSE_SECONDS_MIN))
        return seconds


class Claims(Search[Claim]):
    """The lots of a job, claimed one after the other; loop over it.

    When the loop ends because nothing was found, `why_nothing` says why.
    """

    def __init__(self, caller: Blocking, keeper: Keeper, ask: Ask) -> None:
        super().__init__(keeper, ask)
        self._caller = caller

    def __iter__(self) -> Iterator[Claim]:
        found: deque[Claim] = deque()
        try:
            while not self._stopped:
                if found:
                    claim = found.popleft()
                    # From here on it is kept by its `with` block, or not at all.
                    self._keeper.drop(claim)
                    if not claim.lost:
                        yield claim
                elif taken := self._caller._perform(self._take()):
                    found.extend(self._claim(shown, found) for shown in taken)
                    for later in list(found)[1:]:
                        later.keep()
                elif self._ask.wait:
                    self._caller._perform(self._rest())
                else:
                    return
        finally:
            for unused in found:
                with suppress(PenstockError):
                    unused.release()

    def _claim(self, shown: docs.Claim, found: deque[Claim]) -> Claim:
        return Claim(self._caller, self._keeper, shown, self._asked_at, self._onward(found))


class AsyncClaims(Search[AsyncClaim]):
    """The lots of a job, claimed one after the other: `async for claim in …: async with claim: …`.

    When the loop ends because nothing was found, `why_nothing` says why.
    """

    def __init__(self, caller: Awaiting, keeper: Keeper, ask: Ask) -> None:
        super().__init__(keeper, ask)
        self._caller = caller

    async def __aiter__(self) -> AsyncIterator[AsyncClaim]:
        found: deque[AsyncClaim] = deque()
        try:
            while not self._stopped:
                if found:
                    claim = found.popleft()
                    # From here on it is kept by its `async with` block, or not at all.
                    self._keeper.drop(claim)
                    if not claim.lost:
                        yield claim
                elif taken := await self._caller._perform(self._take()):
                    found.extend(self._claim(shown, found) for shown in taken)
                    for later in list(found)[1:]:
                        later.keep()
                elif self._ask.wait:
                    await self._caller._perform(self._rest())
                else:
                    return
        finally:
            for unused in found:
                with suppress(PenstockError):
                    await unused.release()

    def _claim(self, shown: docs.Claim, found: deque[AsyncClaim]) -> AsyncClaim:
        return AsyncClaim(self._caller, self._keeper, shown, self._asked_at, self._onward(found))
