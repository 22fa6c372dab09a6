"""Queries for datasets and their versions."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter

from msgspec import UNSET, Struct, UnsetType

from penstock.catalog.entities.names import names_told
from penstock.catalog.events.facets import (
    NONE,
    laid_over,
    others_hold,
    read_facets,
    shown,
    together,
    write_facets,
)
from penstock.catalog.events.known_facets import ALL_FIELDS, COLUMNS, DatasetName
from penstock.catalog.events.quality import with_reports
from penstock.catalog.events.schema import (
    NO_FIELDS,
    NO_SCHEMA,
    observed_schema,
    read_schema,
    with_tags,
)
from penstock.catalog.lineage.edges import NOW
from penstock.catalog.queries.names import is_uuid
from penstock.catalog.queries.runs import load_runs
from penstock.clock import Micros, format_time
from penstock.db import Transaction
from penstock.errors import NotFound
from penstock.ids import dataset_id
from penstock.schema.catalog import (
    Alias,
    ColumnLineage,
    Dataset,
    DatasetVersion,
    EntityId,
    InputField,
    Run,
)
from penstock.schema.shape import Page, raw, time_or_none

_Reports = defaultdict[str, list[str]]
REPORTS_MAX = 100  # on one version; each test may be a run of its own
_NUMBER = re.compile(r"[Vv]?([0-9]{1,15})")


class _DatasetRow(Struct, frozen=True, gc=False):
    id: str
    namespace: str
    name: str
    type: str
    physical_name: str
    source_name: str
    description: str | None
    current_version_id: str | None
    published_at: Micros | None
    observed: str
    tags: str
    field_tags: str
    lifecycle: str
    hidden: int
    created_at: Micros
    updated_at: Micros
    declared: str
    declared_stamps: str
    declared_column_set_id: str | None
    number: int | None
    schema_id: str | None
    fields: str | None
    facets: str | None
    stamps: str | None
    column_set_id: str | None
    schema_location: str | None
    inherited: str | None
    inherited_stamps: str | None
    version_id: str | None
    written: str | None


class _VersionRow(Struct, frozen=True, gc=False):
    id: str
    dataset_id: str
    namespace: str
    name: str
    number: int
    run_id: str | None
    schema_id: str
    fields: str
    facets: str
    type: str
    physical_name: str
    source_name: str
    description: str | None
    lifecycle: str
    created_at: Micros
    current_version_id: str | None
    observed: str
    tags: str
    field_tags: str
    unconfirmed: int
    schema_location: str | None
    inherited: str | None
    written: str | None


def get_dataset(
    tx: Transaction, namespace: str, name: str, *, include_deleted: bool = False
) -> Dataset:
    """Return a dataset by its own name or by a second name."""
    key, _ = _find(tx, namespace, name, include_deleted=include_deleted)
    aliases = tx.rows(Alias, "read_aliases", id=key)
    return load_datasets(tx, [key], aliases)[0]


def list_datasets(tx: Transaction, namespace: str, limit: int, offset: int) -> Page[Dataset]:
    """Return a page of the datasets of a namespace, by name, without deleted ones."""
    tallies, ids = tx.fetch_many(
        [
            ("read_tallies_of_namespace", {"kind": "DATASET", "namespace": namespace}),
            ("read_dataset_ids", {"namespace": namespace, "limit": limit, "offset": offset}),
        ]
    )
    total = sum(count for _, count in tallies)
    return Page(load_datasets(tx, [found for (found,) in ids]), total)


def list_dataset_versions(
    tx: Transaction, namespace: str, name: str, limit: int, offset: int
) -> Page[DatasetVersion]:
    """Return a page of the versions of a dataset, newest first."""
    dataset, total = _find(tx, namespace, name)
    ids = tx.fetch("read_version_ids", dataset_id=dataset, limit=limit, offset=offset)
    return Page(_load_versions(tx, [found for (found,) in ids]), total)


def get_dataset_version(tx: Transaction, namespace: str, name: str, version: str) -> DatasetVersion:
    """Return a version of a dataset by UUID or by number, `2` or `V2`."""
    dataset, _ = _find(tx, namespace, name)
    if number := _NUMBER.fullmatch(version):
        rows = tx.fetch("read_version_by_number", dataset_id=dataset, number=int(number[1]))
        ids = [versions for (versions,) in rows]
    else:
        ids = [version.lower()] if is_uuid(version) else []
    versions = _load_versions(tx, ids, of_dataset=dataset)
    if not versions:
        raise NotFound(
            f"dataset {name!r} in namespace {namespace!r} has no version {version!r}; "
            "list its versions, and name one by its UUID or its number, like V2"
        )
    return versions[0]


def load_datasets(
    tx: Transaction, ids: Sequence[str], aliases: Sequence[Alias] | UnsetType = UNSET
) -> list[Dataset]:
    """Return datasets in the order of their ids; missing ones are left out."""
    if not ids:
        return []
    rows = {row.id: row for row in tx.rows(_DatasetRow, "read_datasets", ids=list(ids))}
    sets = {found for row in rows.values() if (found := _column_set(row)) is not None}
    lineage = _load_column_lineage(tx, sorted(sets), rows.values())
    reports = _load_reports(tx, [row.version_id for row in rows.values() if row.version_id])
    return [_dataset(rows[found], lineage, reports, aliases) for found in ids if found in rows]


def _load_reports(tx: Transaction, versions: Sequence[str]) -> _Reports:
    """Return quality reports by version, the newest first."""
    reports: _Reports = defaultdict(list)
    rows = tx.fetch("read_quality_reports", ids=list(versions), most=REPORTS_MAX)
    for version, facets in rows if versions else ():
        reports[version].append(facets)
    return reports


def _find(
    tx: Transaction, namespace: str, name: str, *, include_deleted: bool = False
) -> tuple[str, int]:
    """Return the id and the number of versions of the dataset with a name.

    A dataset that a run dropped is shown as deleted, as in Marquez. A dataset that an administrator
    deleted is not shown.
    """
    row = tx.fetch_one("read_dataset_by_name", id=dataset_id(namespace, name))
    if row is None:
        raise NotFound(
            f"there is no dataset {name!r} in namespace {namespace!r}; "
            "list the namespace's datasets, or search for a part of the name"
        )
    found, hidden, version_count, is_dropped = row
    if hidden and not is_dropped and not include_deleted:
        raise NotFound(
            f"dataset {name!r} in namespace {namespace!r} is deleted; "
            "writing it or naming it in an event brings it back"
        )
    return found, version_count


def _load_column_lineage(
    tx: Transaction, set_ids: Sequence[str], datasets: Iterable[_DatasetRow]
) -> dict[str, list[ColumnLineage]]:
    if not set_ids:
        return {}
    lineage: dict[str, list[ColumnLineage]] = defaultdict(list)
    rows = tx.fetch("read_column_edges", ids=list(set_ids))
    names = {source: DatasetName(space, name) for _, _, source, space, name, *_ in rows if name}
    if len(names) < len({row[2] for row in rows}):
        names |= names_told(text for row in datasets for text in _all_facets(row))
    for (set_id, column), edges in groupby(rows, key=itemgetter(0, 1)):
        made_from = [
            InputField(name.namespace, name.name, field, how, kind, bool(indirect) or UNSET)
            for _, _, source, _, _, field, how, kind, indirect in edges
            if (name := names.get(source)) is not None
        ]
        if made_from:
            made_from.sort(key=attrgetter("namespace", "dataset", "field"))
            lineage[set_id].append(_column(column, made_from))
    return lineage


def _column(field: str, inputs: Sequence[InputField]) -> ColumnLineage:
    descriptions = {edge.transformation_description for edge in inputs}
    types = {edge.transformation_type for edge in inputs}
    return ColumnLineage(
        name=field,
        input_fields=inputs,
        transformation_description=_sole(descriptions),
        transformation_type=_sole(types),
    )


def _sole(values: set[str | None]) -> str | None:
    return next(iter(values)) if len(values) == 1 else None


def _dataset(
    row: _DatasetRow,
    lineage: dict[str, list[ColumnLineage]],
    reports: _Reports,
    aliases: Sequence[Alias] | UnsetType,
) -> Dataset:
    fields, facets = _shown(row)
    columns = lineage.get(_column_set(row) or "", ())
    return Dataset(
        id=EntityId(row.namespace, row.name),
        type=row.type,
        name=row.name,
        physical_name=row.physical_name,
        created_at=format_time(row.created_at),
        updated_at=format_time(row.updated_at),
        namespace=row.namespace,
        source_name=row.source_name,
        fields=raw(with_tags(fields, row.field_tags)),
        tags=raw(row.tags),
        last_modified_at=time_or_none(row.published_at or None),  # 0: implied, time unknown
        last_lifecycle_state=row.lifecycle,
        description=row.description,
        current_version=row.current_version_id,
        current_version_number=row.number if row.current_version_id else None,
        column_lineage=[each for each in columns if each.name != ALL_FIELDS] or None,
        indirect_input_fields=[
            source for each in columns if each.name == ALL_FIELDS for source in each.input_fields
        ],
        facets=raw(_with_reports(facets, row.written, reports[row.version_id or ""])),
        deleted=bool(row.hidden),
        aliases=aliases,
        schema_location=_schema_location(row),
    )


def _column_set(row: _DatasetRow) -> str | None:
    """Return the column lineage of a dataset: of its shown version, or declared later."""
    declared = row.declared_column_set_id
    if declared is not None and others_hold(COLUMNS, _stamps(row), row.declared_stamps, NOW):
        return declared
    return row.column_set_id


def _stamps(row: _DatasetRow) -> str:
    """Return when each facet of the shown version was reported."""
    return laid_over(row.inherited_stamps, row.stamps or NONE)


def _all_facets(row: _DatasetRow) -> Iterable[str]:
    return [text for text in (row.facets, row.inherited, row.declared) if text is not None]


def _shown(row: _DatasetRow) -> tuple[str, str]:
    """Return the fields and facets of a dataset: of its shown version, and declared ones.

    Declared facets override those of readers. A declared schema belongs to the fields that it
    declares and to no other version.
    """
    facets, stamps = laid_over(row.inherited, row.facets or NONE), _stamps(row)
    fields, schema = row.fields or NO_FIELDS, row.schema_id or NO_SCHEMA
    if fields == NO_FIELDS:
        fields, schema = observed_schema(row.observed)
        facets = laid_over(row.observed, facets)
    declared = row.declared
    stated = read_facets(declared).get("schema")
    if stated is not None and read_schema(bytes(stated))[1] != schema:
        others = {name: facet for name, facet in read_facets(declared).items() if name != "schema"}
        declared = write_facets(others)
    return fields, together(facets, stamps or "{}", declared, row.declared_stamps)


def _load_versions(
    tx: Transaction, ids: Sequence[str], of_dataset: str | None = None
) -> list[DatasetVersion]:
    if not ids:
        return []
    rows = {row.id: row for row in tx.rows(_VersionRow, "read_versions", ids=list(ids))}
    if of_dataset is not None:
        rows = {row.id: row for row in rows.values() if row.dataset_id == of_dataset}
    runs = load_runs(tx, [row.run_id for row in rows.values() if row.run_id])
    reports = _load_reports(tx, list(rows))
    return [_version(rows[found], runs, reports[found]) for found in ids if found in rows]


def _with_reports(facets: str, written: str | None, reports: Sequence[str]) -> str:
    """Return the facets of a version, merged with those of runs that wrote and checked it."""
    stated = shown(facets)
    if not reports and (written is None or len(written) == 2):
        return stated
    return write_facets(with_reports(read_facets(stated), written, reports))


def _version(row: _VersionRow, runs: dict[str, Run], reports: Sequence[str]) -> DatasetVersion:
    fields, schema = row.fields, row.schema_id
    facets = laid_over(row.inherited, row.facets)
    if fields == NO_FIELDS:
        fields, schema = observed_schema(row.observed)
        facets = laid_over(row.observed, facets)
    return DatasetVersion(
        id=EntityId(row.namespace, row.name),
        type=row.type,
        name=row.name,
        physical_name=row.physical_name,
        created_at=format_time(row.created_at),
        version=row.id,
        number=row.number,
        is_current=row.id == row.current_version_id,
        is_unconfirmed=bool(row.unconfirmed),
        namespace=row.namespace,
        source_name=row.source_name,
        fields=raw(with_tags(fields, row.field_tags)),
        tags=raw(row.tags),
        lifecycle_state=row.lifecycle,
        description=row.description,
        current_schema_version=schema,
        created_by_run=runs.get(row.run_id) if row.run_id else None,
        facets=raw(_with_reports(facets, row.written, reports)),
        schema_location=_schema_location(row),
    )


def _schema_location(row: _DatasetRow | _VersionRow) -> str | UnsetType | None:
    return row.schema_location if row.type == "STREAM" else UNSET
