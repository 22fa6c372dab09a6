"""Executors: where tasks run. The processes of this machine, or a Dask cluster."""

import importlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process
from typing import Any, ParamSpec, TypeVar

from penstock.arcs.commanding import kill_running
from penstock.errors import Away, Invalid, Unavailable
from penstock.logs import Form, current_form, write_as

P = ParamSpec("P")
T = TypeVar("T")

LOCAL = "local"
_DASK = "dask://"
_CONNECT_SECONDS = 10
_AGAIN_SECONDS = 3  # for a scheduler that was there before; others wait meanwhile
_ASK_SECONDS = 10
_ANSWER_SECONDS = 10
_CLOSED = "ClosedClientError"
_CLOSED_STATUS = "closed"


class LocalProcesses(Executor):
    """Processes of this machine, one for each task at a time.

    Each is a pool of its own: one that is killed takes only its own task with it, and is replaced.
    """

    def __init__(self, processes: int) -> None:
        self._threads = ThreadPoolExecutor(processes, "process")
        self._own = threading.local()
        self._pools: list[ProcessPoolExecutor] = []
        self._changing = threading.Lock()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Have a function run in one of the processes."""
        return self._threads.submit(self._run, fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let what is running end, and the processes with it."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        for pool in self._pools:
            pool.shutdown(wait, cancel_futures=cancel_futures)

    def _run(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        pool = getattr(self._own, "pool", None) or self._begin()
        try:
            return pool.submit(fn, *args, **kwargs).result()
        except BrokenProcessPool:
            self._forget(pool)
            self._begin()
            raise

    def _begin(self) -> ProcessPoolExecutor:
        pool = ProcessPoolExecutor(
            1, mp_context=get_context("spawn"), initializer=_begin_child, initargs=(current_form(),)
        )
        self._own.pool = pool
        with self._changing:
            self._pools.append(pool)
        return pool

    def _forget(self, pool: ProcessPoolExecutor) -> None:
        """Let go of the pipes of a pool whose process was killed."""
        with self._changing:
            self._pools.remove(pool)
        pool.shutdown()


def _begin_child(form: Form | None) -> None:
    """Write log lines as the engine does, and end when it does."""
    if form is not None:
        write_as(form)
    _end_with_parent()


def _end_with_parent() -> None:
    """Have this process, and the command that it runs, end when the engine does, however it ends.

    Left to itself it would wait for ever: it holds the other end of its own queue.
    """
    # Ctrl-C reaches the whole group of a terminal: what has begun is to be finished all the same.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None, "a process of the executor has a parent"

    def follow() -> None:
        parent.join()
        kill_running()
        os._exit(1)

    threading.Thread(target=follow, name="parent", daemon=True).start()


class DaskCluster(Executor):
    """The workers of a Dask cluster.

    Dask itself runs a task again whose worker it has lost: each run must write in its own place.
    A client that has lost its scheduler drops all its futures, and after a while closes for good;
    of a scheduler that hangs it knows nothing. So whoever waits for a task calls `check`.
    """

    def __init__(self, connect: Callable[[float], Any], address: str) -> None:
        self._connect = connect
        self._address = address
        self._turn = threading.Lock()
        self._asked_at = time.monotonic()
        self._begin(_CONNECT_SECONDS)

    def _begin(self, seconds: float) -> None:
        self._client = self._connect(seconds)
        # Retries, leases and priorities are ours: what failed is not run again by Dask.
        self._executor: Executor = self._client.get_executor(pure=False, retries=0)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Have a function run on one of the workers."""
        self._check_connected()
        try:
            return self._executor.submit(fn, *args, **kwargs)
        except Exception as error:
            if type(error).__name__ != _CLOSED:  # a class that is loaded with Dask only
                raise
            raise self._away(str(error)) from None

    def check(self) -> None:
        """Raise Away if the scheduler is; it is asked itself only once in a while."""
        self._check_connected()
        with self._turn:
            if time.monotonic() < self._asked_at + _ASK_SECONDS:
                return
            self._asked_at = time.monotonic()
            client = self._client
        try:
            client.sync(client.scheduler.echo, callback_timeout=_ANSWER_SECONDS)
        except (OSError, TimeoutError, AttributeError) as error:  # it closes itself meanwhile
            raise self._away(str(error) or type(error).__name__) from None

    def ask(self) -> None:
        """Connect anew if the connection is lost for good; raises Away if that cannot be done."""
        with self._turn:
            if self._client.status == _CLOSED_STATUS:
                try:
                    self._begin(_AGAIN_SECONDS)
                except Unavailable as error:
                    raise Away(str(error)) from None
            self._asked_at = 0.0
        self.check()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let go of the scheduler, which drops what is still wanted: nobody waits for it now."""
        with suppress(OSError, TimeoutError):
            self._client.close(timeout=_CONNECT_SECONDS)

    def _check_connected(self) -> None:
        if self._client.status != "running":
            raise self._away("the connection was lost")

    def _away(self, reason: str) -> Away:
        return Away(f"the Dask scheduler at {self._address} does not answer: {reason}; start it")


@contextmanager
def open_executor(where: str, processes: int) -> Iterator[Executor]:
    """The executor that a setting names: `local`, or `dask://HOST:PORT`."""
    if where == LOCAL:
        with LocalProcesses(processes) as executor:
            yield executor
    elif where.startswith(_DASK):
        with _dask(where.removeprefix(_DASK)) as executor:
            yield executor
    else:
        raise Invalid(f"{where!r} is no executor; write local, or dask://HOST:PORT")


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
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

    with DaskCluster(connect, address) as executor:
        yield executor
