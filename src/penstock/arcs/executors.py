"""Executors: where tasks run. The processes of this machine, or a Dask cluster."""

import importlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from typing import Any, ParamSpec, TypeVar

from penstock.arcs.commanding import kill_running
from penstock.errors import Invalid, Unavailable
from penstock.logs import Form, current_form, write_as

P = ParamSpec("P")
T = TypeVar("T")

LOCAL = "local"
_DASK = "dask://"
_CONNECT_SECONDS = 10


class LocalProcesses(Executor):
    """Processes of this machine, one for each task at a time.

    Each is a pool of its own: one that is killed takes only its own task with it, and is replaced.
    """

    def __init__(self, processes: int) -> None:
        self._threads = ThreadPoolExecutor(processes, "process")
        self._own = threading.local()
        self._pools: list[ProcessPoolExecutor] = []
        self._adding = threading.Lock()

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
            self._begin()
            raise

    def _begin(self) -> ProcessPoolExecutor:
        pool = ProcessPoolExecutor(
            1, mp_context=get_context("spawn"), initializer=_begin_child, initargs=(current_form(),)
        )
        self._own.pool = pool
        with self._adding:
            self._pools.append(pool)
        return pool


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
    """

    def __init__(self, client: Any) -> None:
        # Retries, leases and priorities are ours: what failed is not run again by Dask.
        self._executor: Executor = client.get_executor(pure=False, retries=0)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Have a function run on one of the workers."""
        return self._executor.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let what is running end."""
        self._executor.shutdown(wait)


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
    try:
        client = distributed.Client(
            f"tcp://{address}", timeout=_CONNECT_SECONDS, set_as_default=False
        )
    except (OSError, TimeoutError) as error:
        raise Unavailable(
            f"the Dask scheduler at {address} cannot be reached: {error}; start it, or name another"
        ) from None
    try:
        with DaskCluster(client) as executor:
            yield executor
    finally:
        client.close()
