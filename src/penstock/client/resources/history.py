"""The calls of the client about runs, events, lineage and search."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from penstock import ids
from penstock.client.operation import call
from penstock.client.request import Empty, Request, get, nothing, post, said, written
from penstock.schema import lineage as graphs
from penstock.schema.catalog import AllRuns, BatchResult, Events, Run, RunFacets, Runs
from penstock.schema.lineage import RunFamily
from penstock.schema.search import SearchRecords, SearchResults

Direction = Literal["both", "upstream", "downstream"]
History = Literal["current", "all"]
Kind = Literal["DATASET", "JOB"]
RunState = Literal["NEW", "RUNNING", "COMPLETED", "FAILED", "ABORTED"]
EventKind = Literal["RUN", "JOB", "DATASET"]
Event = Mapping[str, Any] | bytes


class HistoryCalls:
    """What a server knows of what happened, and what was made from what."""

    @call
    def emit(self, event: Event) -> Request[None]:
        """Send one OpenLineage event; it is committed when this returns."""
        return post(Empty, "lineage", body=_body(event), repeatable=True).then(nothing)

    @call
    def emit_batch(self, events: Sequence[Event]) -> Request[BatchResult]:
        """Send OpenLineage events; each succeeds or fails alone."""
        body = b"[" + b",".join(map(_body, events)) + b"]"
        return post(BatchResult, "lineage", "batch", body=body, repeatable=True)

    @call
    def events(
        self,
        namespace: str | None = None,
        *,
        before: str | None = None,
        after: str | None = None,
        oldest_first: bool = False,
        types: Sequence[EventKind] = (),
        limit: int = 100,
        offset: int = 0,
    ) -> Request[Events]:
        """The events, of one namespace or of all, whose time is in [after, before).

        With `types`, only those of runs, of jobs or of datasets.
        """
        return get(
            Events,
            "events",
            *(() if namespace is None else (namespace,)),
            types=types,
            before=before,
            after=after,
            sortDirection="asc" if oldest_first else "desc",
            limit=limit,
            offset=offset,
        )

    @call
    def create_run(
        self,
        namespace: str,
        job: str,
        run_id: str | None = None,
        *,
        nominal_start: str | None = None,
        nominal_end: str | None = None,
        args: Mapping[str, Any] | None = None,
    ) -> Request[Run]:
        """Make a run of a job; with an id that is there already, it is that run."""
        body = said(
            id=run_id or ids.new_id(),
            nominalStartTime=nominal_start,
            nominalEndTime=nominal_end,
            args=args,
        )
        at = ("namespaces", namespace, "jobs", job, "runs")
        return post(Run, *at, body=body, repeatable=True)

    @call
    def start_run(self, run_id: str, *, at: str | None = None) -> Request[Run]:
        """Mark a run as started, now or at a time."""
        return _mark(run_id, "start", at)

    @call
    def complete_run(self, run_id: str, *, at: str | None = None) -> Request[Run]:
        """Mark a run as completed: the versions it made become current."""
        return _mark(run_id, "complete", at)

    @call
    def fail_run(self, run_id: str, *, at: str | None = None) -> Request[Run]:
        """Mark a run as failed: what is current stays as it is."""
        return _mark(run_id, "fail", at)

    @call
    def abort_run(self, run_id: str, *, at: str | None = None) -> Request[Run]:
        """Mark a run as aborted: what is current stays as it is."""
        return _mark(run_id, "abort", at)

    @call
    def run(self, run_id: str) -> Request[Run]:
        """One run."""
        return get(Run, *_run(run_id))

    @call
    def runs(
        self,
        *,
        state: Sequence[RunState] = (),
        namespace: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Request[AllRuns]:
        """The runs in these states or in any, newest first; `after` is the `next` of a page."""
        return get(AllRuns, "runs", state=state, namespace=namespace, limit=limit, after=after)

    @call
    def job_runs(
        self, namespace: str, name: str, *, limit: int = 100, offset: int = 0
    ) -> Request[Runs]:
        """The runs of a job, newest first."""
        at = ("namespaces", namespace, "jobs", name, "runs")
        return get(Runs, *at, limit=limit, offset=offset)

    @call
    def run_facets(self, run_id: str, *, of: Literal["run", "job"] = "run") -> Request[RunFacets]:
        """The facets of a run, or those that its job had in it."""
        return get(RunFacets, *_run(run_id), "facets", type=of)

    @call
    def run_family(self, run_id: str) -> Request[RunFamily]:
        """A run and the runs that it began, and so on, with when each went."""
        return get(RunFamily, *_run(run_id), "family")

    @call
    def run_events(self, run_id: str, *, limit: int = 100, offset: int = 0) -> Request[Events]:
        """The events received about a run, newest first."""
        return get(Events, *_run(run_id), "events", limit=limit, offset=offset)

    @call
    def lineage(
        self,
        node_id: str,
        *,
        depth: int | None = None,
        hops: int | None = None,
        direction: Direction = "both",
        history: History = "current",
        as_of: str | None = None,
    ) -> Request[graphs.LineageGraph]:
        """The graph of jobs and datasets around a node, now or as it was at a time.

        `depth` counts steps from job to job, as Marquez does; each job comes with all its datasets.
        `hops` counts edges instead. Without either, `depth` is 20.
        """
        return get(
            graphs.LineageGraph,
            "lineage",
            nodeId=node_id,
            depth=depth,
            hops=hops,
            direction=direction,
            history=history,
            asOf=as_of,
        )

    @call
    def column_lineage(
        self,
        node_id: str,
        *,
        depth: int = 20,
        with_downstream: bool = False,
        as_of: str | None = None,
        with_indirect: bool = False,
    ) -> Request[graphs.ColumnGraph]:
        """The graph of fields around a field, a dataset or a job.

        With indirect lineage, also the fields that whole datasets depend on: the keys of joins,
        filters and sorts.
        """
        return get(
            graphs.ColumnGraph,
            "column-lineage",
            nodeId=node_id,
            depth=depth,
            withDownstream=with_downstream,
            asOf=as_of,
            withIndirect=with_indirect,
        )

    @call
    def upstream_runs(self, run_id: str, *, depth: int = 20) -> Request[graphs.UpstreamRuns]:
        """The runs that made what a run read, and those before them."""
        return get(graphs.UpstreamRuns, "runlineage", "upstream", runId=run_id, depth=depth)

    @call
    def search(
        self,
        words: str,
        *,
        kind: Kind | None = None,
        namespace: str | None = None,
        by_update: bool = False,
        before: str | None = None,
        after: str | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> Request[SearchResults]:
        """Datasets and jobs that have all these words, by name or the last updated first."""
        return get(
            SearchResults,
            "search",
            q=words,
            filter=kind,
            namespace=namespace,
            sort="UPDATE_AT" if by_update else "NAME",
            before=before,
            after=after,
            limit=limit,
            offset=offset,
        )

    @call
    def search_records(
        self, text: str, *, namespace: str | None = None, limit: int = 20
    ) -> Request[SearchRecords]:
        """Runs, lots, batches, ingest jobs, stored objects and files, by an id, name or digest."""
        return get(SearchRecords, "search", "records", q=text, namespace=namespace, limit=limit)


def _body(event: Event) -> bytes:
    return event if isinstance(event, bytes) else written(event)


def _run(run_id: str) -> tuple[str, ...]:
    return "jobs", "runs", run_id


def _mark(run_id: str, action: str, at: str | None) -> Request[Run]:
    return post(Run, *_run(run_id), action, at=at, repeatable=True)
