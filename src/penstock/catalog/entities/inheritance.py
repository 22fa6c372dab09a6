"""What a version inherits from the version that was published before it.

A run that writes a dataset often reports only a part of what is known of it. Each version holds
the facets that its own run reported, and the id of a set with those that it inherits. The order of
publication decides, not the order of arrival: when a version is published or described late, the
versions after it are brought in line, up to the first that stays as it is.
"""

from collections.abc import Set
from typing import Final

from penstock import ids
from penstock.catalog.entities.columns import column_set
from penstock.catalog.events.facets import (
    Facets,
    is_deleted,
    read_facets,
    read_stamps,
    write_facets,
    write_stamps,
)
from penstock.catalog.events.known_facets import (
    COLUMNS,
    OF_ONE_VERSION,
    column_inputs,
    columns_stated,
    without_columns,
)
from penstock.catalog.events.schema import NO_FIELDS, load_fields
from penstock.catalog.rows import DatasetRow, FacetSetRow, VersionRow, replace
from penstock.catalog.unit_of_work import Place, UnitOfWork, place_of

SCHEMA: Final = "schema"
DOCUMENTATION: Final = "documentation"
_NO_COLUMNS: Final[frozenset[str]] = frozenset()


def version_before(uow: UnitOfWork, dataset: DatasetRow, version: VersionRow) -> VersionRow | None:
    """The version that was published last before a published one; usually the current one."""
    if dataset.published_at is None or dataset.current_version_id is None:
        return None
    current = dataset.current_version_id
    if current != version.id and (dataset.published_at, current) < place_of(version):
        return uow.versions.get(current)
    return uow.published_before(version)


def inherit(uow: UnitOfWork, version: VersionRow, before: VersionRow | None) -> VersionRow:
    """Let a version inherit what its own run did not report."""
    if before is None:
        return version
    own = read_stamps(version.stamps).keys()
    fields, schema_id = before.fields, before.schema_id
    columns, description = before.column_set_id, before.description
    removed = _NO_COLUMNS
    if SCHEMA in own:
        fields, schema_id = version.fields, version.schema_id
        if schema_id != before.schema_id and columns is not None and COLUMNS not in own:
            removed = _removed_columns(uow, version, before)
    if COLUMNS in own:
        columns = version.column_set_id
    if DOCUMENTATION in own:
        description = version.description
    if removed:
        kept = _kept_columns(uow, before, removed)
        columns = column_set(uow, version.dataset_id, kept) if column_inputs(kept) else None
    return replace(
        version,
        inherited_set_id=_inherited_set(uow, version.dataset_id, own, before, removed),
        fields=fields,
        schema_id=schema_id,
        description=description,
        column_set_id=columns,
    )


def pass_on(uow: UnitOfWork, version: VersionRow, until: Place) -> None:
    """Bring the versions after a changed one in line.

    All up to a place are looked at, then those up to the first that stays as it is.
    """
    before = version
    while later := uow.published_after(before):
        for held in later:
            fresh = inherit(uow, held, before)
            if fresh != held:
                uow.versions.learn(held.id, held)  # or a batch takes it for a new version
                uow.versions.put(fresh.id, fresh)
                mark_shown(uow, fresh)
            elif place_of(held) > until:
                return
            before = fresh


def mark_shown(uow: UnitOfWork, version: VersionRow) -> None:
    """Mark the dataset as changed if it shows this version: its search words follow the fields."""
    dataset = uow.datasets.get(version.dataset_id)
    if dataset is not None and dataset.current_version_id == version.id:
        uow.datasets.put(dataset.id, dataset)


def _inherited_set(
    uow: UnitOfWork, dataset_id: str, own: Set[str], before: VersionRow, removed: frozenset[str]
) -> str | None:
    """Store the set that a version inherits, and return its id; None where it inherits nothing."""
    stated = read_stamps(before.stamps).keys() - OF_ONE_VERSION
    held = before.inherited_set_id
    if held is None and not stated - own:
        return None
    if not stated and not removed and not own - OF_ONE_VERSION:
        return held
    facets, stamps = _effective(uow, before)
    names = sorted(
        name
        for name, facet in facets.items()
        if name not in own and name not in OF_ONE_VERSION and not is_deleted(facet)
    )
    if not names:
        return None
    passed = {name: facets[name] for name in names}
    if removed:
        passed |= _kept_columns(uow, before, removed)
    texts = write_facets(passed), write_stamps({name: stamps[name] for name in names})
    set_id = ids.derived_id("inherited", dataset_id, *texts)
    uow.facet_sets.put(set_id, FacetSetRow(set_id, dataset_id, *texts))
    return set_id


def _effective(uow: UnitOfWork, version: VersionRow) -> tuple[Facets, dict[str, int]]:
    """The facets of a version, its own and those that it inherits, with their stamps."""
    own, stamps = read_facets(version.facets), read_stamps(version.stamps)
    held = uow.facet_sets.get(version.inherited_set_id) if version.inherited_set_id else None
    if held is None:
        return own, stamps
    return {**read_facets(held.facets), **own}, {**read_stamps(held.stamps), **stamps}


def _removed_columns(uow: UnitOfWork, version: VersionRow, before: VersionRow) -> frozenset[str]:
    """The columns with a lineage that the schema of a version does not have any more.

    Names are compared in lower case: producers differ in how they write them. A nested field is
    there as long as its outermost field. A schema without fields removes nothing.
    """
    if version.fields == NO_FIELDS:
        return _NO_COLUMNS
    present = {field.name.lower() for field in load_fields(version.fields)}
    facets, _ = _effective(uow, before)
    return frozenset(
        name
        for name in columns_stated(facets)
        if name.lower() not in present and name.lower().partition(".")[0] not in present
    )


def _kept_columns(uow: UnitOfWork, before: VersionRow, removed: frozenset[str]) -> Facets:
    facets, _ = _effective(uow, before)
    return without_columns(facets, removed)
