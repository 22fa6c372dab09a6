"""A collector of OpenTelemetry spans for tests. It listens and decodes the requests."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.web import Web, status

_PATH = "/v1/traces"


class SpanRecord(NamedTuple):
    """A span as it arrived. Ids are hexadecimal; a failure is its status message."""

    name: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, str]
    links: list[str]
    process: str
    failure: str
    seconds: float


class Collector:
    """An endpoint for spans."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self.url = web.url
        web.on(_PATH, status(200))
        self.variables = {
            "PENSTOCK_TRACES": "otlp",
            "OTEL_EXPORTER_OTLP_ENDPOINT": web.url,
            "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
        }

    def spans(self) -> list[SpanRecord]:
        """Return every span that has arrived so far, in order of start."""
        bodies = [request.body for request in self._web.requests if request.path == _PATH]
        spans = [
            (
                span.start_time_unix_nano,
                _record(span, _texts(about.resource.attributes)["service.instance.id"]),
            )
            for body in bodies
            for about in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in about.scope_spans
            for span in scope.spans
        ]
        return [span for _, span in sorted(spans, key=lambda pair: pair[0])]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector for a block."""
    with Web() as web:
        yield Collector(web)


def _record(span: Span, process: str) -> SpanRecord:
    return SpanRecord(
        name=span.name,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        attributes=_texts(span.attributes),
        links=[f"{link.trace_id.hex()}-{link.span_id.hex()}" for link in span.links],
        process=process,
        failure=span.status.message,
        seconds=(span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
    )


def _texts(pairs: Iterable[KeyValue]) -> dict[str, str]:
    return {pair.key: pair.value.string_value for pair in pairs}
