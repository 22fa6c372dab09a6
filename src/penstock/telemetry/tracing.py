"""Spans of the work on lots, sent to an OpenTelemetry collector. Off unless a setting asks for it.

The id of a trace follows from the installation and the lot, and the lot of a deposit is named like
its batch: so whoever works on it adds to one trace, in whatever process, and after any crash. Its
first span is the submission.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from penstock.clock import Micros
from penstock.errors import Invalid

if TYPE_CHECKING:
    from penstock.telemetry.otlp import Tracer

OFF = "off"

_NOTHING = nullcontext()
_opening = threading.Lock()
_tracer: "Tracer | None" = None
_is_missing = False


@contextmanager
def on(traces: str, scope: str) -> Iterator[None]:
    """Have spans sent while the block lasts, if the setting is so; at its end all of them are.

    Traces of one `scope` belong together: all processes of an installation have the same.
    """
    global _tracer  # noqa: PLW0603 (spans begin everywhere)
    if traces == OFF:
        yield
        return
    tracer = _tracer = _open(scope)
    try:
        yield
    finally:
        _tracer = None
        tracer.close()


def is_on() -> bool:
    """Whether this process sends spans."""
    return _tracer is not None


def span(
    name: str, *, lot: str = "", under: str = "", **attributes: str
) -> AbstractContextManager[None]:
    """Time the block as a span of a lot's trace, within the span that is open here if there is one.

    `under` is the header of a span of another process that had this work done. An error that
    leaves the block marks the span as failed.
    """
    tracer = _tracer if _tracer is not None or not under else _elsewhere()
    if tracer is None:
        return _NOTHING
    return tracer.span(name, lot, under, attributes)


def first(name: str, *, lot: str, began: Micros, **attributes: str) -> None:
    """The span that the trace of a deposit begins with; it ends now."""
    if _tracer is not None:
        _tracer.note(name, lot, began, attributes, is_first=True)


def note(name: str, *, lot: str, began: Micros, **attributes: str) -> None:
    """A span of what was not a block; it ends now."""
    if _tracer is not None:
        _tracer.note(name, lot, began, attributes)


def fail(message: str) -> None:
    """Mark the span that is open here as failed."""
    if _tracer is not None:
        _tracer.fail(message)


def header() -> str:
    """The span that is open here as a `traceparent`, for work in other processes; else nothing."""
    return _tracer.header() if _tracer is not None else ""


def called_by(traceparent: str) -> AbstractContextManager[None]:
    """Have spans that begin in the block point to whoever asked for the work."""
    return _tracer.called_by(traceparent) if _tracer is not None else _NOTHING


def _open(scope: str) -> "Tracer":
    try:
        from penstock.telemetry.otlp import Tracer
    except ImportError:
        raise Invalid(
            "traces are asked for, but OpenTelemetry is not installed here; install it with: "
            "pip install 'penstock[otel]', or set traces = off"
        ) from None
    return Tracer(scope)


def _elsewhere() -> "Tracer | None":
    """The tracer of a process that was only given a task; what it sent is complete at its end."""
    global _tracer, _is_missing  # noqa: PLW0603 (spans begin everywhere)
    with _opening:
        if _tracer is None and not _is_missing:
            try:
                _tracer = _open("")
            except Invalid:
                _is_missing = True
        return _tracer
