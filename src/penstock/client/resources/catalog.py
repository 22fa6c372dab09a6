"""The calls of the client about namespaces, sources, tags, datasets and jobs."""

from collections.abc import Iterable, Sequence
from typing import Literal

from penstock.client.names import Name, names
from penstock.client.operation import call
from penstock.client.request import Request, delete, get, post, put, said
from penstock.schema import catalog as docs

DatasetType = Literal["DB_TABLE", "STREAM"]
JobType = Literal["BATCH", "STREAM", "SERVICE"]
LastRunState = Literal["NEW", "RUNNING", "COMPLETED", "FAILED", "ABORTED"]


class CatalogCalls:
    """What a server knows of what there is."""

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
        """Create a namespace that is not there; a conflict if it is."""
        body = said(ownerName=owner, description=description)
        return post(docs.Namespace, "namespaces", namespace, body=body)

    @call
    def create_dataset(
        self, namespace: str, name: str, *, description: str | None = None
    ) -> Request[docs.CreatedDataset]:
        """Create a dataset that is not there, with its namespace; a conflict if it is there."""
        at = ("namespaces", namespace, "datasets", name)
        return post(docs.CreatedDataset, *at, body=said(description=description))

    @call
    def put_namespace(
        self, namespace: str, *, owner: str, description: str | None = None
    ) -> Request[docs.Namespace]:
        """Make a namespace, or change its owner and description."""
        body = said(ownerName=owner, description=description)
        return put(docs.Namespace, "namespaces", namespace, body=body)

    @call
    def delete_namespace(self, namespace: str) -> Request[docs.Namespace]:
        """Hide a namespace with its datasets and jobs."""
        return delete(docs.Namespace, "namespaces", namespace)

    @call
    def restore_namespace(self, namespace: str) -> Request[docs.Namespace]:
        """Bring back a hidden namespace."""
        return post(docs.Namespace, "namespaces", namespace, "restore", repeatable=True)

    @call
    def grants(self, namespace: str) -> Request[docs.Grants]:
        """The namespaces whose runs may write the datasets of a namespace."""
        return get(docs.Grants, "namespaces", namespace, "grants")

    @call
    def grant_namespace(self, namespace: str, grantee: str) -> Request[docs.Grants]:
        """Let the runs of another namespace write the datasets of a namespace."""
        return put(docs.Grants, "namespaces", namespace, "grants", grantee, body=b"")

    @call
    def revoke_grant(self, namespace: str, grantee: str) -> Request[docs.Grants]:
        """Take a grant back."""
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
        """Make a source, or change it."""
        body = said(type=type, connectionUrl=connection_url, description=description)
        return put(docs.Source, "sources", name, body=body)

    @call
    def tags(self, *, limit: int = 100, offset: int = 0) -> Request[docs.Tags]:
        """Tags by name."""
        return get(docs.Tags, "tags", limit=limit, offset=offset)

    @call
    def put_tag(self, tag: str, *, description: str | None = None) -> Request[docs.Tag]:
        """Make a tag, or change its description."""
        return put(docs.Tag, "tags", tag, body=said(description=description))

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
        body = said(
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
        """Bring back a hidden dataset."""
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
        last_run_states: Sequence[LastRunState] = (),
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
        body = said(
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
        """Bring back a hidden job."""
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
