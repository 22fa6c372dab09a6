"""Names of datasets: namespaces, sources, tags and second names."""

from collections.abc import Iterable
from itertools import chain

import msgspec

from penstock import ids
from penstock.catalog.entities.tags import use_tags
from penstock.catalog.events import known_facets
from penstock.catalog.events.facets import read_facets
from penstock.catalog.events.known_facets import DatasetName, DataSource, column_inputs
from penstock.catalog.events.parse import Mention
from penstock.catalog.rows import AliasRow, DatasetRow, NamespaceRow, SourceRow, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros


def home(uow: UnitOfWork, mention: Mention) -> str:
    """Return the namespace of the dataset with this name."""
    dataset = uow.datasets.get(uow.dataset_id(mention.id))
    return dataset.namespace if dataset is not None else mention.namespace


def ensure_namespace(uow: UnitOfWork, name: str, at: Micros) -> None:
    """Return the namespace of an event; create it, or restore it if it was deleted."""
    row = uow.namespaces.get(name)
    if row is None:
        uow.namespaces.put(name, NamespaceRow(name, "anonymous", None, 0, at, at))
    elif row.hidden and at > row.hidden_at:
        uow.namespaces.put(name, replace(row, hidden=0))
    elif at < row.created_at:
        untouched = row.updated_at == row.created_at
        updated_at = at if untouched else row.updated_at
        uow.namespaces.put(name, replace(row, created_at=at, updated_at=updated_at))


def new_dataset(dataset_id: str, namespace: str, name: str, source: str, at: Micros) -> DatasetRow:
    """Return a dataset without versions."""
    return DatasetRow(
        id=dataset_id,
        namespace=namespace,
        name=name,
        type="DB_TABLE",
        physical_name=name,
        source_name=source,
        description=None,
        description_stamp=0,
        current_version_id=None,
        published_at=None,
        latest_version_id=None,
        latest_number=0,
        version_count=0,
        implied_version_id=None,
        observed="{}",
        tags="[]",
        field_tags="{}",
        lifecycle="",
        hidden=0,
        hidden_at=0,
        created_at=at,
        updated_at=at,
    )


def name_elsewhere(
    uow: UnitOfWork, dataset_id: str, namespace: str, name: str, at: Micros
) -> DatasetRow:
    """Create a dataset in a namespace that the caller may not write.

    An existing namespace or source does not change. A dataset in a deleted namespace is deleted
    with it.
    """
    row = uow.namespaces.get(namespace)
    if row is None:
        ensure_namespace(uow, namespace, at)
    if uow.sources.get(namespace) is None:
        ensure_source(uow, None, namespace, at)
    dataset = new_dataset(dataset_id, namespace, name, namespace, at)
    if row is not None and row.hidden:
        dataset = replace(dataset, hidden=1, hidden_at=row.hidden_at)
    uow.datasets.put(dataset_id, dataset)
    return dataset


def show_namespace(uow: UnitOfWork, name: str) -> None:
    """Show a namespace again because something in it was declared or restored."""
    row = uow.namespaces.get(name)
    if row is not None and row.hidden:
        uow.namespaces.put(name, replace(row, hidden=0))


def ensure_source(uow: UnitOfWork, stated: DataSource | None, namespace: str, at: Micros) -> str:
    """Return the declared source, or the namespace itself, from which OpenLineage derives it."""
    name = (stated.name if stated else None) or namespace
    row = uow.sources.get(name)
    if row is None:
        url = (stated.uri if stated else None) or namespace
        scheme = url.partition("://")[0] if "://" in url else "unknown"
        uow.sources.put(name, SourceRow(name, scheme.upper(), url, None, at, at))
    elif at < row.created_at:
        untouched = row.updated_at == row.created_at
        updated_at = at if untouched else row.updated_at
        uow.sources.put(name, replace(row, created_at=at, updated_at=updated_at))
    return name


def tag_dataset(
    uow: UnitOfWork, dataset: DatasetRow, marks: list[known_facets.TagMark]
) -> DatasetRow:
    """Add tags to a dataset and its fields; create new tags."""
    tags: list[str] = msgspec.json.decode(dataset.tags)
    field_tags: dict[str, list[str]] = msgspec.json.decode(dataset.field_tags)
    carried = {*tags, *chain.from_iterable(field_tags.values())}
    use_tags(uow, dataset.namespace, {mark.name for mark in marks} - carried)
    for mark in marks:
        (tags if mark.field is None else field_tags.setdefault(mark.field, [])).append(mark.name)
    return replace(
        dataset,
        tags=msgspec.json.encode(sorted(set(tags))).decode(),
        field_tags=msgspec.json.encode(
            {field: sorted(set(names)) for field, names in sorted(field_tags.items())}
        ).decode(),
    )


def untag_dataset(dataset: DatasetRow, mark: known_facets.TagMark) -> DatasetRow:
    """Remove a tag from a dataset or from one of its fields."""
    if mark.field is None:
        tags = [tag for tag in msgspec.json.decode(dataset.tags) if tag != mark.name]
        return replace(dataset, tags=msgspec.json.encode(tags).decode())
    field_tags: dict[str, list[str]] = msgspec.json.decode(dataset.field_tags)
    kept = [tag for tag in field_tags.pop(mark.field, []) if tag != mark.name]
    if kept:
        field_tags[mark.field] = kept
    return replace(dataset, field_tags=msgspec.json.encode(field_tags).decode())


def add_aliases(
    uow: UnitOfWork, dataset_id: str, names: list[known_facets.ReportedAlias], at: Micros
) -> None:
    """Add second names; a name that has a dataset of its own keeps it."""
    for name in names:
        alias_id = ids.dataset_id(name.namespace, name.name)
        taken = uow.datasets.get(alias_id) is not None or uow.aliases.get(alias_id) is not None
        if not taken:
            ensure_namespace(uow, name.namespace, at)
            row = AliasRow(alias_id, name.namespace, name.name, dataset_id, name.type)
            uow.aliases.put(alias_id, row)


def names_told(facets: Iterable[str]) -> dict[str, DatasetName]:
    """Return the names of all datasets in these sets of column lineage, by id."""
    names = {}
    for text in facets:
        for stated in column_inputs(read_facets(text)) or ():
            name = DatasetName(stated.namespace, stated.name)
            names[ids.dataset_id(name.namespace, name.name)] = name
    return names
