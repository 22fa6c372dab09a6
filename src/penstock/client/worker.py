"""Functions as arcs (`@penstock.arc`) and as workers of jobs (`@penstock.job`)."""

import inspect
import logging
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import update_wrapper
from types import FrameType
from typing import Any, Generic, Literal, ParamSpec, TypeVar, cast

from msgspec import Struct

from penstock.client.claims import Claim, ClaimLost
from penstock.client.names import Name
from penstock.client.sync import Client
from penstock.config import load
from penstock.errors import Invalid

F = TypeVar("F", bound=Callable[..., Any])
Dataset = str | Mapping[str, Any]

MARK = "penstock_arc"


def arc(
    *,
    inputs: Sequence[Dataset],
    outputs: Sequence[Dataset],
    namespace: str | None = None,
    name: str | None = None,
    project: str | None = None,
    version: str | None = None,
    description: str | None = None,
    parts: str | Mapping[str, Any] | None = None,
    retry: Mapping[str, int] | None = None,
    running_max: int | None = None,
    on_empty: Literal["run", "skip"] | None = None,
    stale: Literal["rerun", "hold", "ignore"] | None = None,
    checks: Sequence[str] | None = None,
    newest_first: bool | None = None,
    timeout_seconds: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> Callable[[F], F]:
    """Declare that a function is the workload of an arc; `penstock arcs apply MODULE` applies it.

    The function gets the lot's context: its inputs and outputs. It stays as it is
    and can be called as before. Datasets are NAME, NAMESPACE/NAME, or mappings such as
    `{"dataset": "rates", "subscribe": False}`. Parts are a pattern in the URIs of the inputs, or a
    mapping with `pattern`, `bytes_max` or `function`. Checks are functions, as `module:function`,
    that check the output. Omitted arguments have their default.
    """

    def decorate(function: F) -> F:
        _check_place(function)
        fields: dict[str, object] = {
            "namespace": namespace,
            "project": project,
            "version": version,
            "description": description or _first_line(function.__doc__),
            "parts": parts,
            "retry": retry,
            "running_max": running_max,
            "on_empty": on_empty,
            "stale": stale,
            "checks": list(checks) if checks is not None else None,
            "newest_first": newest_first,
        }
        workload: dict[str, object] = {
            "function": f"{function.__module__}:{function.__qualname__}",
            "timeout_seconds": timeout_seconds,
            "environment": environment,
        }
        declared = {
            "name": name or function.__name__,
            "inputs": list(inputs),
            "outputs": list(outputs),
            **_given(fields),
            "workload": _given(workload),
        }
        setattr(function, MARK, declared)
        return function

    return decorate


def _check_place(function: Callable[..., object]) -> None:
    if "<locals>" in function.__qualname__:
        raise Invalid(
            f"{function.__qualname__} cannot be an arc: other processes have to find it; "
            "define it at the top of a module"
        )


def _given(values: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in values.items() if value is not None}


def _first_line(text: str | None) -> str | None:
    return text.strip().splitlines()[0] if text and text.strip() else None


P = ParamSpec("P")
R = TypeVar("R")
Outcome = Literal["completed", "failed", "lost"]

_log = logging.getLogger(__name__)


class Worked(Struct, frozen=True):
    """The results of a worker."""

    completed: int = 0
    failed: int = 0
    lost: int = 0


class Wires(Struct, frozen=True):
    """The wiring of a job; None leaves a field as it is."""

    namespace: str
    name: str
    inputs: Sequence[Name]
    outputs: Sequence[Name]
    lease_seconds: int | None
    tries_max: int | None
    back_off_seconds: int | None


class JobFunction(Generic[P, R]):
    """A function that also works on the lots of a job."""

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
        """Claim lots and call the function for each, until no work is left.

        With `loop` it waits for more work until it is interrupted. If the function raises, the lot
        fails, the error is logged, and the next lot follows. The server and the key come from the
        settings (PENSTOCK_URL, PENSTOCK_API_KEY) unless `url` is set.
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
    """Make a function of one argument a worker. It gets the claim, or the lot if it is named `lot`.

    Datasets are written NAMESPACE/NAME, or as plain names in the job's namespace. The job is
    named as the function by default.
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
    """Treat SIGTERM as an interrupt, so that the claim is released."""

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
