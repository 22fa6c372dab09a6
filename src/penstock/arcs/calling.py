"""Calling a function that is a workload, for no longer than it may take."""

import ctypes
import importlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from penstock.errors import NotFound


class TimedOut(Exception):
    """A workload ran longer than it may."""


class _TimeIsUp(BaseException):
    """Raised inside of a workload, which is not to mistake it for an error of its own."""


def load_function(name: str) -> Callable[..., Any]:
    """The function that `module:function` names."""
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise NotFound(
            f"there is no function {name}: {error}; it must be importable where workloads run"
        ) from None
    # A function that was made an arc by the decorator is found under its own name.
    function: Callable[..., Any] = getattr(found, "__wrapped_workload__", found)
    return function


def call(name: str, context: object, timeout_seconds: float | None) -> object:
    """What the function that a name stands for returns; raises TimedOut if it takes too long.

    One that waits in foreign code for ever is only interrupted on the main thread, where it is
    in processes of ours: Dask calls functions on other threads.
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
    turn = threading.Lock()
    is_over = False

    def interrupt() -> None:
        with turn:
            if not is_over:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(_TimeIsUp))

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with turn:
            is_over = True
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, None)  # one that has not arrived
        timer.cancel()
