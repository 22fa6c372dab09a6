"""Executors: where tasks run. The processes of this machine, or a Dask cluster."""

import importlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import (
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from itertools import count
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from penstock.arcs.workload.shell import end_running, kill_running
from penstock.errors import Away, Invalid, Unavailable
from penstock.telemetry.logs import Form, current_form, write_as

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

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


class _Process:
    """A process of this machine, and the way to tell it that what it does is of no use any more."""

    def __init__(self) -> None:
        context = get_context("spawn")
        taken, self._orders = context.Pipe(duplex=False)
        self._ends = (taken, self._orders)
        self.pool = ProcessPoolExecutor(
            1, mp_context=context, initializer=_begin_child, initargs=(current_form(), taken)
        )

    def end(self, number: int) -> None:
        """Have it end this task, if it is still at it."""
        with suppress(OSError):  # it has died
            self._orders.send(number)

    def close(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let what is running end, and the process with it."""
        self.pool.shutdown(wait, cancel_futures=cancel_futures)
        for end in self._ends:
            end.close()


class LocalProcesses(Executor):
    """Processes of this machine, one for each task at a time.

    Each is a pool of its own: one that is killed takes only its own task with it, and is replaced.
    """

    def __init__(self, processes: int) -> None:
        self._threads = ThreadPoolExecutor(processes, "process")
        self._own = threading.local()
        self._processes: list[_Process] = []
        self._numbers = count(1)
        self._tasks: dict[Future[Any], int] = {}
        self._at: dict[int, _Process] = {}  # by the number of its task
        self._changing = threading.Lock()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Have a function run in one of the processes."""
        number = next(self._numbers)
        future = self._threads.submit(self._run, number, fn, *args, **kwargs)
        self._tasks[future] = number
        future.add_done_callback(self._tasks.pop)
        return future

    def end(self, future: "Future[Any]") -> None:
        """Have what was begun end, as nobody waits for it: it may hang, and would keep others out.

        A command is ended, and so is the process of a function.
        """
        number = self._tasks.get(future, 0)
        with self._changing:
            if number in self._at:
                self._at[number].end(number)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let what is running end, and the processes with it."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        for process in self._processes:
            process.close(wait, cancel_futures=cancel_futures)

    def _run(self, number: int, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        process = getattr(self._own, "process", None) or self._begin()
        with self._changing:
            self._at[number] = process
        try:
            return process.pool.submit(_do, number, fn, *args, **kwargs).result()
        except BrokenProcessPool:
            self._forget(process)
            self._begin()
            raise
        finally:
            with self._changing:
                del self._at[number]

    def _begin(self) -> _Process:
        process = self._own.process = _Process()
        with self._changing:
            self._processes.append(process)
        return process

    def _forget(self, process: _Process) -> None:
        """Let go of the pipes of a process that was killed."""
        with self._changing:
            self._processes.remove(process)
        process.close()


class _Here:
    """What this process, which is one of an engine's, does."""

    def __init__(self) -> None:
        self.number = 0
        self.ended: set[int] = set()


_here = _Here()


def _do(number: int, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Do a task, unless it is of no use any more."""
    _here.number = number
    try:
        if number in _here.ended:
            raise CancelledError
        return fn(*args, **kwargs)
    finally:
        _here.number = 0


def _take_orders(orders: "Connection") -> None:
    """End tasks that are of no use any more, those also that have not come yet."""
    with suppress(EOFError, OSError):  # the engine has died
        while number := orders.recv():
            _here.ended.add(number)
            if number == _here.number and not end_running():
                os._exit(1)


def _begin_child(form: Form | None, orders: "Connection") -> None:
    """Write log lines as the engine does, do what it says, and end when it does."""
    if form is not None:
        write_as(form)
    threading.Thread(target=_take_orders, args=(orders,), name="orders", daemon=True).start()
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
