"""Deletion of old events, runs and versions that nothing current depends on.

Views in the migrations define what must stay. A run goes together with the versions that it wrote.
Datasets, jobs and their edges stay.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from msgspec import Struct

from penstock.access import audit
from penstock.catalog.queries.events import EARLIEST, EventKind, counted_type, hour_of, list_events
from penstock.clock import HOUR, Clock, Micros, format_time
from penstock.db import Database, Transaction
from penstock.db.database import Row
from penstock.db.pruning import BATCH_ROWS, Pause, cutoff, paced_write

BATCH_JOBS = 200
_FIRST_ID = "00000000-0000-0000-0000-000000000000"


class Pruned(Struct, frozen=True, rename="camel"):
    """Numbers of deleted rows, or of rows that would be deleted."""

    events: int = 0
    runs: int = 0
    versions: int = 0
    job_versions: int = 0
    column_sets: int = 0
    facet_sets: int = 0

    def __str__(self) -> str:
        parts = (f"{name.replace('_', ' ')} {getattr(self, name)}" for name in _COUNTED)
        return ", ".join(parts)

    def __add__(self, other: "Pruned") -> "Pruned":
        return Pruned(*(getattr(self, name) + getattr(other, name) for name in _COUNTED))


_COUNTED = Pruned.__struct_fields__


class _Less(Struct, frozen=True):
    id: str
    total: int


class _Count(Struct, frozen=True):
    hour: int
    event_type: str
    total: int


def prune(
    database: Database,
    clock: Clock,
    older_than: Micros,
    *,
    dry_run: bool,
    who: str,
    progress: Callable[[Pruned], None] = lambda pruned: None,
    pause: Pause = time.sleep,
) -> Pruned:
    """Delete rows older than a time that nothing needs, or only count them.

    Servers may run meanwhile: rows go in batches, with a pause after each as long as the batch
    took. Current versions, and everything they were made by and from, stay.
    """
    before = cutoff(clock, older_than)
    pruning = _Pruning(database, before, dry_run, progress, pause)
    if dry_run:
        pruning.run()
        return pruning.total
    target = f"older than {format_time(before)}"
    with database.write() as tx:
        audit.append(tx, clock(), who, "prune", target, "begun")
    pruning.run()
    with database.write() as tx:
        audit.append(tx, clock(), who, "prune", target, str(pruning.total))
    return pruning.total


class _Pruning:
    """One pruning in progress."""

    def __init__(
        self,
        database: Database,
        cutoff: Micros,
        dry_run: bool,
        progress: Callable[[Pruned], None],
        pause: Pause,
    ) -> None:
        self._database = database
        self._cutoff = cutoff
        self._dry_run = dry_run
        self._progress = progress
        self._pause = pause
        self.total = Pruned()

    def run(self) -> None:
        """Delete runs first, then the rows that only they needed."""
        self._events()
        self._runs()
        self._declared_versions()
        self._job_versions()
        self._column_sets()
        self._facet_sets()

    def _events(self) -> None:
        if self._dry_run:
            with self._database.read() as tx:
                before = list_events(tx, self._cutoff, EARLIEST, limit=0, offset=0)
            self._note(Pruned(events=before.total_count))
            return
        for kind in EventKind:
            deleted = BATCH_ROWS
            while deleted == BATCH_ROWS:
                with self._turn() as tx:
                    deleted = self._delete_events(tx, kind)
                self._note(Pruned(events=deleted))

    def _delete_events(self, tx: Transaction, kind: EventKind) -> int:
        rows = tx.fetch("prune_events", kind=kind, cutoff=self._cutoff, most=BATCH_ROWS)
        hours = Counter((hour_of(at), counted_type(kind, name)) for at, name in rows)
        less = [_Count(hour, name, -total) for (hour, name), total in sorted(hours.items())]
        tx.write("add_event_counts", less)
        tx.execute("drop_empty_event_counts", cutoff=hour_of(self._cutoff) + HOUR)
        return len(rows)

    def _runs(self) -> None:
        job, ended_at, run = _FIRST_ID, EARLIEST, _FIRST_ID
        while page := self._look("prunable_runs", job_id=job, ended_at=ended_at, id=run):
            job, ended_at, run, _ = page[-1]
            if self._dry_run:
                self._note(Pruned(runs=len(page), versions=sum(row[3] for row in page)))
                continue
            with self._turn() as tx:
                deleted = self._delete_runs(tx, [row[2] for row in page])
            self._note(deleted)

    def _delete_runs(self, tx: Transaction, ids: list[str]) -> Pruned:
        found = tx.fetch("runs_still_prunable", ids=ids, cutoff=self._cutoff)
        runs = [run for run, _ in found]
        versions = tx.fetch("delete_versions_of_runs", ids=runs)
        tx.execute("delete_run_datasets", ids=runs)
        tx.execute("delete_reads_of_versions", ids=[version for version, _ in versions])
        tx.execute("delete_quality_reports", ids=runs)
        tx.execute("delete_quality_reports_on_versions", ids=[version for version, _ in versions])
        tx.execute("leave_parents", ids=runs)
        tx.execute("delete_runs", ids=runs)
        tx.write("subtract_runs", _less(job for _, job in found))
        tx.write("subtract_versions", _less(dataset for _, dataset in versions))
        return Pruned(runs=len(runs), versions=len(versions))

    def _declared_versions(self) -> None:
        created_at, version = EARLIEST, _FIRST_ID
        while page := self._look("prunable_declared_versions", created_at=created_at, id=version):
            created_at, version = page[-1]
            count = len(page)
            if not self._dry_run:
                with self._turn() as tx:
                    count = self._delete_versions(tx, [row[1] for row in page])
            self._note(Pruned(versions=count))

    def _delete_versions(self, tx: Transaction, ids: list[str]) -> int:
        found = tx.fetch("versions_still_prunable", ids=ids, cutoff=self._cutoff)
        versions = [version for version, _ in found]
        tx.execute("delete_reads_of_versions", ids=versions)
        tx.execute("delete_quality_reports_on_versions", ids=versions)
        tx.execute("delete_versions", ids=versions)
        tx.write("subtract_versions", _less(dataset for _, dataset in found))
        return len(versions)

    def _job_versions(self) -> None:
        after = _FIRST_ID
        while jobs := self._jobs(after):
            after = jobs[-1]
            found = self._look("prunable_job_versions", jobs=jobs)
            for start in range(0, len(found), BATCH_ROWS):
                page = found[start : start + BATCH_ROWS]
                count = len(page)
                if not self._dry_run:
                    with self._turn() as tx:
                        count = self._delete_job_versions(tx, page)
                self._note(Pruned(job_versions=count))

    def _delete_job_versions(self, tx: Transaction, page: list[Row]) -> int:
        jobs = sorted({job for _, job in page})
        in_use = {row[0] for row in tx.fetch("job_versions_in_use", jobs=jobs)}
        found = [(version, job) for version, job in page if version not in in_use]
        tx.execute("delete_job_versions", ids=[version for version, _ in found])
        tx.write("subtract_job_versions", _less(job for _, job in found))
        return len(found)

    def _column_sets(self) -> None:
        after = _FIRST_ID
        while page := self._look("prunable_column_sets", after=after):
            sets = [row[0] for row in page]
            after = sets[-1]
            if not self._dry_run:
                with self._turn() as tx:
                    sets = [row[0] for row in tx.fetch("column_sets_still_unused", ids=sets)]
                    tx.execute("delete_column_sets", ids=sets)
            self._note(Pruned(column_sets=len(sets)))

    def _facet_sets(self) -> None:
        after = _FIRST_ID
        while page := self._look("prunable_facet_sets", after=after):
            sets = [row[0] for row in page]
            after = sets[-1]
            if not self._dry_run:
                with self._turn() as tx:
                    sets = [row[0] for row in tx.fetch("facet_sets_still_unused", ids=sets)]
                    tx.execute("delete_facet_sets", ids=sets)
            self._note(Pruned(facet_sets=len(sets)))

    def _jobs(self, after: str) -> list[str]:
        with self._database.read() as tx:
            return [row[0] for row in tx.fetch("jobs_with_versions", after=after, most=BATCH_JOBS)]

    def _look(self, statement: str, **params: object) -> list[Row]:
        """Return a page of rows that may be deleted, without blocking writers."""
        with self._database.read() as tx:
            return tx.fetch(statement, **{"cutoff": self._cutoff, "most": BATCH_ROWS, **params})

    def _turn(self) -> AbstractContextManager[Transaction]:
        return paced_write(self._database, self._pause)

    def _note(self, more: Pruned) -> None:
        self.total += more
        self._progress(self.total)


def _less(ids: Iterable[str]) -> list[_Less]:
    return [_Less(id, total) for id, total in sorted(Counter(ids).items())]
