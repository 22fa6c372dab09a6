"""Executors on this machine: processes, and threads of the caller's process for tests."""

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import count
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from penstock.arcs.executors.port import TaskExecutor
from penstock.arcs.workload.shell import end_running, kill_running
from penstock.telemetry.logs import Form, current_form, write_as

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

P = ParamSpec("P")
T = TypeVar("T")


class LocalThreads(ThreadPoolExecutor, TaskExecutor):
    """Threads of this process. A task that hangs cannot be ended."""


class _Process:
    """A process of this machine, and a pipe that tells it which tasks to end."""

    def __init__(self) -> None:
        context = get_context("spawn")
        receiver, self._orders = context.Pipe(duplex=False)
        self._ends = (receiver, self._orders)
        self.pool = ProcessPoolExecutor(
            1, mp_context=context, initializer=_begin_child, initargs=(current_form(), receiver)
        )

    def end(self, number: int) -> None:
        with suppress(OSError):  # the process has died
            self._orders.send(number)

    def close(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.pool.shutdown(wait, cancel_futures=cancel_futures)
        for end in self._ends:
            end.close()


class LocalProcesses(TaskExecutor):
    """Processes of this machine, each for one task at a time.

    Each is a pool of its own. If one is killed, only its own task is lost, and it is replaced.
    """

    def __init__(self, processes: int) -> None:
        self._threads = ThreadPoolExecutor(processes, "process")
        self._of_thread = threading.local()
        self._processes: list[_Process] = []
        self._numbers = count(1)
        self._tasks: dict[Future[Any], int] = {}
        self._by_task: dict[int, _Process] = {}
        self._changing = threading.Lock()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Run a function in one of the processes."""
        number = next(self._numbers)
        future = self._threads.submit(self._run, number, fn, *args, **kwargs)
        self._tasks[future] = number
        future.add_done_callback(self._tasks.pop)
        return future

    def abandon(self, future: "Future[Any]") -> None:
        """Cancel a task, or end it: it may hang and block its process.

        A running command is ended. For a function, its process is.
        """
        if future.cancel():
            return
        number = self._tasks.get(future, 0)
        with self._changing:
            if number in self._by_task:
                self._by_task[number].end(number)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let running tasks finish, then end the processes."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        for process in self._processes:
            process.close(wait, cancel_futures=cancel_futures)

    def _run(self, number: int, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        process = getattr(self._of_thread, "process", None) or self._start_process()
        with self._changing:
            self._by_task[number] = process
        try:
            return process.pool.submit(_run_task, number, fn, *args, **kwargs).result()
        except BrokenProcessPool:
            self._discard(process)
            self._start_process()
            raise
        finally:
            with self._changing:
                del self._by_task[number]

    def _start_process(self) -> _Process:
        process = self._of_thread.process = _Process()
        with self._changing:
            self._processes.append(process)
        return process

    def _discard(self, process: _Process) -> None:
        with self._changing:
            self._processes.remove(process)
        process.close()


class _ChildState:
    """The task that this child process runs, and the tasks that it must not run."""

    def __init__(self) -> None:
        self.number = 0
        self.ended: set[int] = set()


_child = _ChildState()


def _run_task(number: int, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    _child.number = number
    try:
        if number in _child.ended:
            raise CancelledError
        return fn(*args, **kwargs)
    finally:
        _child.number = 0


def _take_orders(orders: "Connection") -> None:
    """End the tasks whose numbers arrive, also those that have not begun yet."""
    with suppress(EOFError, OSError):  # the engine has died
        while number := orders.recv():
            _child.ended.add(number)
            if number == _child.number and not end_running():
                os._exit(1)


def _begin_child(form: Form | None, orders: "Connection") -> None:
    """Set up the log of a child process, its orders, and its end with the engine."""
    if form is not None:
        write_as(form)
    threading.Thread(target=_take_orders, args=(orders,), name="orders", daemon=True).start()
    _end_with_parent()


def _end_with_parent() -> None:
    """End this process and its command when the engine ends, in whatever way.

    Without this it would wait for ever: it holds the other end of its own queue.
    """
    # Ctrl-C reaches all processes of a terminal, but a task that has begun must finish.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None, "a process of the executor has a parent"

    def wait_for_parent() -> None:
        parent.join()
        kill_running()
        os._exit(1)

    threading.Thread(target=wait_for_parent, name="parent", daemon=True).start()
