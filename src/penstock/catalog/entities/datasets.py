"""Rules for datasets and their versions, and which version is current."""

from penstock import ids
from penstock.catalog.entities import names
from penstock.catalog.entities.columns import column_set
from penstock.catalog.entities.inheritance import inherit, mark_shown, pass_on, version_before
from penstock.catalog.events import known_facets
from penstock.catalog.events.facets import Facets, Stamp, merge, read_stamps, stamped_at
from penstock.catalog.events.schema import NO_FIELDS, NO_SCHEMA, observed_schema, read_schema
from penstock.catalog.rows import DatasetRow, Origin, VersionRow, replace
from penstock.catalog.unit_of_work import UnitOfWork, place_of
from penstock.clock import Micros, after

DROPPED = "DROP"


def named_dataset(
    uow: UnitOfWork, dataset_id: str, namespace: str, name: str, at: Micros
) -> DatasetRow:
    """Return a dataset that an event names; create it on its first mention.

    Its source is its namespace until a writer names another.
    """
    names.ensure_namespace(uow, namespace, at)
    source = names.ensure_source(uow, None, namespace, at)
    return names.new_dataset(dataset_id, namespace, name, source, at)


def new_version(
    dataset: DatasetRow,
    version_id: str,
    number: int,
    origin: Origin,
    run_id: str | None,
    schema: tuple[str, str],
    at: Micros,
) -> VersionRow:
    """Return an empty version."""
    fields, schema_of_fields = schema
    return VersionRow(
        id=version_id,
        dataset_id=dataset.id,
        number=number,
        origin=origin,
        run_id=run_id,
        schema_id=schema_of_fields,
        fields=fields,
        facets="{}",
        stamps="{}",
        type=dataset.type,
        physical_name=dataset.physical_name,
        source_name=dataset.source_name,
        description=None,
        lifecycle="",
        column_set_id=None,
        created_at=at,
        published_at=None,
    )


def add_version(
    uow: UnitOfWork,
    dataset: DatasetRow,
    version_id: str,
    origin: Origin,
    run_id: str | None,
    schema: tuple[str, str],
    at: Micros,
    *,
    unconfirmed: bool = False,
) -> tuple[DatasetRow, VersionRow]:
    """Add the next version of a dataset; it is not current until it is published."""
    version = new_version(
        dataset, version_id, dataset.latest_number + 1, origin, run_id, schema, at
    )
    latest_id = version_id
    if unconfirmed:
        version = replace(version, unconfirmed=1)
        latest = uow.versions.get(dataset.latest_version_id or "")
        if latest is not None and not latest.unconfirmed:
            latest_id = latest.id
    dataset = replace(
        dataset,
        latest_version_id=latest_id,
        latest_number=version.number,
        version_count=dataset.version_count + 1,
    )
    uow.versions.put(version_id, version)
    uow.datasets.put(dataset.id, dataset)
    return dataset, version


def confirm_version(
    uow: UnitOfWork, dataset: DatasetRow, version: VersionRow
) -> tuple[DatasetRow, VersionRow]:
    """Confirm a version that was only reported: an authorized writer names it too."""
    latest = uow.versions.get(dataset.latest_version_id or "")
    version = replace(version, unconfirmed=0)
    uow.versions.put(version.id, version)
    if latest is None or latest.unconfirmed or latest.number < version.number:
        dataset = replace(dataset, latest_version_id=version.id)
        uow.datasets.put(dataset.id, dataset)
    return dataset, version


def imply_version(uow: UnitOfWork, dataset: DatasetRow, at: Micros) -> DatasetRow:
    """Imply a version of a dataset that only readers have named: it existed before.

    The version is published at the beginning of time, so any completed run is newer. If the
    reader's own run already wrote the only version, the implied one comes second.
    """
    own_id = dataset.latest_version_id
    number = dataset.latest_number + 1
    if own_id is not None and (own := uow.versions.get(own_id)) is not None:
        number = own.number
        uow.versions.put(own.id, replace(own, number=number + 1))
    version_id = ids.derived_id("implied", dataset.id)
    source = dataset.namespace
    if uow.sources.get(source) is None:
        names.ensure_source(uow, None, source, at)
    version = replace(
        new_version(dataset, version_id, number, Origin.IMPLIED, None, (NO_FIELDS, NO_SCHEMA), at),
        source_name=source,
        published_at=0,
    )
    uow.versions.put(version_id, version)
    dataset = replace(
        dataset,
        latest_version_id=own_id or version_id,
        latest_number=dataset.latest_number + 1,
        version_count=dataset.version_count + 1,
        implied_version_id=version_id,
    )
    if dataset.current_version_id is None:
        dataset = replace(dataset, current_version_id=version_id, published_at=0)
    uow.datasets.put(dataset.id, dataset)
    return dataset


def version_to_read(uow: UnitOfWork, dataset: DatasetRow, run_id: str) -> str | None:
    """Return the version that a run reads: the current or the newest one, never its own."""
    current = uow.versions.get(dataset.current_version_id) if dataset.current_version_id else None
    if current is not None and current.run_id != run_id:
        return current.id
    if current is None and dataset.latest_version_id is not None:
        latest = uow.versions.get(dataset.latest_version_id)
        if latest is not None and latest.run_id != run_id:
            return latest.id
    if dataset.version_count < 2:
        return None
    other = uow.newest_published(dataset.id, run_id) or uow.newest_version(dataset.id, run_id)
    return other.id if other is not None else None


def shown_schema(uow: UnitOfWork, dataset: DatasetRow) -> tuple[str, str]:
    """Return the fields that a dataset shows, and their schema id."""
    written = schema_of(shown_version(uow, dataset))
    return written if written[1] != NO_SCHEMA else observed_schema(dataset.observed)


def shown_version(uow: UnitOfWork, dataset: DatasetRow) -> VersionRow | None:
    """Return the current version, or else the latest."""
    shown = dataset.current_version_id or dataset.latest_version_id
    return uow.versions.get(shown) if shown is not None else None


def schema_of(version: VersionRow | None) -> tuple[str, str]:
    """Return the fields of a version as its writers declare them, and their schema id."""
    return (version.fields, version.schema_id) if version is not None else (NO_FIELDS, NO_SCHEMA)


def describe_version(
    uow: UnitOfWork, version: VersionRow, facets: Facets, stamp: Stamp, at: Micros
) -> tuple[VersionRow, Facets]:
    """Merge the facets of an event into a version; return the facets that won as well."""
    former = version.facets
    merged = merge(former, version.stamps, facets, stamp)
    if merged is None:
        if at < version.created_at:
            version = replace(version, created_at=at)
            uow.versions.put(version.id, version)
        return version, {}
    won = merged.won
    fields, schema_of_fields = version.fields, version.schema_id
    if "schema" in won:
        fields, schema_of_fields = read_schema(bytes(won["schema"]))
    source = known_facets.data_source(won) if "dataSource" in won else None
    version = replace(
        version,
        facets=merged.facets,
        stamps=merged.stamps,
        fields=fields,
        schema_id=schema_of_fields,
        source_name=(source.name if source else None) or version.source_name,
        created_at=min(at, version.created_at),
    )
    if "documentation" in won:
        version = replace(version, description=known_facets.documentation(won) or None)
    if known_facets.LIFECYCLE in won:
        version = replace(version, lifecycle=known_facets.lifecycle(won) or "")
    if known_facets.COLUMNS in won:
        columns = column_set(uow, version.dataset_id, won)
        version = replace(version, column_set_id=columns)
    uow.versions.put(version.id, version)
    if version.published_at is not None:
        version = _describe_again(uow, version, is_stamped_only=merged.facets is former)
    return version, won


def _describe_again(uow: UnitOfWork, version: VersionRow, *, is_stamped_only: bool) -> VersionRow:
    """Update a version that was described after its publication, and the versions after it."""
    dataset = uow.datasets.get(version.dataset_id)
    assert dataset is not None, "a version always has its dataset"
    is_current = dataset.current_version_id == version.id
    if is_current and is_stamped_only:
        return version
    fresh = inherit(uow, version, version_before(uow, dataset, version))
    if fresh != version:
        uow.versions.put(fresh.id, fresh)
    mark_shown(uow, fresh)
    if not is_current:
        pass_on(uow, fresh, place_of(fresh))
    return fresh


def describe_dataset(
    uow: UnitOfWork, dataset: DatasetRow, facets: Facets, won: Facets, stamp: Stamp, at: Micros
) -> DatasetRow:
    """Apply the facets that belong to the dataset and not to one version.

    Tags and names add up. The latest description wins, and so does the source that won.
    """
    if "documentation" in facets:
        stated = known_facets.documentation(facets)
        former = (dataset.description_stamp, dataset.description or "")
        if stated is not None and (stamp, stated) > former:
            dataset = replace(dataset, description=stated or None, description_stamp=stamp)
    if "dataSource" in facets:
        source = names.ensure_source(uow, known_facets.data_source(facets), dataset.namespace, at)
        if "dataSource" in won and source != dataset.source_name:
            dataset = replace(dataset, source_name=source)
    if "tags" in facets:
        dataset = names.tag_dataset(uow, dataset, known_facets.tags(facets))
    if "symlinks" in facets:
        names.add_aliases(uow, dataset.id, known_facets.aliases(facets), at)
    return dataset


def revive(uow: UnitOfWork, dataset: DatasetRow, run_id: str | None, at: Micros) -> DatasetRow:
    """Restore a deleted dataset on a later event, unless the event's run dropped it."""
    if not dataset.hidden or at <= dataset.hidden_at:
        return dataset
    current = uow.versions.get(dataset.current_version_id) if dataset.current_version_id else None
    if current is not None and current.lifecycle == DROPPED and current.run_id == run_id:
        return dataset
    names.ensure_namespace(uow, dataset.namespace, at)
    return replace(dataset, hidden=0)


def publish(uow: UnitOfWork, version: VersionRow, at: Micros, updated_at: Micros) -> None:
    """Make a version current from a time on, unless a later one is.

    Either way, a later report of the writer restores a deleted dataset.
    """
    if version.unconfirmed:
        return
    lowered = version.published_at is not None and at < version.published_at
    dataset = uow.datasets.get(version.dataset_id)
    assert dataset is not None, "a version always has its dataset"
    if version.published_at != at:
        version = _take_place(uow, dataset, version, at)
    changed = replace(dataset, updated_at=max(dataset.updated_at, updated_at))
    if dataset.hidden and updated_at > dataset.hidden_at and not _hides(dataset, version.id):
        changed = replace(changed, hidden=0)
    if dataset.current_version_id == version.id:
        newest = uow.newest_published(dataset.id, None) if lowered else version
        changed = _with_current(changed, newest or version, version.id)
    elif dataset.published_at is None or (at, version.id) > (
        dataset.published_at,
        dataset.current_version_id or "",
    ):
        changed = _with_current(changed, version, version.id)
    if _drops_too(changed, version):
        changed = replace(changed, hidden=1, hidden_at=changed.published_at or 0)
    if dataset.hidden and not changed.hidden:
        names.ensure_namespace(uow, dataset.namespace, updated_at)
    if changed != dataset:
        uow.datasets.put(dataset.id, changed)


def _take_place(
    uow: UnitOfWork, dataset: DatasetRow, version: VersionRow, at: Micros
) -> VersionRow:
    """Publish a version: it inherits from the version before it, and later ones from it."""
    moved = replace(version, published_at=at)
    until = max(place_of(moved), place_of(version))
    moved = inherit(uow, moved, version_before(uow, dataset, moved))
    uow.versions.put(moved.id, moved)
    last = (dataset.published_at or 0, dataset.current_version_id or "")
    if dataset.published_at is not None and last > place_of(moved):
        pass_on(uow, moved, until)
    return moved


def _drops_too(dataset: DatasetRow, version: VersionRow) -> bool:
    """Return whether a version that is not current repeats the drop of the current one.

    A repeated drop does not restore the dataset; other later reports do.
    """
    if version.lifecycle != DROPPED or dataset.lifecycle != DROPPED:
        return False
    if dataset.current_version_id == version.id:
        return False
    return max(version.published_at or 0, _dropped_at(version)) >= dataset.hidden_at


def _hides(dataset: DatasetRow, version_id: str) -> bool:
    """Return whether this version hides the dataset because it dropped it."""
    dropped = dataset.current_version_id == version_id and dataset.lifecycle == DROPPED
    return dropped and dataset.hidden_at == dataset.published_at


def _with_current(dataset: DatasetRow, version: VersionRow, published_id: str) -> DatasetRow:
    """Set the current version of a dataset after a publication.

    A version with DROP hides the dataset from its publication. A later deletion or restoration by a
    person wins, unless the run reports the drop later still: a stream publishes when it begins and
    may drop hours later.
    """
    drops, was_dropped = version.lifecycle == DROPPED, _hides(dataset, published_id)
    said = (version.id, version.published_at, version.lifecycle)
    is_known = said == (dataset.current_version_id, dataset.published_at, dataset.lifecycle)
    if is_known and (was_dropped or not drops):
        return dataset
    at = version.published_at or 0
    hidden, hidden_at = dataset.hidden, dataset.hidden_at
    if drops and (
        was_dropped or (version.id == published_id and max(at, _dropped_at(version)) >= hidden_at)
    ):
        hidden, hidden_at = 1, at
    elif was_dropped:
        hidden = 0
    return replace(
        dataset,
        current_version_id=version.id,
        published_at=version.published_at,
        lifecycle=version.lifecycle,
        hidden=hidden,
        hidden_at=hidden_at,
    )


def choose_current(uow: UnitOfWork, dataset_id: str) -> None:
    """Choose the current version again after publication times changed."""
    dataset = uow.datasets.get(dataset_id)
    newest = uow.newest_published(dataset_id, None)
    if dataset is not None and newest is not None and dataset.current_version_id is not None:
        chosen = _with_current(dataset, newest, dataset.current_version_id)
        uow.datasets.put(dataset_id, chosen)


def _dropped_at(version: VersionRow) -> Micros:
    """Return when the writer of a version reported the drop."""
    return stamped_at(read_stamps(version.stamps).get(known_facets.LIFECYCLE, 0))


def next_publication(dataset: DatasetRow, now: Micros) -> Micros:
    """Return the time of a publication now: after every earlier publication."""
    return after(now, dataset.published_at)


def next_change(dataset: DatasetRow, now: Micros) -> Micros:
    """Return the time of a manual change now: after every earlier report on the dataset."""
    described_at = stamped_at(dataset.description_stamp)
    return after(now, dataset.published_at, dataset.hidden_at, dataset.updated_at, described_at)


def follow_versions(
    uow: UnitOfWork, dataset: DatasetRow, last_id: str, added: int, at: Micros
) -> None:
    """Count added versions, and make the one published last current."""
    dataset = replace(
        dataset,
        latest_version_id=last_id if added else dataset.latest_version_id,
        latest_number=dataset.latest_number + added,
        version_count=dataset.version_count + added,
        updated_at=max(dataset.updated_at, at),
    )
    if dataset.published_at is None or at >= dataset.published_at:
        if dataset.hidden:
            names.ensure_namespace(uow, dataset.namespace, at)
        dataset = replace(
            dataset, current_version_id=last_id, published_at=at, lifecycle="", hidden=0
        )
    uow.datasets.put(dataset.id, dataset)
