"""Spans in OpenTelemetry's form. Imported only with traces on: the SDK loads slowly."""

import hashlib
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from penstock import __version__
from penstock.clock import Micros

_BATCH = re.compile(r"bid\d{10}")  # the lot of a deposit: its trace begins with the submission
_SERVICE = "penstock"
_UNNAMED = "unknown_service"
_HEADER = "traceparent"
_PREFIX = "penstock."
_SAMPLED = trace.TraceFlags(trace.TraceFlags.SAMPLED)

_caller: ContextVar[SpanContext | None] = ContextVar("caller", default=None)


class _Wanted(NamedTuple):
    trace_id: int
    span_id: int | None


class _Ids(RandomIdGenerator):
    """Random ids, except for spans with a given id."""

    def __init__(self) -> None:
        self.wanted: ContextVar[_Wanted | None] = ContextVar("wanted", default=None)

    def generate_trace_id(self) -> int:
        """Return the id of a new trace."""
        wanted = self.wanted.get()
        return wanted.trace_id if wanted else super().generate_trace_id()

    def generate_span_id(self) -> int:
        """Return the id of a new span."""
        wanted = self.wanted.get()
        return wanted.span_id if wanted and wanted.span_id else super().generate_span_id()


class Tracer:
    """Creates and exports spans, configured by the OTEL_… variables."""

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._ids = _Ids()
        self._provider = TracerProvider(resource=_resource(), id_generator=self._ids)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer(_SERVICE, __version__)

    def close(self) -> None:
        """Export the remaining spans."""
        self._provider.shutdown()

    @contextmanager
    def span(
        self, name: str, lot: str, under: str, attributes: Mapping[str, str]
    ) -> Iterator[None]:
        """Time the block."""
        with trace.use_span(self._begin(name, lot, under, attributes), end_on_exit=True):
            yield

    def note(
        self,
        name: str,
        lot: str,
        began: Micros,
        attributes: Mapping[str, str],
        *,
        is_first: bool = False,
    ) -> None:
        """Record a finished span."""
        self._begin(name, lot, "", attributes, began=began, is_first=is_first).end()

    def fail(self, message: str) -> None:
        """Mark the current span as failed."""
        trace.get_current_span().set_status(Status(StatusCode.ERROR, message))

    def header(self) -> str:
        """Return the header of the current span for another process."""
        here = trace.get_current_span().get_span_context()
        if not here.is_valid:
            return ""
        return f"00-{here.trace_id:032x}-{here.span_id:016x}-{here.trace_flags:02x}"

    @contextmanager
    def called_by(self, traceparent: str) -> Iterator[None]:
        """Link spans to a caller's span; ignore an unreadable header."""
        token = _caller.set(_parsed(traceparent))
        try:
            yield
        finally:
            _caller.reset(token)

    def _begin(
        self,
        name: str,
        lot: str,
        under: str,
        attributes: Mapping[str, str],
        *,
        began: Micros | None = None,
        is_first: bool = False,
    ) -> Span:
        here = trace.get_current_span().get_span_context()
        own = self._id("trace", lot, 16) if lot else 0
        links = [] if (caller := _caller.get()) is None else [Link(caller)]
        first = self._id("first", lot, 8)
        parent: SpanContext | None = None
        if under:
            parent = _parsed(under)
        elif here.is_valid and own in (0, here.trace_id):
            parent = here
        else:
            links += [Link(here)] if here.is_valid else []
            if _BATCH.fullmatch(lot) and not is_first:
                parent = SpanContext(own, first, is_remote=True, trace_flags=_SAMPLED)
        token = self._ids.wanted.set(_Wanted(own, first if is_first else None) if own else None)
        try:
            return self._tracer.start_span(
                name,
                context=_within(parent),
                attributes=_named({"lot": lot, **attributes}),
                links=links,
                # Finished spans take their begin from our clock, to the microsecond.
                start_time=time.time_ns() if began is None else began * 1000,
            )
        finally:
            self._ids.wanted.reset(token)

    def _id(self, kind: str, lot: str, size: int) -> int:
        text = "\x00".join((kind, self._scope, lot)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=size).digest(), "big")


def _resource() -> Resource:
    """Return the resource attributes; the service name is penstock by default."""
    found = Resource.create({"service.instance.id": f"{socket.gethostname()}:{os.getpid()}"})
    if not str(found.attributes.get(SERVICE_NAME, _UNNAMED)).startswith(_UNNAMED):
        return found
    return found.merge(Resource({SERVICE_NAME: _SERVICE, "service.version": __version__}))


def _within(parent: SpanContext | None) -> Context:
    """Return a context with a parent span and nothing else."""
    return trace.set_span_in_context(NonRecordingSpan(parent or trace.INVALID_SPAN_CONTEXT))


def _parsed(traceparent: str) -> SpanContext | None:
    context = TraceContextTextMapPropagator().extract({_HEADER: traceparent})
    found = trace.get_current_span(context).get_span_context()
    return found if found.is_valid else None


def _named(attributes: Mapping[str, str]) -> dict[str, str]:
    return {f"{_PREFIX}{name}": text for name, text in attributes.items() if text}
