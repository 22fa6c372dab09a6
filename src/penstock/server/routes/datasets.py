"""Datasets, their versions and their tags."""

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import Literal

from msgspec.structs import replace

from penstock import ids
from penstock.access.keys import Key
from penstock.catalog.commands import (
    CreateDataset,
    DeleteDataset,
    PutDataset,
    RestoreDataset,
    TagDataset,
    UntagDataset,
)
from penstock.catalog.events.schema import Field
from penstock.catalog.queries import catalog
from penstock.db import Transaction
from penstock.errors import Invalid
from penstock.schema.admin import KeyRole
from penstock.schema.catalog import (
    CreatedDataset,
    Dataset,
    Datasets,
    DatasetVersion,
    DatasetVersions,
)
from penstock.schema.lot_ids import clock_interval
from penstock.schema.texts import Name, Text
from penstock.server.content import Body, Paging
from penstock.server.requests import RequestContext
from penstock.server.routing import ASYNC, BASE, READ, Route


class FieldBody(Body, frozen=True):
    """One field of a dataset."""

    name: Text
    type: str | None = None
    tags: tuple[Name, ...] | None = None
    description: str | None = None


class DatasetBody(Body, frozen=True):
    """The description of a dataset. With a run's id it describes the version of that run."""

    type: Literal["DB_TABLE", "STREAM"]
    physical_name: Text
    source_name: Name
    fields: tuple[FieldBody, ...] | None = None
    tags: tuple[Name, ...] | None = None
    description: str | None = None
    run_id: str | None = None
    schema_location: str | None = None


async def put_dataset(
    context: RequestContext, namespace: str, dataset: str, body: DatasetBody
) -> Dataset:
    """Declare a dataset.

    With `runId` it describes the version which that run writes, and the version becomes current
    when the run completes. Without, a changed schema makes a new version at once.
    """
    context.check_texts(physicalName=body.physical_name)
    context.check_names(sourceName=body.source_name)
    for field in body.fields or ():
        context.check_texts(**{"fields.name": field.name})
        _check_tags(context, field.tags)
    _check_names_differ(body.fields or ())
    _check_tags(context, body.tags)
    run = ids.run_id(body.run_id) if body.run_id else None
    await context.require_run(run)
    await context.require_dataset(namespace, dataset)
    await context.submit(
        PutDataset(
            namespace,
            dataset,
            body.type,
            body.physical_name,
            body.source_name,
            None if body.fields is None else tuple(map(_field, body.fields)),
            body.tags or (),
            body.description,
            run,
            body.schema_location,
        )
    )
    return await context.read(catalog.get_dataset, namespace, dataset)


class NewDatasetBody(Body, frozen=True):
    """The description of a new dataset."""

    description: str | None = None


async def create_dataset(
    context: RequestContext, namespace: str, dataset: str, body: NewDatasetBody
) -> CreatedDataset:
    """Create a dataset, and its namespace if needed. A dataset that exists is a conflict."""
    await context.require_dataset(namespace, dataset)
    clock_interval(dataset)  # refuses a clock that does not exist
    created = await context.submit(
        CreateDataset(namespace, dataset, body.description, context.key.name)
    )
    return CreatedDataset(namespace, dataset, created.is_namespace_new)


def _check_names_differ(fields: Sequence[FieldBody]) -> None:
    counts = Counter(field.name for field in fields)
    name, count = max(counts.items(), key=itemgetter(1), default=("", 0))
    if count > 1:
        raise Invalid(f"fields has {name[:64]!r} {count} times; give each field a name of its own")


def _field(body: FieldBody) -> Field:
    return Field(body.name, body.type, body.tags or (), body.description)


def _check_tags(context: RequestContext, tags: Sequence[str] | None) -> None:
    for tag in tags or ():
        context.check_names(tags=tag)


def get_dataset(tx: Transaction, key: Key, namespace: str, dataset: str) -> Dataset:
    """Show a dataset, by its own name or by a second one."""
    row = catalog.get_dataset(tx, namespace, dataset)
    key.require_own(row.namespace)
    return row


def list_datasets(tx: Transaction, namespace: str, query: Paging) -> Datasets:
    """List the datasets of a namespace by name."""
    page = catalog.list_datasets(tx, namespace, query.limit, query.offset)
    return Datasets(page.items, page.total_count)


async def delete_dataset(context: RequestContext, namespace: str, dataset: str) -> Dataset:
    """Hide a dataset, until it is restored or written again."""
    await context.require_dataset(namespace, dataset)
    await context.submit(DeleteDataset(namespace, dataset, context.key.name))
    return await context.read(catalog.get_dataset, namespace, dataset, include_deleted=True)


async def restore_dataset(context: RequestContext, namespace: str, dataset: str) -> Dataset:
    """Bring back a hidden dataset."""
    await context.require_dataset(namespace, dataset)
    await context.submit(RestoreDataset(namespace, dataset, context.key.name))
    return await context.read(catalog.get_dataset, namespace, dataset)


def list_dataset_versions(
    tx: Transaction, key: Key, namespace: str, dataset: str, query: Paging
) -> DatasetVersions:
    """List the versions of a dataset, newest first."""
    if key.namespace is not None:
        get_dataset(tx, key, namespace, dataset)
    page = catalog.list_dataset_versions(tx, namespace, dataset, query.limit, query.offset)
    return DatasetVersions([_seen_by(key, item) for item in page.items], page.total_count)


def get_dataset_version(
    tx: Transaction, key: Key, namespace: str, dataset: str, version: str
) -> DatasetVersion:
    """Show a version of a dataset, by its UUID or its number (`V2`)."""
    row = catalog.get_dataset_version(tx, namespace, dataset, version)
    key.require_own(row.namespace)
    return _seen_by(key, row)


def _seen_by(key: Key, version: DatasetVersion) -> DatasetVersion:
    """Return the version without its run if the key may not see the run's namespace."""
    run = version.created_by_run
    if run is None or key.namespace in (None, run.job.namespace):
        return version
    return replace(version, created_by_run=None)


async def tag_dataset(context: RequestContext, namespace: str, dataset: str, tag: str) -> Dataset:
    """Put a tag on a dataset."""
    await context.require_dataset(namespace, dataset)
    await context.submit(TagDataset(namespace, dataset, tag))
    return await context.read(catalog.get_dataset, namespace, dataset)


async def untag_dataset(context: RequestContext, namespace: str, dataset: str, tag: str) -> Dataset:
    """Take a tag off a dataset."""
    await context.require_dataset(namespace, dataset)
    await context.submit(UntagDataset(namespace, dataset, tag))
    return await context.read(catalog.get_dataset, namespace, dataset)


async def tag_field(
    context: RequestContext, namespace: str, dataset: str, field: str, tag: str
) -> Dataset:
    """Put a tag on a field of a dataset."""
    await context.require_dataset(namespace, dataset)
    await context.submit(TagDataset(namespace, dataset, tag, field))
    return await context.read(catalog.get_dataset, namespace, dataset)


async def untag_field(
    context: RequestContext, namespace: str, dataset: str, field: str, tag: str
) -> Dataset:
    """Take a tag off a field of a dataset."""
    await context.require_dataset(namespace, dataset)
    await context.submit(UntagDataset(namespace, dataset, tag, field))
    return await context.read(catalog.get_dataset, namespace, dataset)


_ALL = f"{BASE}/namespaces/{{namespace}}/datasets"
_ONE = f"{_ALL}/{{dataset}}"
_TAG = f"{_ONE}/tags/{{tag}}"
_FIELD_TAG = f"{_ONE}/fields/{{field}}/tags/{{tag}}"

ROUTES = (
    Route(READ, "GET", _ALL, list_datasets),
    Route(READ, "GET", _ONE, get_dataset),
    Route(ASYNC, "PUT", _ONE, put_dataset, role=KeyRole.WRITER),
    Route(ASYNC, "POST", _ONE, create_dataset, role=KeyRole.WRITER),
    Route(ASYNC, "DELETE", _ONE, delete_dataset, role=KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_ONE}/restore", restore_dataset, role=KeyRole.ADMIN),
    Route(READ, "GET", f"{_ONE}/versions", list_dataset_versions),
    Route(READ, "GET", f"{_ONE}/versions/{{version}}", get_dataset_version),
    Route(ASYNC, "POST", _TAG, tag_dataset, role=KeyRole.WRITER),
    Route(ASYNC, "DELETE", _TAG, untag_dataset, role=KeyRole.WRITER),
    Route(ASYNC, "POST", _FIELD_TAG, tag_field, role=KeyRole.WRITER),
    Route(ASYNC, "DELETE", _FIELD_TAG, untag_field, role=KeyRole.WRITER),
)
