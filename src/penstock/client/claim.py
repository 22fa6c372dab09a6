"""One claim, as a worker holds it."""

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar

from penstock.client import lot_documents as docs
from penstock.client.documents import EntityId, VersionId
from penstock.client.heartbeats import Heartbeats
from penstock.client.lots import LotCalls
from penstock.client.transport import ApiError, Unreachable
from penstock.errors import Conflict, PenstockError

T = TypeVar("T")

ERROR_CHARS_MAX = 2000
_GONE = frozenset({404, 409})
_BUSY = frozenset({429, 502, 503, 504})


class ClaimLost(Conflict):
    """The lot is, or may be, somebody else's by now; nothing of this claim is published."""


class Claim:
    """One job's hold on one lot.

    In a `with` block its lease is extended in the background. Leaving the block completes it; an
    error fails it with the error's text; an interrupt gives it back. All three raise ClaimLost
    where the lease was lost meanwhile, except that an error of the block goes first.
    """

    def __init__(
        self, calls: LotCalls, heartbeats: Heartbeats, shown: docs.Claim, taken_at: float
    ) -> None:
        self._calls = calls
        self._heartbeats = heartbeats
        self._shown = shown
        self._good_until = taken_at + shown.lease_seconds
        self._lost = ""
        self._ended = False
        self.lease_seconds = shown.lease_seconds

    def __repr__(self) -> str:
        return f"<Claim of {self._where} with token {self.token}>"

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

    def heartbeat(self, lease_seconds: int | None = None) -> None:
        """Let the lease begin anew, or raise ClaimLost; a `with` block does this by itself."""
        at = time.monotonic()
        self._ask(lambda: self._calls.heartbeat_claim(self.id, self.token, lease_seconds))
        self.lease_seconds = lease_seconds or self.lease_seconds
        self._good_until = at + self.lease_seconds

    def complete(self) -> Sequence[VersionId]:
        """Publish what was made; returned are the new versions of the outputs."""
        return self._end(self._complete).versions

    def fail(self, error: str = "") -> docs.Stopped:
        """Say that the work failed; the lot is tried again later, or held when out of tries."""
        text = error[:ERROR_CHARS_MAX]
        return self._end(lambda: self._calls.fail_claim(self.id, self.token, text))

    def release(self) -> docs.Stopped:
        """Give the lot back untouched; this does not count as a try."""
        return self._end(lambda: self._calls.release_claim(self.id, self.token), patient=False)

    def __enter__(self) -> Self:
        self.keep()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._heartbeats.drop(self)
        if self._ended:
            return
        if error is None:
            self.complete()
        elif not isinstance(error, ClaimLost):
            self._give_up(error)

    def keep(self) -> None:
        """Extend the lease in the background until the claim ends."""
        left = self._good_until - time.monotonic()
        self._heartbeats.keep(self, max(0.0, left - self.lease_seconds * 2 / 3))

    def beat(self, calls: LotCalls) -> float | None:
        """Extend the lease, as the background does; returned is when to do so again."""
        at = time.monotonic()
        try:
            calls.heartbeat_claim(self.id, self.token)
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

    def _complete(self) -> docs.Completed:
        try:
            return self._calls.complete_claim(self.id, self.token)
        except ApiError as error:
            # An earlier call may have landed without its answer.
            done = self._calls.published(self.id) if error.code == 409 else None
            if done is None:
                raise
            return done

    def _end(self, call: Callable[[], T], *, patient: bool = True) -> T:
        if self._ended:
            raise Conflict(f"the claim on {self._where} was ended by this worker already")
        self._heartbeats.drop(self)
        self._ended = True
        try:
            return self._ask(call, patient=patient)
        except (ApiError, Unreachable):
            self._ended = False
            raise

    def _ask(self, call: Callable[[], T], *, patient: bool = True) -> T:
        try:
            return patiently(call, self._good_until) if patient else call()
        except ApiError as error:
            if error.code not in _GONE:
                raise
            self._lost = str(error)
            raise self._loss() from None

    def _give_up(self, error: BaseException) -> None:
        try:
            if isinstance(error, Exception):
                self.fail(f"{type(error).__name__}: {error}")
            else:
                self.release()
        except PenstockError as refusal:
            error.add_note(f"penstock: {refusal}")


def patiently(call: Callable[[], T], until: float, *, reached: bool = False) -> T:
    """Call again while the server is busy or away; with `reached`, only while it is busy."""
    wait = 0.1
    while True:
        try:
            return call()
        except (ApiError, Unreachable) as error:
            passing = error.code in _BUSY if isinstance(error, ApiError) else not reached
            if not passing or time.monotonic() + wait > until:
                raise
        time.sleep(wait)
        wait = min(wait * 2, 2.0)
