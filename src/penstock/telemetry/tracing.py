"""Spans of the work on lots, exported to an OpenTelemetry collector. Off by default.

The trace id follows from the installation and the lot, and the lot of a deposit has the name of its
batch. All processes that work on a lot therefore add to one trace, also after a crash. Its first
span is the submission.
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
    """Export the spans of the block, if the setting is on; flush them at its end.

    Traces of one `scope` belong together: all processes of an installation share it.
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
    """Return whether this process exports spans."""
    return _tracer is not None


def span(
    name: str, *, lot: str = "", under: str = "", **attributes: str
) -> AbstractContextManager[None]:
    """Time the block as a span of a lot's trace, within the open span.

    `under` is the header of the span of the calling process. An error that leaves the block marks
    the span as failed.
    """
    tracer = _tracer if _tracer is not None or not under else _elsewhere()
    if tracer is None:
        return _NOTHING
    return tracer.span(name, lot, under, attributes)


def first(name: str, *, lot: str, began: Micros, **attributes: str) -> None:
    """Record the first span of the trace of a deposit; it ends now."""
    if _tracer is not None:
        _tracer.note(name, lot, began, attributes, is_first=True)


def note(name: str, *, lot: str, began: Micros, **attributes: str) -> None:
    """Record a span that was not a block; it ends now."""
    if _tracer is not None:
        _tracer.note(name, lot, began, attributes)


def fail(message: str) -> None:
    """Mark the open span as failed."""
    if _tracer is not None:
        _tracer.fail(message)


def header() -> str:
    """Return the open span as a `traceparent` for other processes, or an empty text."""
    return _tracer.header() if _tracer is not None else ""


def called_by(traceparent: str) -> AbstractContextManager[None]:
    """Link the spans of the block to the caller's span."""
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
    """Return the tracer of a process that runs one task; its spans are flushed at the end."""
    global _tracer, _is_missing  # noqa: PLW0603 (spans begin everywhere)
    with _opening:
        if _tracer is None and not _is_missing:
            try:
                _tracer = _open("")
            except Invalid:
                _is_missing = True
        return _tracer
