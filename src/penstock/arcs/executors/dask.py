"""The executor on a Dask cluster."""

import importlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any, ClassVar, ParamSpec, TypeVar

from penstock.arcs.executors.port import TaskExecutor
from penstock.errors import Away, Invalid, Unavailable

P = ParamSpec("P")
T = TypeVar("T")

_CONNECT_SECONDS = 10
_RECONNECT_SECONDS = 3  # shorter, because other callers wait meanwhile
_PROBE_SECONDS = 10
_ANSWER_SECONDS = 10
_CLOSED = "ClosedClientError"
_CLOSED_STATUS = "closed"


class DaskCluster(TaskExecutor):
    """The workers of a Dask cluster.

    Dask runs a task again if it has lost the worker. A client that has lost its scheduler drops
    all its futures, and closes for good after a while. It does not notice a scheduler that hangs,
    so a caller that waits for a task calls `check`.
    """

    repeats_tasks: ClassVar[bool] = True

    def __init__(self, connect: Callable[[float], Any], address: str) -> None:
        self._connect = connect
        self._address = address
        self._lock = threading.Lock()
        self._probed_at = time.monotonic()
        self._open(_CONNECT_SECONDS)

    def _open(self, seconds: float) -> None:
        self._client = self._connect(seconds)
        # Penstock has its own retries and priorities: Dask must not run a failed task again.
        self._executor: Executor = self._client.get_executor(pure=False, retries=0)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Run a function on one of the workers."""
        self._check_connected()
        try:
            return self._executor.submit(fn, *args, **kwargs)
        except Exception as error:
            if type(error).__name__ != _CLOSED:  # the class can only be imported with Dask
                raise
            raise self._away(str(error)) from None

    def take_back(self, future: "Future[Any]") -> bool:
        """Return False: the client does not know which tasks have begun."""
        return False

    def check(self) -> None:
        """Raise Away if the scheduler does not answer; it is asked once in _PROBE_SECONDS."""
        self._check_connected()
        with self._lock:
            if time.monotonic() < self._probed_at + _PROBE_SECONDS:
                return
            self._probed_at = time.monotonic()
            client = self._client
        try:
            client.sync(client.scheduler.echo, callback_timeout=_ANSWER_SECONDS)
        except (OSError, TimeoutError, AttributeError) as error:  # it may close meanwhile
            raise self._away(str(error) or type(error).__name__) from None

    def probe(self) -> None:
        """Reconnect if the client is closed, and ask the scheduler; raise Away if it fails."""
        with self._lock:
            if self._client.status == _CLOSED_STATUS:
                try:
                    self._open(_RECONNECT_SECONDS)
                except Unavailable as error:
                    raise Away(str(error)) from None
            self._probed_at = 0.0
        self.check()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Disconnect. The scheduler drops the tasks that are left."""
        with suppress(OSError, TimeoutError):
            self._client.close(timeout=_CONNECT_SECONDS)

    def _check_connected(self) -> None:
        if self._client.status != "running":
            raise self._away("the connection was lost")

    def _away(self, reason: str) -> Away:
        return Away(f"the Dask scheduler at {self._address} does not answer: {reason}; start it")


def connect_dask(address: str) -> DaskCluster:
    """Connect to the scheduler at HOST:PORT."""
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise Invalid(
            "Dask is not installed here; install it with: pip install 'penstock[dask]'"
        ) from None

    def connect(seconds: float) -> Any:
        try:
            return distributed.Client(f"tcp://{address}", timeout=seconds, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise Unavailable(
                f"the Dask scheduler at {address} cannot be reached: {error}; start it, or name "
                "another"
            ) from None

    return DaskCluster(connect, address)
