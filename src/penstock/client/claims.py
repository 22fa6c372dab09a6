"""Claims of a worker, and the loops that make them."""

import logging
import os
import socket
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from msgspec import Struct

from penstock import ids
from penstock.client.errors import ApiError, Failure, Unreachable, is_passing
from penstock.client.names import Name, read_name
from penstock.client.request import (
    Awaiting,
    Blocking,
    Flow,
    Pause,
    Request,
    ask,
    patiently,
    procedure,
)
from penstock.client.resources.claims import ClaimCalls
from penstock.clock import SECOND, parse_time, system_clock
from penstock.errors import Conflict, PenstockError
from penstock.schema import locks as docs
from penstock.schema.catalog import EntityId, VersionId

T = TypeVar("T")

ERROR_CHARS_MAX = 2000
# A heartbeat without a quick answer is sent again.
BEAT_SECONDS_MAX = 5.0
_GONE = frozenset({404, 409})


class ClaimLost(Conflict):
    """The lease is lost; another worker may have the lot. Nothing of this claim is published."""


class LeaseKeeper(Protocol):
    """A background task that renews the leases of claims."""

    def keep(self, kept: Any, seconds: float, /) -> None:
        """Send heartbeats, the first after `seconds`."""

    def drop(self, kept: Any, /) -> None:
        """Stop the heartbeats; one that is under way may still arrive."""


class ClaimBase:
    """One job's claim on one lot, with the calls that renew and end it.

    `onward` completes it by the request that claims the next lot.
    """

    def __init__(
        self,
        keeper: LeaseKeeper,
        shown: docs.Claim,
        taken_at: float,
        onward: "Onward | None" = None,
    ) -> None:
        self._keeper = keeper
        self._onward = onward
        self._shown = shown
        self._good_until = taken_at + shown.lease_seconds
        self._lost = ""
        self._ended = False
        self.lease_seconds = shown.lease_seconds

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._where} with token {self.token}>"

    @property
    def id(self) -> str:
        """The id of the claim, which is the id of its run."""
        return self._shown.id

    @property
    def run_id(self) -> str:
        """The run that the claim began."""
        return self._shown.id

    @property
    def token(self) -> int:
        """The fencing token: it grows with every claim of the job on this lot."""
        return self._shown.token

    @property
    def namespace(self) -> str:
        """The job's namespace."""
        return self._shown.namespace

    @property
    def job(self) -> str:
        """The job's name."""
        return self._shown.job

    @property
    def lot(self) -> str:
        """The lot to work on."""
        return self._shown.lot

    @property
    def owner(self) -> str:
        """The owner of the claim."""
        return self._shown.owner

    @property
    def attempt(self) -> int:
        """The number of this try, from 1."""
        return self._shown.attempt

    @property
    def attempts_max(self) -> int:
        """The number of tries before the work is held."""
        return self._shown.attempts_max

    @property
    def inputs(self) -> Sequence[docs.PinnedInput]:
        """The datasets to read, each in its pinned version."""
        return self._shown.inputs

    @property
    def outputs(self) -> Sequence[EntityId]:
        """The datasets to write."""
        return self._shown.outputs

    @property
    def lost(self) -> bool:
        """Whether the lease was lost. If so, stop: nothing will be published."""
        return bool(self._lost)

    @property
    def _where(self) -> str:
        return f"lot {self.lot} of job {self.namespace}/{self.job}"

    def check(self) -> None:
        """Raise ClaimLost if the lease was lost."""
        if self._lost:
            raise self._loss()

    def keep(self) -> None:
        """Renew the lease in the background until the claim ends."""
        left = self._good_until - time.monotonic()
        self._keeper.keep(self, max(0.0, left - self.lease_seconds * 2 / 3))

    @procedure
    def heartbeat(self, lease_seconds: int | None = None) -> Flow[None]:
        """Renew the lease, or raise ClaimLost. A `with` block does this in the background."""
        at = time.monotonic()
        extend = ClaimCalls.heartbeat_claim.request(self.id, self.token, lease_seconds)
        yield from self._known(self._patiently(extend))
        self.lease_seconds = lease_seconds or self.lease_seconds
        self._good_until = at + self.lease_seconds

    @procedure
    def complete(self) -> Flow[Sequence[VersionId]]:
        """Complete the claim: publish its outputs, and return their new versions."""
        onward = self._onward
        done = yield from self._end(onward(self) if onward else self._complete_alone())
        return done.versions

    @procedure
    def fail(self, error: str = "") -> Flow[docs.Stopped]:
        """Fail the claim. The lot is retried later, or held if no tries are left."""
        text = error[:ERROR_CHARS_MAX]
        fail = ClaimCalls.fail_claim.request(self.id, self.token, text)
        return (yield from self._end(self._patiently(fail)))

    @procedure
    def release(self) -> Flow[docs.Stopped]:
        """Release the claim without a result; this does not count as a try."""
        release = ClaimCalls.release_claim.request(self.id, self.token)
        return (yield from self._end(ask(release)))

    def beat(self) -> Flow[float | None]:
        """Renew the lease in the background; return the seconds until the next time, or None."""
        at = time.monotonic()
        try:
            extend = ClaimCalls.heartbeat_claim.request(self.id, self.token)
            yield from ask(replace(extend, timeout_seconds=BEAT_SECONDS_MAX))
        except (ApiError, Unreachable) as error:
            if isinstance(error, ApiError) and error.code in _GONE:
                self._lose(str(error))
            elif time.monotonic() >= self._good_until:
                self._lose(f"no heartbeat got through for {self.lease_seconds} s: {error}")
            else:
                return min(self.lease_seconds / 10, 1.0)
            return None
        self._good_until = at + self.lease_seconds
        return self.lease_seconds / 3

    def _lose(self, why: str) -> None:
        # The worker may have ended the claim while the heartbeat was under way.
        if not self._ended:
            self._lost = why

    def _loss(self) -> ClaimLost:
        return ClaimLost(f"{self._where} is lost to this worker: {self._lost}")

    def _patiently(
        self, request: Request[T], again: Callable[[Failure], bool] | None = None
    ) -> Flow[T]:
        """Send a request repeatedly while the lease lasts."""
        return patiently(request, self._good_until, again)

    def _complete_alone(self) -> Flow[docs.Completed]:
        """Complete the claim by a request of its own."""
        try:
            complete = ClaimCalls.complete_claim.request(self.id, self.token)
            return (yield from self._patiently(complete))
        except ApiError as error:
            if error.code != 409:
                raise
            refusal = error
        return (yield from self._published(refusal))

    def _read_end(self, ended: docs.EndedClaim) -> Flow[docs.Completed]:
        """Return the versions of a claim that another request completed."""
        if ended.error is not None:
            return (yield from self._published(ApiError(ended.error.code, ended.error.message)))
        return docs.Completed(ended.id, ended.versions)

    def _published(self, refusal: ApiError) -> Flow[docs.Completed]:
        """Return the versions that an earlier request without an answer published, or refuse."""
        done = yield from ask(ClaimCalls.published.request(self.id))
        if done is None:
            raise refusal
        return done

    def _end(self, flow: Flow[T]) -> Flow[T]:
        if self._ended:
            raise Conflict(f"the claim on {self._where} was ended by this worker already")
        self._keeper.drop(self)
        self._ended = True
        try:
            return (yield from self._known(flow))
        except (ApiError, Unreachable):
            self._ended = False
            raise

    def _known(self, flow: Flow[T]) -> Flow[T]:
        """Run a flow; a refusal because the claim has ended raises ClaimLost."""
        try:
            return (yield from flow)
        except ApiError as error:
            if error.code not in _GONE:
                raise
            self._lost = str(error)
        raise self._loss()


# Completes a claim by the request that claims the next lot.
Onward = Callable[[ClaimBase], Flow[docs.Completed]]


class Claim(ClaimBase, Blocking):
    """One job's claim on one lot.

    A `with` block renews its lease in the background. The end of the block completes it; an
    error fails it with the error's text; an interrupt releases it. All three raise ClaimLost
    if the lease was lost, unless the block raised an error of its own.
    """

    def __init__(
        self,
        caller: Blocking,
        keeper: LeaseKeeper,
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
                self.fail(error_text(error))
            else:
                self.release()
        except PenstockError as refusal:
            error.add_note(f"penstock: {refusal}")


class AsyncClaim(ClaimBase, Awaiting):
    """One job's claim on one lot, for an `async with` block.

    Work that blocks the event loop also blocks the heartbeats: run it in a thread.
    """

    def __init__(
        self,
        caller: Awaiting,
        keeper: LeaseKeeper,
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
                await self.fail(error_text(error))
            else:
                await self.release()
        except PenstockError as refusal:
            error.add_note(f"penstock: {refusal}")


def error_text(error: Exception) -> str:
    """Return an error as text for the server."""
    return f"{type(error).__name__}: {error}"


BUSY_SECONDS_MAX = 30.0
PAUSE_SECONDS_MIN = 0.25
PAUSE_SECONDS_MAX = 5.0
_SLICE_SECONDS = 0.1

_log = logging.getLogger(__name__)

H = TypeVar("H", bound=ClaimBase)


class Ask(Struct, frozen=True):
    """The request of a worker for claims."""

    namespace: str
    job: str
    owner: str
    count: int = 1
    newest: bool = False
    lease_seconds: int | None = None
    inputs: Sequence[Name] | None = None
    outputs: Sequence[Name] | None = None
    wait: bool = False
    lots: Sequence[str] | None = None  # exactly these, or none
    ahead: bool = False  # complete a lot by the request that claims the next


def read_ask(where: str, job: str | None, owner: str | None, **more: Any) -> Ask:
    """Return the request for a job, given as NAMESPACE/NAME or as namespace and name."""
    named = read_name(where if job is None else (where, job))
    mine = owner or f"{socket.gethostname()}:{os.getpid()}"
    return Ask(named.namespace, named.name, mine, **more)


class Search(ABC, Generic[H]):
    """The loop that claims lots of a job, for both kinds of clients.

    `why_nothing` is the reason of the last claim without a lot.
    """

    def __init__(self, keeper: LeaseKeeper, ask: Ask) -> None:
        self._keeper = keeper
        self._ask = ask
        self._wired = False
        self._away = False
        self._pause = PAUSE_SECONDS_MIN
        self._stopped = False
        self._asked_at = 0.0
        self._key = ""
        self._in_doubt = False  # whether an answer with claims may have been lost
        self.why_nothing: docs.NoWorkReason | None = None

    def stop(self) -> None:
        """End the loop before its next claim. Safe in a signal handler and in any thread."""
        self._stopped = True

    @abstractmethod
    def _claim(self, document: docs.Claim, claims: deque[H]) -> H:
        """Return a claim for the loop; `found` has the claims after it."""

    def _asking(self, complete: Sequence[tuple[str, int]] = ()) -> Request[docs.Claims]:
        """Return the request for claims; after a lost answer, the same request again."""
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

    def _go_on(self, claims: deque[H], hold: ClaimBase) -> Flow[docs.Completed]:
        """Complete a claim by the request that claims the next, unless one is waiting."""
        if claims or self._stopped:
            return (yield from hold._complete_alone())
        claim = self._asking([(hold.id, hold.token)])
        try:
            answer = yield from hold._patiently(claim, self._may_ask_again)
        except ApiError as refused:
            if is_passing(refused):
                raise
            # The request was refused as a whole, so it completed nothing either.
            return (yield from hold._complete_alone())
        self._in_doubt = False
        for document in answer.claims:
            claims.append(self._claim(document, claims))
            claims[-1].keep()
        return (yield from hold._read_end(answer.ended[0]))

    def _may_ask_again(self, failure: Failure) -> bool:
        """Return whether a retry may help; the key makes it safe."""
        self._in_doubt = self._in_doubt or failure.may_be_done
        return is_passing(failure)

    def _onward(self, claims: deque[H]) -> Onward | None:
        return partial(self._go_on, claims) if self._ask.ahead else None

    def _take(self) -> Flow[Sequence[docs.Claim]]:
        """Claim lots; with `wait`, an unreachable server counts as no work."""
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
            # The claims of the lost answer have ended meanwhile.
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
        """Return whether to repeat the request, also without `wait` if an answer may be lost.

        The lease of claims of a lost answer began with that request.
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
        """Return the seconds until there may be work."""
        seconds, why = self._pause, self.why_nothing
        self._pause = min(self._pause * 2, PAUSE_SECONDS_MAX)
        if why is not None and why.next_at is not None:
            due = (parse_time(why.next_at) - system_clock()) / SECOND
            seconds = min(seconds, max(due, PAUSE_SECONDS_MIN))
        return seconds


class Claims(Search[Claim]):
    """The lots of a job, claimed one after the other. Loop over it.

    If the loop ends without work, `why_nothing` has the reason.
    """

    def __init__(self, caller: Blocking, keeper: LeaseKeeper, ask: Ask) -> None:
        super().__init__(keeper, ask)
        self._caller = caller

    def __iter__(self) -> Iterator[Claim]:
        claims: deque[Claim] = deque()
        try:
            while not self._stopped:
                if claims:
                    claim = claims.popleft()
                    # From here on only a `with` block renews its lease.
                    self._keeper.drop(claim)
                    if not claim.lost:
                        yield claim
                elif documents := self._caller._perform(self._take()):
                    claims.extend(self._claim(document, claims) for document in documents)
                    for waiting in list(claims)[1:]:
                        waiting.keep()
                elif self._ask.wait:
                    self._caller._perform(self._rest())
                else:
                    return
        finally:
            for unused in claims:
                with suppress(PenstockError):
                    unused.release()

    def _claim(self, document: docs.Claim, claims: deque[Claim]) -> Claim:
        return Claim(self._caller, self._keeper, document, self._asked_at, self._onward(claims))


class AsyncClaims(Search[AsyncClaim]):
    """The lots of a job, claimed one after the other: `async for claim in …: async with claim: …`.

    If the loop ends without work, `why_nothing` has the reason.
    """

    def __init__(self, caller: Awaiting, keeper: LeaseKeeper, ask: Ask) -> None:
        super().__init__(keeper, ask)
        self._caller = caller

    async def __aiter__(self) -> AsyncIterator[AsyncClaim]:
        claims: deque[AsyncClaim] = deque()
        try:
            while not self._stopped:
                if claims:
                    claim = claims.popleft()
                    # From here on it is kept by its `async with` block, or not at all.
                    self._keeper.drop(claim)
                    if not claim.lost:
                        yield claim
                elif documents := await self._caller._perform(self._take()):
                    claims.extend(self._claim(document, claims) for document in documents)
                    for waiting in list(claims)[1:]:
                        waiting.keep()
                elif self._ask.wait:
                    await self._caller._perform(self._rest())
                else:
                    return
        finally:
            for unused in claims:
                with suppress(PenstockError):
                    await unused.release()

    def _claim(self, document: docs.Claim, claims: deque[AsyncClaim]) -> AsyncClaim:
        onward = self._onward(claims)
        return AsyncClaim(self._caller, self._keeper, document, self._asked_at, onward)
