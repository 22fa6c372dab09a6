"""Column lineage: which fields a field is made from, and what is made from it.

A hop is one field made from another. Upstream is always walked; downstream, if asked for, is
walked from the same fields and never turns round. What counts for a dataset is its current
version, or the one that was current at a time.
"""

from collections.abc import Callable, Collection, Iterable

from msgspec import UNSET
from msgspec.structs import replace

from penstock.catalog.columns import Column, Columns, MadeFrom
from penstock.catalog.graph import (
    DEPTH_DEFAULT,
    ColumnGraph,
    EdgeIndex,
    FieldData,
    FieldNode,
    IndirectLineage,
    begin_walk,
)
from penstock.catalog.lineage_edges import edge_source
from penstock.catalog.nodes import (
    Named,
    NamedDataset,
    NamedJob,
    NamedRun,
    field_node,
    find_node,
    time_of,
)
from penstock.catalog.rows import Role
from penstock.catalog.shapes import InputField
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.errors import Invalid, NotFound


def column_lineage(
    tx: Transaction,
    node_id: str,
    depth: int = DEPTH_DEFAULT,
    with_downstream: bool = False,
    as_of: Micros | None = None,
    with_indirect: bool = False,
) -> ColumnGraph:
    """The graph around a field, all fields of a dataset, or all fields that a job writes.

    A dataset with `#version` asks for the time of that version, and every node id then says
    which version it means. Indirect lineage of whole datasets (keys of joins, filters and sorts)
    is walked and shown only if asked for.
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


def _start(tx: Transaction, columns: Columns, named: Named, at: Micros | None) -> set[Column]:
    """The columns that a node id means."""
    if isinstance(named, NamedRun):
        raise Invalid("a run has no columns of its own; ask for its job, a dataset or a field")
    if isinstance(named, NamedJob):
        return columns.all_of(_outputs(tx, named, at))
    if named.field is None:
        return columns.all_of([named.id])
    return {_existing(columns, named, Column(named.id, named.field))}


def _outputs(tx: Transaction, job: NamedJob, at: Micros | None) -> list[str]:
    source = edge_source(tx, job.id, "current", at, job.version)
    edges, _ = source.edges_of([job.id])
    return [edge.dataset_id for edge in edges if edge.role == Role.OUTPUT]


def _existing(columns: Columns, dataset: NamedDataset, column: Column) -> Column:
    """Refuse a field that no schema has and no lineage speaks of."""
    shown = columns.shown(column.dataset_id)
    if column.field in shown.types or columns.sources([column]) or columns.products([column]):
        return column
    fields = ", ".join(sorted(shown.types)) or "none that is known"
    raise NotFound(
        f"dataset {dataset.namespace}:{dataset.name} has no field {column.field!r}; "
        f"it has {fields[:500]}"
    )


def _walk(
    beside: Callable[[Collection[Column]], set[Column]], start: set[Column], depth: int
) -> set[Column]:
    """All that can be reached in so many hops."""
    seen, frontier = set(start), start
    for _ in range(depth):
        frontier = beside(frontier) - seen
        if not frontier:
            break
        seen |= frontier
    return seen


def _draw(columns: Columns, seen: set[Column], *, is_versioned: bool) -> ColumnGraph:
    """A node for each column, and the edges between them."""
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


def _of_all_fields(columns: Columns, seen: set[Column]) -> list[IndirectLineage]:
    """For each dataset in the graph, the fields that all of its fields depend on."""
    lineages = []
    for dataset in {column.dataset_id for column in seen}:
        if sources := columns.inputs_of_all_fields(dataset):
            shown = columns.shown(dataset)
            inputs = _input_fields(columns, sources)
            lineage = IndirectLineage(shown.namespace, shown.name, shown.version_id, inputs)
            lineages.append(lineage)
    return sorted(lineages, key=lambda lineage: (lineage.namespace, lineage.dataset))


def _node_id(columns: Columns, column: Column, is_versioned: bool) -> str:
    shown = columns.shown(column.dataset_id)
    node = field_node(shown.namespace, shown.name, column.field)
    return f"{node}#{shown.version_id}" if is_versioned and shown.version_id else node


def _data(columns: Columns, column: Column, sources: list[MadeFrom]) -> FieldData:
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
    """What is said of all inputs alike."""
    different = set(texts)
    return different.pop() if len(different) == 1 else None
