"""Repair of times in the future: from events, or from a server with a wrong clock.

Such a time becomes the time when its event was received. A time without an event, because an API
call wrote it or the event was pruned, becomes now. Current and newest rows are then chosen again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from penstock.access import audit
from penstock.catalog.changes import EventCount, changes
from penstock.catalog.entities import datasets as dataset_rules
from penstock.catalog.entities import job_versions
from penstock.catalog.events.facets import read_stamps, restamped, stamped_at, write_stamps
from penstock.catalog.queries.events import counted_type
from penstock.catalog.rows import EdgeRow, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import HOUR, Clock, Micros
from penstock.db import Database, Transaction
from penstock.schema.catalog import DatasetRole
from penstock.store.unit_of_work import write_changes

Move = Callable[[Micros], Micros]

_RUN_TIMES = ("created_at", "started_at", "ended_at", "updated_at")
_DATASET_TIMES = ("created_at", "updated_at", "published_at", "hidden_at")
_JOB_TIMES = ("created_at", "updated_at", "version_at", "latest_run_at", "hidden_at")
_JOB_STAMPS = ("type_stamp", "description_stamp", "location_stamp", "parent_stamp")


class Mended(Struct, frozen=True, rename="camel"):
    """Numbers of rows with a time in the future."""

    events: int
    runs: int
    datasets: int
    dataset_versions: int
    jobs: int
    job_versions: int
    namespaces: int
    sources: int

    @property
    def total(self) -> int:
        """The sum of all numbers."""
        return sum(msgspec.structs.astuple(self))


class _DryRun(Exception):
    """Raised to roll a dry run back."""


def mend_times(
    database: Database, clock: Clock, *, ahead: Micros, dry_run: bool, who: str
) -> Mended:
    """Repair times further ahead of the clock than `ahead`, in one transaction."""
    now = clock()
    mended = None
    try:
        with database.write() as tx:
            mended = _Mending(tx, now, now + ahead).mend()
            if dry_run:
                raise _DryRun
            if mended.total:
                detail = f"{mended.total} rows"
                audit.append(tx, now, who, "catalog mend-times", "catalog", detail)
    except _DryRun:
        pass
    assert mended is not None, "it was counted before the transaction was left"
    return mended


class _Mending:
    """One repair, in a transaction."""

    def __init__(self, tx: Transaction, now: Micros, limit: Micros) -> None:
        self._tx = tx
        self._now = now
        self._limit = limit
        self._uow = UnitOfWork()
        self._uow.open(tx)
        self._received: dict[Micros, Micros] = {}
        self._events = tx.fetch("future_events", limit=limit)
        for at, _, _, received_at, _ in self._events:
            first = min(received_at, self._received.get(at, received_at), now)
            self._received[at] = first

    def mend(self) -> Mended:
        """Repair all rows and count them."""
        ids = {name: self._ids(f"future_{name}") for name in _TABLES}
        versions = self._tx.fetch("future_versions", limit=self._limit)
        self._know(ids, [version for version, _ in versions])
        changed = set(ids["datasets"]) | {dataset for _, dataset in versions}
        changed |= self._mend_runs(ids["runs"])
        for version_id, _ in versions:
            self._mend_version(version_id)
        for dataset_id in changed:
            self._mend_dataset(dataset_id)
        for version_id in ids["job_versions"]:
            self._mend_job_version(version_id)
        jobs = {*ids["jobs"], *self._jobs_of(ids["runs"], ids["job_versions"])}
        for job_id in jobs:
            self._mend_job(job_id)
        for run_id in ids["runs"]:
            self._date_back(run_id)
        self._mend_edges()
        self._mend_places(ids["namespaces"], ids["sources"])
        self._choose(changed, jobs)
        self._mend_events()
        write_changes(self._tx, changes(self._uow))
        return Mended(
            events=sum(count for *_, count in self._events),
            runs=len(ids["runs"]),
            datasets=len(ids["datasets"]),
            dataset_versions=len(versions),
            jobs=len(ids["jobs"]),
            job_versions=len(ids["job_versions"]),
            namespaces=len(ids["namespaces"]),
            sources=len(ids["sources"]),
        )

    def _ids(self, statement: str) -> list[str]:
        return [found for (found,) in self._tx.fetch(statement, limit=self._limit)]

    def _know(self, ids: Mapping[str, Sequence[str]], versions: Sequence[str]) -> None:
        """Choose times for rows without an event: just before now, in their order."""
        uow = self._uow
        rows: list[tuple[Any, Sequence[str]]] = [
            *((uow.runs.get(key), _RUN_TIMES) for key in ids["runs"]),
            *((uow.datasets.get(key), _DATASET_TIMES) for key in ids["datasets"]),
            *((uow.jobs.get(key), _JOB_TIMES) for key in ids["jobs"]),
            *((uow.versions.get(key), ("created_at", "published_at")) for key in versions),
        ]
        times = {getattr(row, name) or 0 for row, names in rows for name in names}
        unknown = sorted(at for at in times if at > self._limit and at not in self._received)
        first = self._now - len(unknown)
        self._received |= {at: first + place for place, at in enumerate(unknown)}

    def _moved(self, at: Micros) -> Micros:
        return at if at <= self._limit else self._received.get(at, self._now)

    def _stamp(self, stamp: int) -> int:
        at = stamped_at(stamp)
        return restamped(stamp, self._moved(at)) if at > self._limit else stamp

    def _stamps(self, text: str) -> str:
        held = read_stamps(text)
        fresh = {name: self._stamp(stamp) for name, stamp in held.items()}
        return text if fresh == held else write_stamps(fresh)

    def _times(self, row: Any, names: Iterable[str]) -> Any:
        moved = {name: self._moved(at) for name in names if (at := getattr(row, name)) is not None}
        return replace(row, **moved)

    def _mend_runs(self, run_ids: Sequence[str]) -> set[str]:
        """Repair runs and their versions; return the datasets concerned."""
        uow = self._uow
        datasets = set()
        for run_id in run_ids:
            run = self._times(uow.runs.get(run_id), _RUN_TIMES)
            held = msgspec.json.decode(run.stamps, type=dict[str, dict[str, int]])
            fresh = {
                side: {name: self._stamp(stamp) for name, stamp in stamps.items()}
                for side, stamps in held.items()
            }
            if fresh != held:
                run = replace(run, stamps=msgspec.json.encode(fresh).decode())
            uow.runs.put(run_id, run)
            for row in list(uow.io_of(run_id).values()):
                uow.put_io(replace(row, stamps=self._stamps(row.stamps)))
                if row.role == DatasetRole.OUTPUT:
                    self._mend_version(row.version_id)
                datasets.add(row.dataset_id)
        return datasets

    def _mend_version(self, version_id: str) -> None:
        version = self._times(self._uow.versions.get(version_id), ("created_at", "published_at"))
        version = replace(version, stamps=self._stamps(version.stamps))
        self._uow.versions.put(version_id, version)

    def _mend_dataset(self, dataset_id: str) -> None:
        uow = self._uow
        dataset = self._times(uow.datasets.get(dataset_id), _DATASET_TIMES)
        uow.datasets.put(
            dataset_id,
            replace(
                dataset,
                description_stamp=self._stamp(dataset.description_stamp),
                declared_stamps=self._stamps(dataset.declared_stamps),
            ),
        )
        sighting = uow.sightings.get(dataset_id)
        if sighting is not None:
            fresh = replace(sighting, stamps=self._stamps(sighting.stamps))
            uow.sightings.put(dataset_id, fresh)

    def _mend_job_version(self, version_id: str) -> None:
        version = self._uow.job_versions.get(version_id)
        fresh = self._times(version, ("created_at", "declared_at"))
        self._uow.job_versions.put(version_id, fresh)

    def _jobs_of(self, run_ids: Sequence[str], version_ids: Sequence[str]) -> set[str]:
        runs = [self._uow.runs.get(run_id) for run_id in run_ids]
        versions = [self._uow.job_versions.get(version_id) for version_id in version_ids]
        return {row.job_id for row in (*runs, *versions) if row is not None}

    def _mend_job(self, job_id: str) -> None:
        job = self._times(self._uow.jobs.get(job_id), _JOB_TIMES)
        stamps = {name: self._stamp(getattr(job, name)) for name in _JOB_STAMPS}
        self._uow.jobs.put(job_id, replace(job, **stamps, stamps=self._stamps(job.stamps)))

    def _date_back(self, run_id: str) -> None:
        """Date back the job, job version, edges and datasets of a run that now began earlier."""
        uow = self._uow
        run = uow.runs.get(run_id)
        job = uow.jobs.get(run.job_id) if run is not None else None
        assert run is not None, "it was mended"
        assert job is not None, "a run always has its job"
        at = run.created_at
        uow.jobs.put(job.id, replace(job, created_at=min(job.created_at, at)))
        job_versions.note_beginning(uow, run.job_version_id, at)
        current = uow.edges_of(job.id)
        for role, dataset_id in uow.io_of(run_id):
            edge = (role, dataset_id)
            uow.put_edge(EdgeRow(job.id, DatasetRole(role), dataset_id, int(edge in current), at))
            dataset = uow.datasets.get(dataset_id)
            if dataset is not None and at < dataset.created_at:
                uow.datasets.put(dataset_id, replace(dataset, created_at=at))

    def _mend_edges(self) -> None:
        for edge in self._tx.rows(EdgeRow, "future_edges", limit=self._limit):
            self._uow.put_edge(replace(edge, first_at=self._moved(edge.first_at)))

    def _mend_places(self, namespaces: Sequence[str], sources: Sequence[str]) -> None:
        uow = self._uow
        for name in namespaces:
            times = ("created_at", "updated_at", "hidden_at")
            uow.namespaces.put(name, self._times(uow.namespaces.get(name), times))
        for name in sources:
            fresh = self._times(uow.sources.get(name), ("created_at", "updated_at"))
            uow.sources.put(name, fresh)

    def _choose(self, datasets: Iterable[str], jobs: Iterable[str]) -> None:
        """Choose current and latest rows again."""
        for dataset_id in datasets:
            dataset_rules.choose_current(self._uow, dataset_id)
        for job_id in jobs:
            job_versions.choose_newest(self._uow, job_id)

    def _mend_events(self) -> None:
        counts: list[EventCount] = []
        for at, kind, event_type, _, count in self._events:
            moved, counted = self._moved(at), counted_type(kind, event_type)
            counts.append(EventCount(at // HOUR * HOUR, counted, -count))
            counts.append(EventCount(moved // HOUR * HOUR, counted, count))
            self._tx.execute("mend_events", kind=kind, was=at, at=moved)
        for each in counts:
            self._tx.write("add_event_counts", [each])
        self._tx.execute("forget_event_counts", hour=self._limit // HOUR * HOUR)


_TABLES = ("runs", "datasets", "jobs", "job_versions", "namespaces", "sources")
