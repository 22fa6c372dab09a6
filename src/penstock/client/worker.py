"""A plain function made a worker: `@penstock.job(inputs=…, outputs=…, namespace=…)`."""

import inspect
import logging
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import update_wrapper
from types import FrameType
from typing import Generic, Literal, ParamSpec, TypeVar, cast

from msgspec import Struct

from penstock.client.claim import Claim
from penstock.client.client import Client
from penstock.client.hold import ClaimLost
from penstock.client.names import Name
from penstock.config import load

P = ParamSpec("P")
R = TypeVar("R")
Outcome = Literal["completed", "failed", "lost"]

_log = logging.getLogger(__name__)


class Worked(Struct, frozen=True):
    """What became of the lots that a worker claimed."""

    completed: int = 0
    failed: int = 0
    lost: int = 0


class Wires(Struct, frozen=True):
    """A job: its datasets and how its lots are worked on; what is None is left as it is."""

    namespace: str
    name: str
    inputs: Sequence[Name]
    outputs: Sequence[Name]
    lease_seconds: int | None
    tries_max: int | None
    back_off_seconds: int | None


class JobFunction(Generic[P, R]):
    """A function that can be called as before, and that works on the lots of a job."""

    def __init__(self, function: Callable[P, R], wires: Wires, *, newest: bool) -> None:
        self._function = function
        self._newest = newest
        self._takes_lot = next(iter(inspect.signature(function).parameters), "") == "lot"
        self.wires = wires
        self.__name__: str
        self.__qualname__: str
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def __reduce__(self) -> str:
        """Pickled by name, as functions are, so that other processes can run it."""
        return self.__qualname__

    def work(
        self,
        url: str | None = None,
        *,
        loop: bool = False,
        count: int = 1,
        owner: str | None = None,
    ) -> Worked:
        """Claim lots and call the function for each, until nothing is found.

        With `loop` it waits for more and goes on until it is interrupted. A lot whose call raises
        has failed: that is logged and the next lot taken. The server and the key come from the
        settings (PENSTOCK_URL, PENSTOCK_API_KEY) unless a URL is given.
        """
        settings = load({"url": url}).settings
        with _stopped_by_sigterm(), Client(settings.url, settings.api_key) as client:
            self._wire(client)
            claims = client.claims(
                self.wires.namespace,
                self.wires.name,
                owner=owner,
                count=count,
                newest=self._newest,
                wait=loop,
                ahead=True,
            )
            outcomes = Counter(self._work_on(claim) for claim in claims)
        return Worked(outcomes["completed"], outcomes["failed"], outcomes["lost"])

    def _wire(self, client: Client) -> None:
        wires = self.wires
        client.wire_job(
            wires.namespace,
            wires.name,
            inputs=wires.inputs,
            outputs=wires.outputs,
            lease_seconds=wires.lease_seconds,
            tries_max=wires.tries_max,
            back_off_seconds=wires.back_off_seconds,
        )

    def _work_on(self, claim: Claim) -> Outcome:
        given = claim.lot if self._takes_lot else claim
        function = cast(Callable[[object], object], self._function)
        try:
            with claim:
                function(given)
        except ClaimLost as lost:
            _log.warning("%s", lost)
            return "lost"
        except Exception:
            _log.exception("lot %s of job %s/%s failed", claim.lot, claim.namespace, claim.job)
            return "failed"
        return "completed"


def job(
    *,
    inputs: Sequence[Name],
    outputs: Sequence[Name] = (),
    namespace: str,
    name: str | None = None,
    newest: bool = False,
    lease_seconds: int | None = None,
    tries_max: int | None = None,
    back_off_seconds: int | None = None,
) -> Callable[[Callable[P, R]], JobFunction[P, R]]:
    """Make a function of one argument a worker; it is given the claim, or the lot if it says `lot`.

    Datasets are written NAMESPACE/NAME, or as plain names in the job's namespace. The job is
    called as the function unless it has a name of its own.
    """

    def decorate(function: Callable[P, R]) -> JobFunction[P, R]:
        wires = Wires(
            namespace=namespace,
            name=name or function.__name__,
            inputs=inputs,
            outputs=outputs,
            lease_seconds=lease_seconds,
            tries_max=tries_max,
            back_off_seconds=back_off_seconds,
        )
        return JobFunction(function, wires, newest=newest)

    return decorate


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the work as an interrupt does, so that the claim is given back."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
