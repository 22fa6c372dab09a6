"""Running a task, in any executor.

This code runs in other processes and on other machines. It uses the object store, and the database
only to renew the lease.
"""

import ctypes
import importlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any
from uuid import uuid4

import msgspec

from penstock.arcs.engine.leases import renewing
from penstock.arcs.workload.command import run_command_task
from penstock.arcs.workload.task import Context, Task, TaskResult, safe_text
from penstock.errors import Away, NotFound, PenstockError
from penstock.lots.manifest_files import put_manifest
from penstock.lots.manifests import RETRY_MARK
from penstock.objects.uris import open_store
from penstock.telemetry import logs, tracing


class TimedOut(Exception):
    """A workload ran longer than its limit."""


class _TimeIsUp(BaseException):
    """The interruption of a workload, which must not take it for an error of its own."""


def load_function(name: str) -> Callable[..., Any]:
    """Import the function of `module:function`."""
    module, _, path = name.partition(":")
    try:
        target: Any = importlib.import_module(module)
        for part in path.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError) as error:
        raise NotFound(
            f"there is no function {name}: {error}; it must be importable where workloads run"
        ) from None
    # The decorator replaces a function, and keeps it in this attribute.
    function: Callable[..., Any] = getattr(target, "__wrapped_workload__", target)
    return function


def call(name: str, context: object, timeout_seconds: float | None) -> object:
    """Call a function by name; raise TimedOut if it takes too long.

    On the main thread a signal interrupts even foreign code that blocks. Dask calls functions on
    other threads, where such code is not interrupted.
    """
    function = load_function(name)
    if timeout_seconds is None:
        return function(context)
    is_main = threading.current_thread() is threading.main_thread()
    try:
        with (_alarm if is_main else _interruption)(timeout_seconds):
            return function(context)
    except _TimeIsUp:
        raise TimedOut(f"it ran longer than {timeout_seconds} seconds") from None


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise _TimeIsUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _interruption(seconds: float) -> Iterator[None]:
    thread = ctypes.c_ulong(threading.get_ident())
    lock = threading.Lock()
    is_over = False

    def interrupt() -> None:
        with lock:
            if not is_over:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(_TimeIsUp))

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            is_over = True
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                thread, None
            )  # cancel an interruption that has not arrived
        timer.cancel()


def run_apart(task: Task) -> TaskResult:
    """Run a task with an attempt name of its own, so that a second run of it does no harm."""
    claim = task.attempt.partition(RETRY_MARK)[0]
    attempt = f"{claim}{RETRY_MARK}{uuid4().hex[:12]}"
    return run_task(msgspec.structs.replace(task, attempt=attempt))


def run_task(task: Task) -> TaskResult:
    """Run a workload and write the manifests of its outputs; never raise for the workload."""
    ids = {
        "lot": task.lot,
        "part": task.part,
        "run": task.run_id,
        "job": f"{task.namespace}/{task.arc}",
        "arc": task.arc,
    }
    name = "arc.part" if task.part else "arc.task"
    with logs.about(**ids), tracing.span(name, under=task.trace, **ids):
        result = _run(task)
        if result.error:
            tracing.fail(result.error)
    return result


def _run(task: Task) -> TaskResult:
    try:
        store = open_store(task.objects, is_marked=task.is_marked)
        context = Context(task, store)
        with renewing(task.lease, context.lost.set):
            if task.workload.function is not None:
                call(task.workload.function, context, task.workload.timeout_seconds)
            else:
                run_command_task(task, context)
            for function in task.checks:
                _run_check(function, context, task.workload.timeout_seconds)
        notes = tuple(put_manifest(store, manifest) for manifest in context.manifests())
        return TaskResult(notes, checks=context.checks())
    except PenstockError as error:
        return TaskResult(error=safe_text(str(error)), is_away=isinstance(error, Away))
    except (Exception, SystemExit) as error:
        return TaskResult(error=safe_text(f"{type(error).__name__}: {error}"))


def _run_check(function: str, context: Context, timeout_seconds: int | None) -> None:
    """Run a check on the output; a failed assert is a failed check."""
    name, before = function.rpartition(":")[2], context.checks()
    try:
        answer = call(function, context, timeout_seconds)
    except AssertionError as error:
        context.check(name, False, detail=str(error))
        return
    if answer is not None or context.checks() == before:
        context.check(name, answer is None or bool(answer))
