"""Calls of the catalog: namespaces, datasets, jobs, runs, lineage, events and search."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from penstock import ids
from penstock.client.names import Name, names
from penstock.client.request import (
    Request,
    call,
    delete,
    encode_json,
    get,
    json_body,
    nothing,
    post,
    put,
)
from penstock.schema import catalog as docs
from penstock.schema import lineage as graphs
from penstock.schema.catalog import AllRuns, BatchResult, Events, Run, RunFacets, Runs
from penstock.schema.lineage import RunFamily
from penstock.schema.search import SearchRecords, SearchResults
from penstock.schema.shape import Empty
from penstock.states import RunState

Direction = Literal["both", "upstream", "downstream"]
History = Literal["current", "all"]
Kind = Literal["DATASET", "JOB"]
EventKind = Literal["RUN", "JOB", "DATASET"]
DatasetType = Literal["DB_TABLE", "STREAM"]
JobType = Literal["BATCH", "STREAM", "SERVICE"]


class CatalogCalls:
    """Calls of namespaces, sources, tags, datasets and jobs."""

    @call
    def namespaces(self, *, limit: int = 100, offset: int = 0) -> Request[docs.Namespaces]:
        """Namespaces by name."""
        return get(docs.Namespaces, "namespaces", limit=limit, offset=offset)

    @call
    def namespace(self, namespace: str) -> Request[docs.Namespace]:
        """One namespace."""
        return get(docs.Namespace, "namespaces", namespace)

    @call
    def create_namespace(
        self, namespace: str, *, owner: str | None = None, description: str | None = None
    ) -> Request[docs.Namespace]:
        """Create a namespace; one that exists is a conflict."""
        body = json_body(ownerName=owner, description=description)
        return post(docs.Namespace, "namespaces", namespace, body=body)

    @call
    def create_dataset(
        self, namespace: str, name: str, *, description: str | None = None
    ) -> Request[docs.CreatedDataset]:
        """Create a dataset, and its namespace if needed; one that exists is a conflict."""
        at = ("namespaces", namespace, "datasets", name)
        return post(docs.CreatedDataset, *at, body=json_body(description=description))

    @call
    def put_namespace(
        self, namespace: str, *, owner: str, description: str | None = None
    ) -> Request[docs.Namespace]:
        """Create a namespace, or change its owner and description."""
        body = json_body(ownerName=owner, description=description)
        return put(docs.Namespace, "namespaces", namespace, body=body)

    @call
    def delete_namespace(self, namespace: str) -> Request[docs.Namespace]:
        """Hide a namespace with its datasets and jobs."""
        return delete(docs.Namespace, "namespaces", namespace)

    @call
    def restore_namespace(self, namespace: str) -> Request[docs.Namespace]:
        """Restore a hidden namespace."""
        return post(docs.Namespace, "namespaces", namespace, "restore", repeatable=True)

    @call
    def grants(self, namespace: str) -> Request[docs.Grants]:
        """The namespaces whose runs may write the datasets of a namespace."""
        return get(docs.Grants, "namespaces", namespace, "grants")

    @call
    def grant_namespace(self, namespace: str, grantee: str) -> Request[docs.Grants]:
        """Grant the runs of another namespace the right to write a namespace's datasets."""
        return put(docs.Grants, "namespaces", namespace, "grants", grantee, body=b"")

    @call
    def revoke_grant(self, namespace: str, grantee: str) -> Request[docs.Grants]:
        """Revoke a grant."""
        return delete(docs.Grants, "namespaces", namespace, "grants", grantee)

    @call
    def sources(self, *, limit: int = 100, offset: int = 0) -> Request[docs.Sources]:
        """Sources by name."""
        return get(docs.Sources, "sources", limit=limit, offset=offset)

    @call
    def source(self, name: str) -> Request[docs.Source]:
        """One source."""
        return get(docs.Source, "sources", name)

    @call
    def put_source(
        self, name: str, *, type: str, connection_url: str, description: str | None = None
    ) -> Request[docs.Source]:
        """Create or change a source."""
        body = json_body(type=type, connectionUrl=connection_url, description=description)
        return put(docs.Source, "sources", name, body=body)

    @call
    def tags(self, *, limit: int = 100, offset: int = 0) -> Request[docs.Tags]:
        """Tags by name."""
        return get(docs.Tags, "tags", limit=limit, offset=offset)

    @call
    def put_tag(self, tag: str, *, description: str | None = None) -> Request[docs.Tag]:
        """Create a tag, or change its description."""
        return put(docs.Tag, "tags", tag, body=json_body(description=description))

    @call
    def datasets(
        self, namespace: str, *, limit: int = 100, offset: int = 0
    ) -> Request[docs.Datasets]:
        """The datasets of a namespace by name."""
        at = ("namespaces", namespace, "datasets")
        return get(docs.Datasets, *at, limit=limit, offset=offset)

    @call
    def dataset(self, namespace: str, name: str) -> Request[docs.Dataset]:
        """One dataset."""
        return get(docs.Dataset, *_dataset(namespace, name))

    @call
    def put_dataset(
        self,
        namespace: str,
        name: str,
        *,
        source: str,
        type: DatasetType = "DB_TABLE",
        physical_name: str | None = None,
        fields: Sequence[docs.DatasetField] | None = None,
        tags: Sequence[str] | None = None,
        description: str | None = None,
        run_id: str | None = None,
        schema_location: str | None = None,
    ) -> Request[docs.Dataset]:
        """Declare a dataset; with a run's id, the version of it that the run writes."""
        body = json_body(
            type=type,
            physicalName=physical_name or name,
            sourceName=source,
            fields=fields,
            tags=tags,
            description=description,
            runId=run_id,
            schemaLocation=schema_location,
        )
        return put(docs.Dataset, *_dataset(namespace, name), body=body)

    @call
    def dataset_versions(
        self, namespace: str, name: str, *, limit: int = 100, offset: int = 0
    ) -> Request[docs.DatasetVersions]:
        """The versions of a dataset, newest first."""
        at = (*_dataset(namespace, name), "versions")
        return get(docs.DatasetVersions, *at, limit=limit, offset=offset)

    @call
    def dataset_version(
        self, namespace: str, name: str, version: str
    ) -> Request[docs.DatasetVersion]:
        """One version of a dataset, by its UUID or its number (`V2`)."""
        return get(docs.DatasetVersion, *_dataset(namespace, name), "versions", version)

    @call
    def delete_dataset(self, namespace: str, name: str) -> Request[docs.Dataset]:
        """Hide a dataset."""
        return delete(docs.Dataset, *_dataset(namespace, name))

    @call
    def restore_dataset(self, namespace: str, name: str) -> Request[docs.Dataset]:
        """Restore a hidden dataset."""
        return post(docs.Dataset, *_dataset(namespace, name), "restore", repeatable=True)

    @call
    def tag_dataset(
        self, namespace: str, name: str, tag: str, field: str | None = None
    ) -> Request[docs.Dataset]:
        """Put a tag on a dataset or one of its fields."""
        return post(docs.Dataset, *_tag(namespace, name, tag, field), repeatable=True)

    @call
    def untag_dataset(
        self, namespace: str, name: str, tag: str, field: str | None = None
    ) -> Request[docs.Dataset]:
        """Take a tag off a dataset or one of its fields."""
        return delete(docs.Dataset, *_tag(namespace, name, tag, field))

    @call
    def jobs(
        self,
        namespace: str | None = None,
        *,
        last_run_states: Sequence[RunState | str] = (),
        limit: int = 100,
        offset: int = 0,
    ) -> Request[docs.Jobs]:
        """Jobs, of one namespace or of all, the last updated first."""
        at = ("jobs",) if namespace is None else ("namespaces", namespace, "jobs")
        states = tuple(last_run_states)
        return get(docs.Jobs, *at, lastRunStates=states, limit=limit, offset=offset)

    @call
    def job(self, namespace: str, name: str) -> Request[docs.Job]:
        """One job with its newest runs."""
        return get(docs.Job, *_job(namespace, name))

    @call
    def put_job(
        self,
        namespace: str,
        name: str,
        *,
        type: JobType = "BATCH",
        inputs: Iterable[Name] | None = None,
        outputs: Iterable[Name] | None = None,
        location: str | None = None,
        description: str | None = None,
        run_id: str | None = None,
        tags: Sequence[str] | None = None,
    ) -> Request[docs.Job]:
        """Declare a job with what it reads and writes; with a run's id, of that run."""
        body = json_body(
            type=type,
            inputs=names(inputs, namespace),
            outputs=names(outputs, namespace),
            location=location,
            description=description,
            runId=run_id,
            tags=tags,
        )
        return put(docs.Job, *_job(namespace, name), body=body)

    @call
    def job_versions(
        self, namespace: str, name: str, *, limit: int = 100, offset: int = 0
    ) -> Request[docs.JobVersions]:
        """The versions of a job, newest first."""
        at = (*_job(namespace, name), "versions")
        return get(docs.JobVersions, *at, limit=limit, offset=offset)

    @call
    def job_version(self, namespace: str, name: str, version: str) -> Request[docs.JobVersion]:
        """One version of a job."""
        return get(docs.JobVersion, *_job(namespace, name), "versions", version)

    @call
    def delete_job(self, namespace: str, name: str) -> Request[docs.Job]:
        """Hide a job."""
        return delete(docs.Job, *_job(namespace, name))

    @call
    def restore_job(self, namespace: str, name: str) -> Request[docs.Job]:
        """Restore a hidden job."""
        return post(docs.Job, *_job(namespace, name), "restore", repeatable=True)

    @call
    def tag_job(self, namespace: str, name: str, tag: str) -> Request[docs.Job]:
        """Put a tag on a job."""
        return post(docs.Job, *_job(namespace, name), "tags", tag, repeatable=True)

    @call
    def untag_job(self, namespace: str, name: str, tag: str) -> Request[docs.Job]:
        """Take a tag off a job."""
        return delete(docs.Job, *_job(namespace, name), "tags", tag)


def _dataset(namespace: str, name: str) -> tuple[str, ...]:
    return "namespaces", namespace, "datasets", name


def _tag(namespace: str, name: str, tag: str, field: str | None) -> tuple[str, ...]:
    on_field = () if field is None else ("fields", field)
    return *_dataset(namespace, name), *on_field, "tags", tag


def _job(namespace: str, name: str) -> tuple[str, ...]:
    return "namespaces", namespace, "jobs", name


Event = Mapping[str, Any] | bytes


class HistoryCalls:
    """Calls of events, runs, lineage and search."""

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
        """Create a run of a job, or return the run with the same id."""
        body = json_body(
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
        """Mark a run as completed; its versions become current."""
        return _mark(run_id, "complete", at)

    @call
    def fail_run(self, run_id: str, *, at: str | None = None) -> Request[Run]:
        """Mark a run as failed; the current versions stay current."""
        return _mark(run_id, "fail", at)

    @call
    def abort_run(self, run_id: str, *, at: str | None = None) -> Request[Run]:
        """Mark a run as aborted; the current versions stay current."""
        return _mark(run_id, "abort", at)

    @call
    def run(self, run_id: str) -> Request[Run]:
        """One run."""
        return get(Run, *_run(run_id))

    @call
    def runs(
        self,
        *,
        state: Sequence[RunState | str] = (),
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
        """The facets of a run, or of its job as the run reported them."""
        return get(RunFacets, *_run(run_id), "facets", type=of)

    @call
    def run_family(self, run_id: str) -> Request[RunFamily]:
        """A run and its descendants, with their times."""
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
    return event if isinstance(event, bytes) else encode_json(event)


def _run(run_id: str) -> tuple[str, ...]:
    return "jobs", "runs", run_id


def _mark(run_id: str, action: str, at: str | None) -> Request[Run]:
    return post(Run, *_run(run_id), action, at=at, repeatable=True)
