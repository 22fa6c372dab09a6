"""Inheritance of facets: a version inherits from the version published before it.

A run often reports only a part of a dataset's facets. Each version stores the facets that its own
run reported, and the id of a set of inherited ones. The order of publication decides, not the order
of arrival: after a late publication or description, the following versions are updated until one
does not change.
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
    """Return the version published before a published one; usually the current one."""
    if dataset.published_at is None or dataset.current_version_id is None:
        return None
    current = dataset.current_version_id
    if current != version.id and (dataset.published_at, current) < place_of(version):
        return uow.versions.get(current)
    return uow.published_before(version)


def inherit(uow: UnitOfWork, version: VersionRow, before: VersionRow | None) -> VersionRow:
    """Inherit the facets that a version's own run did not report."""
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
    """Update the versions after a changed one.

    Visits all versions up to a place, then on until one does not change.
    """
    before = version
    while later := uow.published_after(before):
        for following in later:
            fresh = inherit(uow, following, before)
            if fresh != following:
                # Otherwise the batch takes it for a new version.
                uow.versions.learn(following.id, following)
                uow.versions.put(fresh.id, fresh)
                mark_shown(uow, fresh)
            elif place_of(following) > until:
                return
            before = fresh


def mark_shown(uow: UnitOfWork, version: VersionRow) -> None:
    """Mark a dataset as changed if it shows this version: its search words depend on the fields."""
    dataset = uow.datasets.get(version.dataset_id)
    if dataset is not None and dataset.current_version_id == version.id:
        uow.datasets.put(dataset.id, dataset)


def _inherited_set(
    uow: UnitOfWork, dataset_id: str, own: Set[str], before: VersionRow, removed: frozenset[str]
) -> str | None:
    """Store the set that a version inherits; return its id, or None if it inherits nothing."""
    stated = read_stamps(before.stamps).keys() - OF_ONE_VERSION
    inherited_id = before.inherited_set_id
    if inherited_id is None and not stated - own:
        return None
    if not stated and not removed and not own - OF_ONE_VERSION:
        return inherited_id
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
    """Return the facets of a version, own and inherited, with their stamps."""
    own, stamps = read_facets(version.facets), read_stamps(version.stamps)
    held = uow.facet_sets.get(version.inherited_set_id) if version.inherited_set_id else None
    if held is None:
        return own, stamps
    return {**read_facets(held.facets), **own}, {**read_stamps(held.stamps), **stamps}


def _removed_columns(uow: UnitOfWork, version: VersionRow, before: VersionRow) -> frozenset[str]:
    """Return columns with lineage that the schema of a version no longer has.

    Names are compared in lower case, because producers differ. A nested field exists while its
    outermost field exists. A schema without fields removes nothing.
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
