"""The calls of the client, one for each thing that a server shows or does."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from penstock.client import documents as docs
from penstock.client import graphs
from penstock.client.arcs import ArcCalls
from penstock.client.claims import Ask, Claims, default_owner
from penstock.client.heartbeats import Heartbeats
from penstock.client.ingest import IngestCalls
from penstock.client.lots import LotCalls
from penstock.client.names import Name, read_name
from penstock.client.outbox import OutboxCalls
from penstock.client.transport import TIMEOUT_SECONDS, ApiError, Transport, Unreachable

__all__ = ["ApiError", "Client", "Unreachable"]

Direction = Literal["both", "upstream", "downstream"]
History = Literal["current", "all"]
Period = Literal["DAY", "WEEK"]
Kind = Literal["DATASET", "JOB"]
Event = Mapping[str, Any] | bytes
# A heartbeat that is not answered soon is better sent again.
HEARTBEAT_TIMEOUT_SECONDS = 5.0


class Client(LotCalls, ArcCalls, IngestCalls, OutboxCalls):
    """A server, as Python sees it.

    Calls block. One that is refused raises ApiError with `code` and `message`; where no server
    answers, Unreachable. Use it in a `with` block, or call `close`.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:5000",
        api_key: str | None = None,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._transport = Transport(url, api_key, timeout_seconds)
        self._call = self._transport.call
        self._upload = self._transport.upload
        self._heartbeats = Heartbeats(
            lambda: Client(url, api_key, timeout_seconds=HEARTBEAT_TIMEOUT_SECONDS)
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; claims are kept alive no more."""
        self._heartbeats.close()
        self._transport.close()

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._transport.url

    def claims(
        self,
        where: str,
        job: str | None = None,
        /,
        *,
        inputs: Sequence[Name] | None = None,
        outputs: Sequence[Name] | None = None,
        owner: str | None = None,
        count: int = 1,
        newest: bool = False,
        lease_seconds: int | None = None,
        wait: bool = False,
    ) -> Claims:
        """The lots that a job can work on, claimed `count` at a time: loop over them.

        The job is NAMESPACE/NAME, or its namespace and its name. With inputs and outputs it is
        wired first. The loop ends when nothing is found, and `why_nothing` of what is returned
        says why; with `wait` it waits for more.
        """
        named = read_name(where if job is None else (where, job))
        ask = Ask(
            namespace=named.namespace,
            job=named.name,
            owner=owner or default_owner(),
            count=count,
            newest=newest,
            lease_seconds=lease_seconds,
            inputs=inputs,
            outputs=outputs,
        )
        return Claims(self, self._heartbeats, ask, wait=wait)

    def emit(self, event: Event) -> None:
        """Send one OpenLineage event; it is committed when this returns."""
        self._call("POST", Any, "lineage", body=_body(event))

    def emit_batch(self, events: Sequence[Event]) -> docs.BatchResult:
        """Send OpenLineage events; each succeeds or fails alone."""
        body = b"[" + b",".join(map(_body, events)) + b"]"
        return self._call("POST", docs.BatchResult, "lineage", "batch", body=body)

    def events(
        self,
        *,
        before: str | None = None,
        after: str | None = None,
        oldest_first: bool = False,
        limit: int = 100,
        offset: int = 0,
    ) -> docs.Events:
        """The events whose time is in [after, before), as they were received."""
        return self._call(
            "GET",
            docs.Events,
            "events",
            "lineage",
            before=before,
            after=after,
            sortDirection="asc" if oldest_first else "desc",
            limit=limit,
            offset=offset,
        )

    def run_events(self, run_id: str, *, limit: int = 100, offset: int = 0) -> docs.Events:
        """The events received about a run, newest first."""
        return self._call(
            "GET", docs.Events, "jobs", "runs", run_id, "events", limit=limit, offset=offset
        )

    def lineage(
        self,
        node_id: str,
        *,
        depth: int = 20,
        direction: Direction = "both",
        history: History = "current",
        as_of: str | None = None,
    ) -> graphs.LineageGraph:
        """The graph of jobs and datasets around a node, now or as it was at a time."""
        return self._call(
            "GET",
            graphs.LineageGraph,
            "lineage",
            nodeId=node_id,
            depth=depth,
            direction=direction,
            history=history,
            asOf=as_of,
        )

    def column_lineage(
        self,
        node_id: str,
        *,
        depth: int = 20,
        with_downstream: bool = False,
        as_of: str | None = None,
    ) -> graphs.ColumnGraph:
        """The graph of fields around a field, a dataset or a job."""
        return self._call(
            "GET",
            graphs.ColumnGraph,
            "column-lineage",
            nodeId=node_id,
            depth=depth,
            withDownstream=with_downstream,
            asOf=as_of,
        )

    def upstream_runs(self, run_id: str, *, depth: int = 20) -> graphs.UpstreamRuns:
        """The runs that made what a run read, and those before them."""
        return self._call(
            "GET", graphs.UpstreamRuns, "runlineage", "upstream", runId=run_id, depth=depth
        )

    def namespaces(self, *, limit: int = 100, offset: int = 0) -> docs.Namespaces:
        """Namespaces by name."""
        return self._call("GET", docs.Namespaces, "namespaces", limit=limit, offset=offset)

    def delete_namespace(self, namespace: str) -> docs.Namespace:
        """Hide a namespace with its datasets and jobs."""
        return self._call("DELETE", docs.Namespace, "namespaces", namespace)

    def restore_namespace(self, namespace: str) -> docs.Namespace:
        """Bring back a hidden namespace."""
        return self._call("POST", docs.Namespace, "namespaces", namespace, "restore")

    def sources(self, *, limit: int = 100, offset: int = 0) -> docs.Sources:
        """Sources by name."""
        return self._call("GET", docs.Sources, "sources", limit=limit, offset=offset)

    def source(self, name: str) -> docs.Source:
        """One source."""
        return self._call("GET", docs.Source, "sources", name)

    def tags(self, *, limit: int = 100, offset: int = 0) -> docs.Tags:
        """Tags by name."""
        return self._call("GET", docs.Tags, "tags", limit=limit, offset=offset)

    def datasets(self, namespace: str, *, limit: int = 100, offset: int = 0) -> docs.Datasets:
        """The datasets of a namespace by name."""
        at = ("namespaces", namespace, "datasets")
        return self._call("GET", docs.Datasets, *at, limit=limit, offset=offset)

    def dataset(self, namespace: str, name: str) -> docs.Dataset:
        """One dataset."""
        return self._call("GET", docs.Dataset, *_dataset(namespace, name))

    def dataset_versions(
        self, namespace: str, name: str, *, limit: int = 100, offset: int = 0
    ) -> docs.DatasetVersions:
        """The versions of a dataset, newest first."""
        at = (*_dataset(namespace, name), "versions")
        return self._call("GET", docs.DatasetVersions, *at, limit=limit, offset=offset)

    def dataset_version(self, namespace: str, name: str, version: str) -> docs.DatasetVersion:
        """One version of a dataset, by its UUID or its number (`V2`)."""
        at = (*_dataset(namespace, name), "versions", version)
        return self._call("GET", docs.DatasetVersion, *at)

    def delete_dataset(self, namespace: str, name: str) -> docs.Dataset:
        """Hide a dataset."""
        return self._call("DELETE", docs.Dataset, *_dataset(namespace, name))

    def restore_dataset(self, namespace: str, name: str) -> docs.Dataset:
        """Bring back a hidden dataset."""
        return self._call("POST", docs.Dataset, *_dataset(namespace, name), "restore")

    def tag_dataset(
        self, namespace: str, name: str, tag: str, field: str | None = None
    ) -> docs.Dataset:
        """Put a tag on a dataset or one of its fields."""
        return self._call("POST", docs.Dataset, *_tag(namespace, name, tag, field))

    def untag_dataset(
        self, namespace: str, name: str, tag: str, field: str | None = None
    ) -> docs.Dataset:
        """Take a tag off a dataset or one of its fields."""
        return self._call("DELETE", docs.Dataset, *_tag(namespace, name, tag, field))

    def jobs(
        self,
        namespace: str | None = None,
        *,
        last_run_states: Sequence[str] = (),
        limit: int = 100,
        offset: int = 0,
    ) -> docs.Jobs:
        """Jobs, of one namespace or of all, the last updated first."""
        at = ("jobs",) if namespace is None else ("namespaces", namespace, "jobs")
        states = tuple(last_run_states)
        return self._call("GET", docs.Jobs, *at, lastRunStates=states, limit=limit, offset=offset)

    def job(self, namespace: str, name: str) -> docs.Job:
        """One job with its newest runs."""
        return self._call("GET", docs.Job, *_job(namespace, name))

    def job_versions(
        self, namespace: str, name: str, *, limit: int = 100, offset: int = 0
    ) -> docs.JobVersions:
        """The versions of a job, newest first."""
        at = (*_job(namespace, name), "versions")
        return self._call("GET", docs.JobVersions, *at, limit=limit, offset=offset)

    def job_runs(
        self, namespace: str, name: str, *, limit: int = 100, offset: int = 0
    ) -> docs.Runs:
        """The runs of a job, newest first."""
        at = (*_job(namespace, name), "runs")
        return self._call("GET", docs.Runs, *at, limit=limit, offset=offset)

    def delete_job(self, namespace: str, name: str) -> docs.Job:
        """Hide a job."""
        return self._call("DELETE", docs.Job, *_job(namespace, name))

    def restore_job(self, namespace: str, name: str) -> docs.Job:
        """Bring back a hidden job."""
        return self._call("POST", docs.Job, *_job(namespace, name), "restore")

    def run(self, run_id: str) -> docs.Run:
        """One run."""
        return self._call("GET", docs.Run, "jobs", "runs", run_id)

    def search(
        self,
        words: str,
        *,
        kind: Kind | None = None,
        namespace: str | None = None,
        by_update: bool = False,
        limit: int = 10,
        offset: int = 0,
    ) -> docs.SearchResults:
        """Datasets and jobs that have all these words, by name or the last updated first."""
        return self._call(
            "GET",
            docs.SearchResults,
            "search",
            q=words,
            filter=kind,
            namespace=namespace,
            sort="UPDATE_AT" if by_update else "NAME",
            limit=limit,
            offset=offset,
        )

    def event_stats(
        self, period: Period = "DAY", timezone: str = "UTC"
    ) -> tuple[docs.EventInterval, ...]:
        """How many events there were, by hour of a day or by day of a week."""
        shape = tuple[docs.EventInterval, ...]
        return self._call("GET", shape, "stats", "lineage-events", period=period, timezone=timezone)

    def count_stats(
        self,
        what: Literal["datasets", "jobs", "sources"],
        period: Period = "DAY",
        timezone: str = "UTC",
    ) -> tuple[docs.IntervalCount, ...]:
        """How many datasets, jobs or sources there were at the end of each interval."""
        shape = tuple[docs.IntervalCount, ...]
        return self._call("GET", shape, "stats", what, period=period, timezone=timezone)

    def audit(self, *, limit: int = 100, offset: int = 0) -> docs.AuditLog:
        """What administrators did, newest first."""
        return self._call("GET", docs.AuditLog, "audit", limit=limit, offset=offset)


def _body(event: Event) -> bytes:
    return event if isinstance(event, bytes) else msgspec.json.encode(event)


def _dataset(namespace: str, name: str) -> tuple[str, ...]:
    return "namespaces", namespace, "datasets", name


def _tag(namespace: str, name: str, tag: str, field: str | None) -> tuple[str, ...]:
    on_field = () if field is None else ("fields", field)
    return *_dataset(namespace, name), *on_field, "tags", tag


def _job(namespace: str, name: str) -> tuple[str, ...]:
    return "namespaces", namespace, "jobs", name
