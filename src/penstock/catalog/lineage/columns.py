"""Columns of datasets, now or at a time, each looked up once."""

from collections.abc import Callable, Collection, Iterable
from itertools import chain
from typing import NamedTuple

from msgspec import UNSET, Struct
from msgspec.structs import replace

from penstock.catalog.entities.names import names_told
from penstock.catalog.events.facets import NONE, laid_over, others_hold
from penstock.catalog.events.known_facets import ALL_FIELDS, COLUMNS
from penstock.catalog.events.schema import load_fields, shown_fields
from penstock.catalog.lineage.edges import NOW, dropped_then, edge_source
from penstock.catalog.lineage.graph import DEPTH_DEFAULT, EdgeIndex, begin_walk
from penstock.catalog.lineage.nodes import (
    Named,
    NamedDataset,
    NamedJob,
    NamedRun,
    field_node,
    find_node,
    time_of,
)
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.errors import Invalid, NotFound
from penstock.schema.catalog import DatasetRole, InputField
from penstock.schema.lineage import ColumnGraph, FieldData, FieldNode, IndirectLineage


class ColumnKey(NamedTuple):
    """A field of a dataset."""

    dataset_id: str
    field: str


class MadeFrom(NamedTuple):
    """A column from which another is made, and its transformation."""

    column: ColumnKey
    description: str | None
    type: str | None
    indirect: bool


class ShownColumns(Struct, frozen=True):
    """The version of a dataset that the graph shows, and the types of its fields."""

    namespace: str
    name: str
    version_id: str | None
    column_set_id: str | None
    types: dict[str, str | None]


class Columns:
    """The columns of datasets and their dependencies, without deleted datasets."""

    def __init__(
        self, tx: Transaction, root: Named, as_of: Micros | None, *, with_indirect: bool = False
    ) -> None:
        self._tx = tx
        self._root = root
        self._as_of = as_of
        self._with_indirect = with_indirect
        self._of_all_fields: dict[str, list[MadeFrom]] = {}  # by dataset
        self._shown: dict[str, ShownColumns | None] = {}  # None: deleted or unknown
        self._inputs: dict[ColumnKey, list[MadeFrom]] = {}

    def shown(self, dataset: str) -> ShownColumns:
        """Return the dataset version whose columns the graph shows."""
        self._show([dataset])
        shown = self._shown[dataset]
        assert shown is not None, "columns of what is not shown are not given out"
        return shown

    def all_of(self, datasets: Collection[str]) -> set[ColumnKey]:
        """Return every field of these datasets, by schema or by lineage."""
        self._show(datasets)
        shown = {d: version for d in datasets if (version := self._shown[d]) is not None}
        rows = self._tx.fetch("column_fields", sets=_sets(shown.values()))
        stated = {ColumnKey(d, field) for d, version in shown.items() for field in version.types}
        return stated | {ColumnKey(dataset, field) for dataset, field in rows}

    def sources(self, columns: Collection[ColumnKey]) -> set[ColumnKey]:
        """Return the columns that these depend on, directly or with all of their dataset."""
        inputs = self.inputs_of(columns)
        columns_read = {source.column for column in columns for source in inputs[column]}
        for dataset in {column.dataset_id for column in columns}:
            columns_read |= {source.column for source in self.inputs_of_all_fields(dataset)}
        return columns_read

    def products(self, columns: Collection[ColumnKey]) -> set[ColumnKey]:
        """Return the columns and whole datasets that depend on these columns."""
        rows = self._tx.fetch(
            "column_outputs",
            ids=list({column.dataset_id for column in columns}),
            fields=list({column.field for column in columns}),
        )
        # Ids and fields are matched separately, and old sets are still stored.
        wanted = set(columns)
        rows = [row for row in rows if (row[0], row[1]) in wanted]
        self._show({row[2] for row in rows})
        dependents = {
            ColumnKey(dataset, field)
            for _, _, dataset, field, set_id in rows
            if (version := self._shown[dataset]) is not None and version.column_set_id == set_id
        }
        dependent = {column.dataset_id for column in dependents if column.field == ALL_FIELDS}
        dependents -= {ColumnKey(dataset, ALL_FIELDS) for dataset in dependent}
        return dependents | self.all_of(dependent) if self._with_indirect else dependents

    def inputs_of(self, columns: Collection[ColumnKey]) -> dict[ColumnKey, list[MadeFrom]]:
        """Return the inputs of these columns, and maybe of others."""
        fresh = [column for column in columns if column not in self._inputs]
        if fresh:
            self._load_inputs(fresh)
        return self._inputs

    def inputs_of_all_fields(self, dataset: str) -> list[MadeFrom]:
        """Return the columns that every field of a dataset depends on.

        Empty unless requested, and until the inputs of a column of the dataset were read.
        """
        return self._of_all_fields.get(dataset, [])

    def _load_inputs(self, columns: list[ColumnKey]) -> None:
        datasets = {column.dataset_id for column in columns}
        self._show(datasets)
        fresh = datasets - self._of_all_fields.keys()
        also = [ALL_FIELDS] if self._with_indirect and fresh else []
        rows = self._tx.fetch(
            "column_inputs",
            sets=_sets(self._shown[dataset] for dataset in datasets),
            fields=list({*(column.field for column in columns), *also}),
        )
        self._show({row[2] for row in rows})
        self._show_unnamed({row[2] for row in rows}, datasets)
        self._inputs.update((column, []) for column in columns)
        wanted = set(columns)
        self._of_all_fields.update((dataset, []) for dataset in fresh)
        for dataset, field, source, source_field, description, kind, indirect in rows:
            if self._shown[source] is None:
                continue
            made_from = MadeFrom(ColumnKey(source, source_field), description, kind, bool(indirect))
            if field == ALL_FIELDS:
                if also and dataset in fresh:
                    self._of_all_fields[dataset].append(made_from)
            elif (column := ColumnKey(dataset, field)) in wanted:
                self._inputs[column].append(made_from)

    def _show(self, datasets: Iterable[str]) -> None:
        """Look up shown versions that are not cached."""
        fresh = [dataset for dataset in datasets if dataset not in self._shown]
        if not fresh:
            return
        self._shown.update(dict.fromkeys(fresh))
        statement = "column_versions" if self._as_of is None else "column_versions_as_of"
        at = NOW if self._as_of is None else self._as_of
        dropped = dropped_then(self._tx, set(fresh) - {self._root.id}, self._as_of)
        for row in self._tx.fetch(statement, ids=fresh, at=at, root=self._root.id):
            dataset, namespace, name, observed, declared, said, own, inherited, *stored = row
            if dataset in dropped:
                continue
            pinned = self._pinned(dataset)
            version, fields, set_id = pinned or stored
            if pinned is None and declared is not None:
                held = others_hold(COLUMNS, laid_over(inherited, own or NONE), said, at)
                set_id = declared if held else set_id
            stated = load_fields(shown_fields(fields, observed))
            types = {field.name: field.type for field in stated}
            self._shown[dataset] = ShownColumns(namespace, name, version, set_id, types)

    def _show_unnamed(self, sources: set[str], made_of_them: Iterable[str]) -> None:
        """Show datasets without versions, which only column lineage names."""
        unseen = [source for source in sources if self._shown[source] is None]
        if not unseen:
            return
        known = {found for (found,) in self._tx.fetch("column_datasets_known", ids=unseen)}
        unnamed = {source for source in unseen if source not in known}
        if not unnamed:
            return
        shown = [version for d in made_of_them if (version := self._shown[d]) is not None]
        versions = [version.version_id for version in shown if version.version_id is not None]
        names = names_told(chain(*self._tx.fetch("column_facets", ids=versions)))
        for source in unnamed & names.keys():
            name = names[source]
            self._shown[source] = ShownColumns(name.namespace, name.name, None, None, {})

    def _pinned(self, dataset: str) -> tuple[str, str, str | None] | None:
        """Return the requested version, if it belongs to this dataset."""
        if dataset != self._root.id or not isinstance(self._root, NamedDataset):
            return None
        version = self._root.version
        if version is None:
            return None
        return version.id, version.fields, version.column_set_id


def _sets(versions: Iterable[ShownColumns | None]) -> list[str]:
    return [v.column_set_id for v in versions if v is not None and v.column_set_id is not None]


def column_lineage(
    tx: Transaction,
    node_id: str,
    depth: int = DEPTH_DEFAULT,
    with_downstream: bool = False,
    as_of: Micros | None = None,
    with_indirect: bool = False,
) -> ColumnGraph:
    """Return the graph around a field, all fields of a dataset, or all outputs of a job.

    A dataset with `#version` selects the time of that version, and every node id then includes its
    version. Indirect lineage of whole datasets (keys of joins, filters and sorts) is included only
    on request.
    """
    begin_walk(tx, depth)
    named = find_node(tx, node_id)
    at = time_of(named, as_of)
    columns = Columns(tx, named, at, with_indirect=with_indirect)
    start = _start(tx, columns, named, at)
    seen = _walk(columns.sources, start, depth)
    if with_downstream:
        seen |= _walk(columns.products, start, depth)
    is_versioned = isinstance(named, NamedDataset) and named.version is not None
    graph = _draw(columns, seen, is_versioned=is_versioned)
    return replace(graph, indirect=_of_all_fields(columns, seen)) if with_indirect else graph


def _start(tx: Transaction, columns: Columns, named: Named, at: Micros | None) -> set[ColumnKey]:
    """Return the columns that a node id means."""
    if isinstance(named, NamedRun):
        raise Invalid("a run has no columns of its own; ask for its job, a dataset or a field")
    if isinstance(named, NamedJob):
        return columns.all_of(_outputs(tx, named, at))
    if named.field is None:
        return columns.all_of([named.id])
    return {_existing(columns, named, ColumnKey(named.id, named.field))}


def _outputs(tx: Transaction, job: NamedJob, at: Micros | None) -> list[str]:
    source = edge_source(tx, job.id, "current", at, job.version)
    edges, _ = source.edges_of([job.id])
    return [edge.dataset_id for edge in edges if edge.role == DatasetRole.OUTPUT]


def _existing(columns: Columns, dataset: NamedDataset, column: ColumnKey) -> ColumnKey:
    """Refuse a field without a schema or lineage."""
    shown = columns.shown(column.dataset_id)
    if column.field in shown.types or columns.sources([column]) or columns.products([column]):
        return column
    fields = ", ".join(sorted(shown.types)) or "none that is known"
    raise NotFound(
        f"dataset {dataset.namespace}:{dataset.name} has no field {column.field!r}; "
        f"it has {fields[:500]}"
    )


def _walk(
    beside: Callable[[Collection[ColumnKey]], set[ColumnKey]], start: set[ColumnKey], depth: int
) -> set[ColumnKey]:
    """Return everything within a number of hops."""
    seen, frontier = set(start), start
    for _ in range(depth):
        frontier = beside(frontier) - seen
        if not frontier:
            break
        seen |= frontier
    return seen


def _draw(columns: Columns, seen: set[ColumnKey], *, is_versioned: bool) -> ColumnGraph:
    """Return a node for each column, and the edges between them."""
    inputs = columns.inputs_of(seen)
    names = {column: _node_id(columns, column, is_versioned) for column in seen}
    index = EdgeIndex(
        (names[source.column], names[column])
        for column in seen
        for source in inputs[column]
        if source.column in names
    )
    nodes = [
        FieldNode(
            node, _data(columns, column, inputs[column]), index.into[node], index.out_of[node]
        )
        for column, node in names.items()
    ]
    nodes.sort(key=lambda node: node.id)
    return ColumnGraph(nodes)


def _of_all_fields(columns: Columns, seen: set[ColumnKey]) -> list[IndirectLineage]:
    """Return the fields that all fields of a dataset depend on, for each dataset of the graph."""
    lineages = []
    for dataset in {column.dataset_id for column in seen}:
        if sources := columns.inputs_of_all_fields(dataset):
            shown = columns.shown(dataset)
            inputs = _input_fields(columns, sources)
            lineage = IndirectLineage(shown.namespace, shown.name, shown.version_id, inputs)
            lineages.append(lineage)
    return sorted(lineages, key=lambda lineage: (lineage.namespace, lineage.dataset))


def _node_id(columns: Columns, column: ColumnKey, is_versioned: bool) -> str:
    shown = columns.shown(column.dataset_id)
    node = field_node(shown.namespace, shown.name, column.field)
    return f"{node}#{shown.version_id}" if is_versioned and shown.version_id else node


def _data(columns: Columns, column: ColumnKey, sources: list[MadeFrom]) -> FieldData:
    shown = columns.shown(column.dataset_id)
    return FieldData(
        namespace=shown.namespace,
        dataset=shown.name,
        dataset_version=shown.version_id,
        field=column.field,
        field_type=shown.types.get(column.field) or "",
        transformation_description=_said_alike(source.description for source in sources),
        transformation_type=_said_alike(source.type for source in sources),
        input_fields=_input_fields(columns, sources),
    )


def _input_fields(columns: Columns, sources: list[MadeFrom]) -> list[InputField]:
    return sorted(
        (_input_field(columns, source) for source in sources),
        key=lambda field: (field.namespace, field.dataset, field.field),
    )


def _input_field(columns: Columns, source: MadeFrom) -> InputField:
    shown = columns.shown(source.column.dataset_id)
    return InputField(
        shown.namespace,
        shown.name,
        source.column.field,
        source.description,
        source.type,
        source.indirect or UNSET,
    )


def _said_alike(texts: Iterable[str | None]) -> str | None:
    """Return what is equal in the descriptions of all inputs."""
    different = set(texts)
    return different.pop() if len(different) == 1 else None
