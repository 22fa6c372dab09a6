"""What a worker has of a claim, whichever way it waits for answers."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from penstock.client.errors import ApiError, Failure, Unreachable
from penstock.client.operation import patiently, procedure
from penstock.client.request import Flow, Request, ask
from penstock.client.resources.claims import ClaimCalls
from penstock.errors import Conflict
from penstock.schema import locks as docs
from penstock.schema.catalog import EntityId, VersionId

T = TypeVar("T")

ERROR_CHARS_MAX = 2000
# A heartbeat that is not answered soon is better sent again.
BEAT_SECONDS_MAX = 5.0
_GONE = frozenset({404, 409})


class ClaimLost(Conflict):
    """The lot is, or may be, somebody else's by now; nothing of this claim is published."""


class Keeper(Protocol):
    """Who extends the leases of claims in the background."""

    def keep(self, kept: Any, seconds: float, /) -> None:
        """Begin with a heartbeat in so many seconds."""

    def drop(self, kept: Any, /) -> None:
        """Send no more; one that is under way may still arrive."""


class Hold:
    """One job's hold on one lot: what it is, and the calls that keep it and end it.

    `onward` is how it is completed by one who goes on to the next, instead of alone.
    """

    def __init__(
        self,
        keeper: Keeper,
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
        """The claim's id, which is that of its run."""
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
        """Who holds the claim."""
        return self._shown.owner

    @property
    def attempt(self) -> int:
        """Which try this is, from 1."""
        return self._shown.attempt

    @property
    def attempts_max(self) -> int:
        """How many tries there are before a person is asked."""
        return self._shown.attempts_max

    @property
    def inputs(self) -> Sequence[docs.PinnedInput]:
        """What to read, each in the version that the claim pinned."""
        return self._shown.inputs

    @property
    def outputs(self) -> Sequence[EntityId]:
        """What to write."""
        return self._shown.outputs

    @property
    def lost(self) -> bool:
        """Whether the lease was lost: stop working then, nothing will be published."""
        return bool(self._lost)

    @property
    def _where(self) -> str:
        return f"lot {self.lot} of job {self.namespace}/{self.job}"

    def check(self) -> None:
        """Raise ClaimLost if the lease was lost."""
        if self._lost:
            raise self._loss()

    def keep(self) -> None:
        """Extend the lease in the background until the claim ends."""
        left = self._good_until - time.monotonic()
        self._keeper.keep(self, max(0.0, left - self.lease_seconds * 2 / 3))

    @procedure
    def heartbeat(self, lease_seconds: int | None = None) -> Flow[None]:
        """Let the lease begin anew, or raise ClaimLost; a `with` block does this by itself."""
        at = time.monotonic()
        extend = ClaimCalls.heartbeat_claim.request(self.id, self.token, lease_seconds)
        yield from self._known(self._patiently(extend))
        self.lease_seconds = lease_seconds or self.lease_seconds
        self._good_until = at + self.lease_seconds

    @procedure
    def complete(self) -> Flow[Sequence[VersionId]]:
        """Publish what was made; returned are the new versions of the outputs."""
        onward = self._onward
        done = yield from self._end(onward(self) if onward else self._complete_alone())
        return done.versions

    @procedure
    def fail(self, error: str = "") -> Flow[docs.Stopped]:
        """Say that the work failed; the lot is tried again later, or held when out of tries."""
        text = error[:ERROR_CHARS_MAX]
        fail = ClaimCalls.fail_claim.request(self.id, self.token, text)
        return (yield from self._end(self._patiently(fail)))

    @procedure
    def release(self) -> Flow[docs.Stopped]:
        """Give the lot back untouched; this does not count as a try."""
        release = ClaimCalls.release_claim.request(self.id, self.token)
        return (yield from self._end(ask(release)))

    def beat(self) -> Flow[float | None]:
        """Extend the lease, as the background does; it comes to when to do so again, if ever."""
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
        # The claim may have been ended by its holder while the heartbeat was under way.
        if not self._ended:
            self._lost = why

    def _loss(self) -> ClaimLost:
        return ClaimLost(f"{self._where} is lost to this worker: {self._lost}")

    def _patiently(
        self, request: Request[T], again: Callable[[Failure], bool] | None = None
    ) -> Flow[T]:
        """Make a call again and again, as long as the lease is good."""
        return patiently(request, self._good_until, again)

    def _complete_alone(self) -> Flow[docs.Completed]:
        """Publish what was made, and nothing else."""
        try:
            complete = ClaimCalls.complete_claim.request(self.id, self.token)
            return (yield from self._patiently(complete))
        except ApiError as error:
            if error.code != 409:
                raise
            refusal = error
        return (yield from self._published(refusal))

    def _read_end(self, ended: docs.EndedClaim) -> Flow[docs.Completed]:
        """What was published by a call that did more than that."""
        if ended.error is not None:
            return (yield from self._published(ApiError(ended.error.code, ended.error.message)))
        return docs.Completed(ended.id, ended.versions)

    def _published(self, refusal: ApiError) -> Flow[docs.Completed]:
        """What was published: an earlier call may have landed without its answer."""
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
        """Take steps; a refusal that says whose the lot is now is a loss."""
        try:
            return (yield from flow)
        except ApiError as error:
            if error.code not in _GONE:
                raise
            self._lost = str(error)
        raise self._loss()


# How a claim is completed together with claiming the next.
Onward = Callable[[Hold], Flow[docs.Completed]]
