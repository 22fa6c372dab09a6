"""Counters and timings for Prometheus. No label names a dataset or a job."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from penstock.catalog.events.parse import EVENT_TYPES
from penstock.ingest.models import Tally
from penstock.locks.queries.overview import Backlog
from penstock.states import IngestState
from penstock.subscribers.commands import DeliveryState

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series of each counter, which has no use

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_SHOWN_STATES = [state for state in IngestState if state is not IngestState.DELETED]
_NO_TYPE = "NONE"  # job and dataset events, and run events without a type


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        events = Counter(
            "penstock_events_received",
            "OpenLineage events acknowledged, by event type",
            ["type"],
            registry=self.registry,
        )
        self._events = {kind: events.labels(kind) for kind in (*sorted(EVENT_TYPES), _NO_TYPE)}
        self._commit = Histogram(
            "penstock_commit_seconds",
            "Time to load, fold and commit one batch of writes",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._batch = Histogram(
            "penstock_batch_size",
            "Writes that shared one transaction",
            buckets=_SIZES,
            registry=self.registry,
        )
        self._queue = self._gauge("penstock_queue_length", "Writes that wait for the next batch")
        self._ingest_jobs = self._gauge(
            "penstock_ingest_jobs", "Ingest jobs, by the stage or state that they are in", "stage"
        )
        self._lots = self._gauge(
            "penstock_open_lots",
            "Lots that jobs have to work on, by state; of a job up to a thousand in each",
            "state",
        )
        self._oldest = self._gauge(
            "penstock_oldest_lot_seconds",
            "How long the lot that a job works on next has been ready, or a claim has gone on",
            "state",
        )
        self._subscribers = self._gauge(
            "penstock_subscribers",
            "Subscribers: told of everything, behind, or not taking what they are sent",
            "state",
        )
        self._requests = Counter(
            "penstock_http_requests",
            "Requests answered",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "penstock_http_seconds",
            "Time to answer a request",
            ["method", "route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._request_children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def _gauge(self, name: str, description: str, *labels: str) -> Gauge:
        return Gauge(name, description, labels, registry=self.registry)

    def watch_queue(self, length: Callable[[], int]) -> None:
        """Set the function that reports the queue length on each scrape."""
        self._queue.set_function(length)

    def queue_counted(self, tallies: Iterable[Tally] | None) -> None:
        """Record the ingest jobs in each stage; None is unknown."""
        self._ingest_jobs.clear()
        if tallies is None:
            return
        jobs = {tally.status: tally.jobs for tally in tallies}
        for state in _SHOWN_STATES:
            self._ingest_jobs.labels(str(state)).set(jobs.get(state, 0))

    def backlog_counted(
        self, backlog: Backlog | None, deliveries: Mapping[DeliveryState, int]
    ) -> None:
        """Record the open work of jobs and the deliveries to subscribers; None is unknown."""
        for gauge in (self._lots, self._oldest, self._subscribers):
            gauge.clear()
        if backlog is None:
            return
        for state, count in backlog.lots.items():
            self._lots.labels(state.lower()).set(count)
        self._oldest.labels("ready").set(backlog.ready_seconds)
        self._oldest.labels("running").set(backlog.running_seconds)
        for each in DeliveryState:
            self._subscribers.labels(each).set(deliveries.get(each, 0))

    def event_received(self, event_type: str) -> None:
        """Count an event that was committed."""
        self._events.get(event_type, self._events[_NO_TYPE]).inc()

    def committed(self, writes: int, seconds: float) -> None:
        """Record a committed batch."""
        self._batch.observe(writes)
        self._commit.observe(seconds)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count and time an answer; `route` is the path's template."""
        key = (method, route, status)
        children = self._request_children.get(key)
        if children is None:
            requests = self._requests.labels(method, route, str(status))
            children = (requests, self._seconds.labels(method, route))
            self._request_children[key] = children
        children[0].inc()
        children[1].observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
