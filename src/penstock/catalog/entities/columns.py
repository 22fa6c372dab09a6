"""Sets of column lineage, shared by versions that report the same lineage."""

import msgspec

from penstock import ids
from penstock.catalog.events import known_facets
from penstock.catalog.events.facets import Facets
from penstock.catalog.rows import ColumnEdgeRow
from penstock.catalog.unit_of_work import UnitOfWork


def column_set(uow: UnitOfWork, dataset_id: str, facets: Facets) -> str | None:
    """Store the column lineage of these facets and return the id of its set.

    Most runs report the same lineage as the run before; the set of the current version is then
    reused.
    """
    inputs = known_facets.column_inputs(facets)
    if inputs is None:
        return None
    named = [ids.dataset_id(stated.namespace, stated.name) for stated in inputs]
    sources = [uow.dataset_id(name) for name in named]
    texts = [msgspec.json.encode(inputs).decode()]
    if sources != named:  # including second names: with them the same report has another meaning
        texts.append(msgspec.json.encode(sources).decode())
    set_id = ids.derived_id("columns", dataset_id, *texts)
    if set_id == _current_set(uow, dataset_id):
        return set_id
    edges: dict[tuple[str, str, str], ColumnEdgeRow] = {}
    for stated, source in zip(inputs, sources, strict=True):
        key = stated.field, source, stated.input_field
        if stated.indirect and key in edges:
            continue  # a field that is both direct and indirect is direct
        edges[key] = ColumnEdgeRow(
            set_id,
            dataset_id,
            stated.field,
            source,
            stated.input_field,
            stated.description,
            stated.type,
            int(stated.indirect),
        )
    uow.column_edges.put(set_id, tuple(edges.values()))
    return set_id


def _current_set(uow: UnitOfWork, dataset_id: str) -> str | None:
    dataset = uow.datasets.get(dataset_id)
    if dataset is None or dataset.current_version_id is None:
        return None
    current = uow.versions.get(dataset.current_version_id)
    return current.column_set_id if current is not None else None
