"""Merging of two datasets when a second name already has a history.

An event states that its dataset has a second name that other events have used. Both become one
dataset with the runs, versions, edges and search words of both, as if the second name had come
first. See docs/adr/0029-second-names-merge-datasets.md.
"""

from collections.abc import Iterator, Mapping

import msgspec

from penstock import ids
from penstock.catalog.changes import changes
from penstock.catalog.entities import datasets
from penstock.catalog.entities import names as dataset_names
from penstock.catalog.entities.inheritance import pass_on
from penstock.catalog.entities.job_versions import put_job_version, version_names
from penstock.catalog.events import known_facets
from penstock.catalog.events.facets import merge, read_facets, read_stamps
from penstock.catalog.events.known_facets import DatasetName, ReportedAlias
from penstock.catalog.events.parse import Event, Mention
from penstock.catalog.rows import (
    AliasRow,
    DatasetRow,
    EdgeRow,
    JobVersionRow,
    SightingRow,
    VersionRow,
    replace,
)
from penstock.catalog.unit_of_work import UnitOfWork, place_of
from penstock.clock import Micros
from penstock.schema.catalog import DatasetRole
from penstock.store.unit_of_work import write_changes

SYMLINKS = "symlinks"


def merge_second_names(uow: UnitOfWork, event: Event) -> None:
    """Merge the datasets that an event names as second names of its dataset.

    Raises NeedsOwnTransaction if other commands share the transaction: many rows change without the
    caches.
    """
    mentions = (*event.inputs, *event.outputs)
    if event.dataset is not None:
        mentions = (event.dataset,)
    for mention in mentions:
        if SYMLINKS in mention.facets:
            for alias in known_facets.aliases(mention.facets):
                _merge_name(uow, mention, alias, event.at)


def _merge_name(uow: UnitOfWork, mention: Mention, alias: ReportedAlias, at: Micros) -> None:
    own_id = uow.dataset_id(mention.id)
    other = uow.datasets.get(ids.dataset_id(alias.namespace, alias.name))
    if other is None or other.id == own_id:
        return
    kept = {found for (found,) in uow.tx.fetch("kept_datasets_among", ids=[own_id, other.id])}
    if {own_id, other.id} <= kept:
        return  # both have lots: an event cannot decide which data of a lot is right
    uow.require_own_transaction()
    own = uow.datasets.get(own_id)
    if other.id in kept:
        if own is None:
            _add_name(uow, mention.id, DatasetName(mention.namespace, mention.name), other.id, "")
            write_changes(uow.tx, changes(uow))
        else:
            _Merge(uow, old=own, new=other, name_type=alias.type).run()
            return
    else:
        if own is None:
            own = replace(
                datasets.named_dataset(uow, own_id, mention.namespace, mention.name, at),
                created_at=other.created_at,
                updated_at=other.updated_at,
                hidden=other.hidden,
                hidden_at=other.hidden_at,
            )
            uow.datasets.put(own_id, own)
            write_changes(uow.tx, changes(uow))
            uow.start_over()
        _Merge(uow, old=other, new=own, name_type=alias.type).run()
        return
    uow.start_over()


def _add_name(uow: UnitOfWork, alias_id: str, name: DatasetName, of: str, name_type: str) -> None:
    row = AliasRow(alias_id, name.namespace, name.name, of, name_type or "TABLE")
    uow.aliases.put(alias_id, row)


class _Merge:
    """One merge: `new` takes over `old`, whose name becomes an alias."""

    def __init__(
        self, uow: UnitOfWork, *, old: DatasetRow, new: DatasetRow, name_type: str
    ) -> None:
        self._uow = uow
        self._tx = uow.tx
        self._old = old
        self._new = new
        self._name_type = name_type
        self._sides = {"old": old.id, "new": new.id}

    def run(self) -> None:
        """Move everything in the open transaction; load the cached rows again."""
        have_versions = all(map(self._is_published, self._sides.values()))
        self._move()
        self._uow.start_over()
        if have_versions:
            self._inherit_in_order()

    def _is_published(self, dataset_id: str) -> bool:
        return bool(
            self._tx.rows(VersionRow, "newest_published_versions", dataset_id=dataset_id, most=1)
        )

    def _inherit_in_order(self) -> None:
        """Let the versions of both datasets inherit in the order of their publication."""
        uow, dataset_id = self._uow, self._new.id
        [first] = self._tx.rows(
            VersionRow, "oldest_published_versions", dataset_id=dataset_id, most=1
        )
        [last] = self._tx.rows(
            VersionRow, "newest_published_versions", dataset_id=dataset_id, most=1
        )
        pass_on(uow, first, until=place_of(last))

    def _move(self) -> None:
        # The flush compares with the former rows: load both first.
        for dataset_id in self._sides.values():
            self._uow.datasets.get(dataset_id)
        self._merge_runs()
        implied_id = self._merge_implied()
        for statement in (
            "move_column_sets",
            "move_facet_sets",
            "move_written",
            "move_read",
            "move_quality_reports",
        ):
            self._tx.execute(statement, **self._sides)
        self._tx.execute(
            "move_versions_of_dataset",
            **self._sides,
            last=self._new.latest_number,
            old_name=self._old.name,
            new_name=self._new.physical_name,
            old_source=self._old.namespace,
            new_source=self._new.source_name,
        )
        for statement in ("copy_column_inputs", "move_aliases"):
            self._tx.execute(statement, **self._sides)
        self._tx.execute("forget_column_inputs", old=self._old.id)
        self._move_edges()
        self._put_dataset(implied_id)
        name = DatasetName(self._old.namespace, self._old.name)
        _add_name(self._uow, self._old.id, name, self._new.id, self._name_type)
        write_changes(self._tx, changes(self._uow))
        for statement in ("forget_dataset", "forget_sighting", "forget_search_doc"):
            self._tx.execute(statement, id=self._old.id)

    def _merge_implied(self) -> str | None:
        """Merge two implied versions; return the id of the one that stays."""
        old_id, new_id = self._old.implied_version_id, self._new.implied_version_id
        if old_id is None or new_id is None:
            return new_id or old_id
        self._drop_version(old_id, new_id)
        return new_id

    def _drop_version(self, version_id: str, instead: str) -> None:
        pinned = {"version_id": instead, "dataset_id": self._new.id}
        self._tx.execute("pin_other_version", was=version_id, **pinned)
        self._tx.execute("report_on_other_version", was=version_id, **pinned)
        self._tx.execute("forget_version", id=version_id)

    def _merge_runs(self) -> None:
        """Merge the rows of runs that read or wrote both datasets."""
        uow = self._uow
        for (run_id,) in self._tx.fetch("runs_that_read_both", **self._sides):
            self._merge_side(run_id, DatasetRole.INPUT)
        for run_id, old_id, new_id in self._tx.fetch("runs_that_wrote_both", **self._sides):
            old, new = uow.versions.get(old_id), uow.versions.get(new_id)
            if old is not None and new is not None:
                uow.versions.put(new_id, _merged_version(new, old))
                self._merge_side(run_id, DatasetRole.OUTPUT)
                self._drop_version(old_id, new_id)

    def _merge_side(self, run_id: str, role: DatasetRole) -> None:
        io = self._uow.io_of(run_id)
        old, new = io.get((role, self._old.id)), io.get((role, self._new.id))
        if old is not None and new is not None:
            facets, stamps = _merged_facets(new.facets, new.stamps, old.facets, old.stamps)
            self._uow.put_io(replace(new, facets=facets, stamps=stamps))
            side = {"run_id": run_id, "role": role, "dataset_id": self._old.id}
            self._tx.execute("forget_run_dataset", **side)
            self._tx.execute("forget_quality_report", **side)

    def _move_edges(self) -> None:
        uow = self._uow
        edges = self._tx.rows(EdgeRow, "edges_of_dataset", dataset_id=self._old.id)
        held = self._tx.rows(EdgeRow, "edges_of_dataset", dataset_id=self._new.id)
        current = {(edge.job_id, edge.role) for edge in held if edge.current}
        for edge in edges:
            uow.forget_edge(edge.job_id, DatasetRole(edge.role), self._old.id)
            is_current = edge.current or (edge.job_id, edge.role) in current
            uow.put_edge(replace(edge, dataset_id=self._new.id, current=int(is_current)))
        for job_id in dict.fromkeys(edge.job_id for edge in edges):
            for version in uow.shapes_of(job_id):
                self._rename_in_shape(version)

    def _rename_in_shape(self, version: JobVersionRow) -> None:
        """Replace the second name in job versions; merge versions that become equal."""
        uow = self._uow
        sides = [self._renamed(version.inputs), self._renamed(version.outputs)]
        if sides == [version_names(version.inputs), version_names(version.outputs)]:
            return
        job = uow.jobs.get(version.job_id)
        assert job is not None, "a shape always has its job"
        job, fresh = put_job_version(
            uow, job, sides[0], sides[1], version.location, version.created_at
        )
        uow.job_versions.put(fresh.id, _merged_shape(uow, fresh, version))
        uow.job_versions.put(version.id, None)
        job = replace(job, version_count=job.version_count - 1)
        if job.current_version_id == version.id:
            job = replace(job, current_version_id=fresh.id)
        uow.jobs.put(job.id, job)
        self._tx.execute(
            "give_runs_other_shape", job_id=job.id, version_id=fresh.id, was=version.id
        )

    def _renamed(self, names: str) -> tuple[DatasetName, ...]:
        old = DatasetName(self._old.namespace, self._old.name)
        new = DatasetName(self._new.namespace, self._new.name)
        return tuple(sorted({new if name == old else name for name in version_names(names)}))

    def _put_dataset(self, implied_id: str | None) -> None:
        uow, old, new = self._uow, self._old, self._new
        numbers = self._tx.fetch("version_numbers", dataset_id=new.id)
        for place, (version_id, number, _) in enumerate(numbers, 1):
            if number != place:
                self._tx.execute("number_version", id=version_id, number=place)
        confirmed = [found for found, _, unconfirmed in numbers if not unconfirmed]
        latest = confirmed or [found for found, _, _ in numbers]
        dataset = replace(
            new,
            latest_version_id=latest[-1] if latest else None,
            latest_number=len(numbers),
            version_count=len(numbers),
            implied_version_id=implied_id,
            created_at=min(old.created_at, new.created_at),
            updated_at=max(old.updated_at, new.updated_at),
            hidden=min(old.hidden, new.hidden),
            hidden_at=max(old.hidden_at, new.hidden_at),
        )
        dataset = self._described(dataset)
        published = self._tx.rows(
            VersionRow, "newest_published_versions", dataset_id=new.id, most=1
        )
        newest = uow.versions.get(published[0].id) if published else None
        if newest is not None:
            dataset = replace(
                dataset,
                current_version_id=newest.id,
                published_at=newest.published_at,
                lifecycle=newest.lifecycle,
            )
        if dataset.hidden == 0:
            dataset_names.show_namespace(uow, dataset.namespace)
        uow.datasets.put(new.id, dataset)
        uow.datasets.put(old.id, None)

    def _described(self, dataset: DatasetRow) -> DatasetRow:
        """Merge the descriptions of both; the later of two contradictions wins."""
        old, new = self._old, self._new
        if (old.description_stamp, old.description or "") > (
            new.description_stamp,
            new.description or "",
        ):
            dataset = replace(
                dataset, description=old.description, description_stamp=old.description_stamp
            )
        marks = list(_tag_marks(old))
        if marks:
            dataset = dataset_names.tag_dataset(self._uow, dataset, marks)
        declared, stamps = _merged_facets(
            new.declared, new.declared_stamps, old.declared, old.declared_stamps
        )
        columns = known_facets.COLUMNS
        if read_stamps(stamps).get(columns) != read_stamps(new.declared_stamps).get(columns):
            dataset = replace(dataset, declared_column_set_id=old.declared_column_set_id)
        return replace(
            dataset, declared=declared, declared_stamps=stamps, observed=self._observed()
        )

    def _observed(self) -> str:
        uow = self._uow
        old, new = uow.sightings.get(self._old.id), uow.sightings.get(self._new.id)
        if old is None:
            return self._new.observed
        held = new.stamps if new is not None else "{}"
        observed, stamps = _merged_facets(self._new.observed, held, self._old.observed, old.stamps)
        uow.sightings.put(self._new.id, SightingRow(self._new.id, stamps))
        return observed


def _tag_marks(dataset: DatasetRow) -> Iterator[known_facets.TagMark]:
    tags: list[str] = msgspec.json.decode(dataset.tags)
    field_tags: Mapping[str, list[str]] = msgspec.json.decode(dataset.field_tags)
    yield from (known_facets.TagMark(tag, None) for tag in tags)
    for field, names in field_tags.items():
        yield from (known_facets.TagMark(name, field) for name in names)


def _merged_facets(facets: str, stamps: str, others: str, stamps_of_others: str) -> tuple[str, str]:
    """Merge two sets of facets; the greater stamp wins."""
    by = read_stamps(stamps_of_others)
    for name, facet in read_facets(others).items():
        merged = merge(facets, stamps, {name: facet}, by.get(name, 0))
        if merged is not None:
            facets, stamps = merged.facets, merged.stamps
    return facets, stamps


def _merged_version(new: VersionRow, old: VersionRow) -> VersionRow:
    """Merge the versions of a run that wrote both datasets."""
    facets, stamps = _merged_facets(new.facets, new.stamps, old.facets, old.stamps)
    before, after = read_stamps(new.stamps), read_stamps(stamps)
    won = {name for name, stamp in after.items() if before.get(name) != stamp}
    merged = replace(
        new,
        facets=facets,
        stamps=stamps,
        created_at=min(new.created_at, old.created_at),
        unconfirmed=min(new.unconfirmed, old.unconfirmed),
    )
    if "schema" in won:
        merged = replace(merged, fields=old.fields, schema_id=old.schema_id)
    if "documentation" in won:
        merged = replace(merged, description=old.description)
    if "dataSource" in won:
        merged = replace(merged, source_name=old.source_name)
    if known_facets.LIFECYCLE in won:
        merged = replace(merged, lifecycle=old.lifecycle)
    if known_facets.COLUMNS in won:
        merged = replace(merged, column_set_id=old.column_set_id)
    return merged


def _merged_shape(uow: UnitOfWork, new: JobVersionRow, old: JobVersionRow) -> JobVersionRow:
    """Merge two job versions with the same datasets."""
    runs = [uow.runs.get(run_id) for run_id in (new.latest_run_id, old.latest_run_id) if run_id]
    latest = max((r for r in runs if r), key=lambda r: (r.created_at, r.id), default=None)
    declared = [at for at in (new.declared_at, old.declared_at) if at is not None]
    return replace(
        new,
        latest_run_id=latest.id if latest is not None else None,
        created_at=min(new.created_at, old.created_at),
        declared_at=max(declared, default=None),
    )
