"""Lots from outside: registered, announced, withdrawn and removed."""

from collections.abc import Mapping, Sequence

import msgspec

from penstock import ids
from penstock.catalog.commands.lookup import Write, dataset_row
from penstock.catalog.entities import datasets
from penstock.catalog.entities.inheritance import inherit
from penstock.catalog.entities.runs import lot_facets
from penstock.catalog.events.facets import event_stamp, write_stamps
from penstock.catalog.events.known_facets import LOT_FACET
from penstock.catalog.rows import DatasetRow, Origin, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import Conflict, Invalid, NotFound
from penstock.locks import work_state
from penstock.locks.commands.admin import AdminCommand
from penstock.locks.events import lock_plan
from penstock.locks.explain import advice
from penstock.locks.hold_reasons import QUALITY, drop_reason, drop_reasons
from penstock.locks.lock_rules import writable
from penstock.locks.rows import EXTERNAL_JOB, LogRow, StatusRow
from penstock.locks.tables import LockTables
from penstock.lots.manifests import ManifestNote
from penstock.lots.tables import NO_NOTES, LotEventKind, LotTables
from penstock.schema.catalog import DatasetRole
from penstock.schema.lot_ids import check_lot, clock_interval
from penstock.schema.lots import Status
from penstock.states import ManifestState, WorkState


class LotWasRead(Conflict):
    """Jobs have read a lot, so its removal must be forced."""


class RemoveBareLot(AdminCommand, frozen=True):
    """Remove a lot whose data no manifest lists.

    A lot that no job has read is deleted. With `note`, the manifest of a removed lot, it stays as
    `removed` with its provenance; only this way removes a lot that was read.
    """

    namespace: str
    dataset: str
    lot: str
    note: ManifestNote | None = None
    force: bool = False

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Remove the lot, unless a live claim makes or reads it."""
        tables = uow.tables(LockTables)
        dataset = dataset_row(uow, self.namespace, self.dataset)
        row = tables.outputs.get((dataset.id, check_lot(self.lot)))
        if row is None:
            name = f"{dataset.namespace}/{dataset.name}"
            raise NotFound(f"there is no lot {self.lot} of {name}; `penstock lots list` lists them")
        self._check(uow, dataset, row)
        is_kept = self.note is not None and row.version_id is not None
        if is_kept:
            self._mark_removed(uow, row, now)
        else:
            self._delete(tables, row)
        became = Status.ERROR if is_kept else ""
        entry = (now, "remove", self.lot, None, dataset.id, None, row.status, became)
        tables.append(LogRow(*entry, self.who, self.why))
        if row.version_id is not None:
            uow.tables(LotTables).add_event(
                LotEventKind.REMOVED,
                dataset.id,
                self.lot,
                now,
                version_id=row.version_id,
                state=ManifestState.REMOVED,
            )
        self._update_work(tables, dataset, now)
        target = f"dataset:{dataset.namespace}:{dataset.name} lot {self.lot}"
        self.record(uow, now, "lot remove", target)

    def _check(self, uow: UnitOfWork, dataset: DatasetRow, row: StatusRow) -> None:
        """Refuse a lot with a live claim, a held lot, and without force a lot that was read."""
        tables = uow.tables(LockTables)
        name = f"{dataset.namespace}/{dataset.name}"
        where = f"lot {self.lot} of {name}"
        if row.status == Status.RUNNING:
            job = lock_plan.name_job(uow, row.job_id, dataset.namespace)
            raise Conflict(f"{where} is being made by {job}; end its claim first")
        if tables.reasons.get((dataset.id, self.lot)) is not None:
            command = advice.release_lot(name, self.lot)
            raise Conflict(f"{where} is held; release it first: `{command}`")
        readers = [
            own for own in tables.list_readers(dataset.id, self.lot) if own.run_id is not None
        ]
        jobs = [lock_plan.name_job(uow, own.job_id, dataset.namespace) for own in readers]
        for own, job in zip(readers, jobs, strict=True):
            if own.status == Status.RUNNING:
                raise Conflict(f"{where} is being read by {job}; end its claim first")
        if jobs and not self.force:
            raise LotWasRead(
                f"{where} was read by {' and '.join(dict.fromkeys(jobs))}; force the removal to "
                "mark the lot as removed: the lots that were made from it, and its provenance, stay"
            )

    def _mark_removed(self, uow: UnitOfWork, row: StatusRow, now: Micros) -> None:
        assert self.note is not None
        assert row.version_id is not None
        lots = uow.tables(LotTables)
        lots.put_manifest(row.version_id, row.dataset_id, self.lot, self.note, now)
        # Without a run, the lot is not mistaken for one that a job failed to make.
        gone = replace(row, status=Status.ERROR, held_from="", run_id=None, since=now)
        uow.tables(LockTables).put_status(gone)

    def _delete(self, tables: LockTables, row: StatusRow) -> None:
        drop_reasons(tables, row.dataset_id, self.lot)
        tables.outputs.put((row.dataset_id, self.lot), None)

    def _update_work(self, tables: LockTables, dataset: DatasetRow, now: Micros) -> None:
        """Delete the work of jobs that have no row of the lot left; refresh that of others."""
        for job_id in dict.fromkeys(job for _, job in tables.wires.get(dataset.id) or ()):
            job, row = tables.jobs.get(job_id), tables.work.get((job_id, self.lot))
            if job is None or row is None or row.state == WorkState.RUNNING:
                continue
            inputs = [tables.inputs.get((each, job_id, self.lot)) for each in job.input_row_ids]
            datasets = (*job.input_ids, *job.output_ids)
            outputs = [tables.outputs.get((each, self.lot)) for each in datasets]
            if any(inputs) or any(outputs):
                work_state.refresh(tables, job, [self.lot], now)
            else:
                tables.delete_work(row)


class RegisterLots(Write, frozen=True):
    """Register lots that no job here made: they become READY.

    A lot that is READY already stays the same, unless `renew` gives it a new version.
    """

    namespace: str
    dataset: str
    lots: tuple[str, ...]
    who: str
    priority: int = 0
    renew: bool = False
    manifests: tuple[ManifestNote, ...] = ()  # one for each lot, or none

    def execute(self, uow: UnitOfWork, now: Micros) -> int:
        """Register the lots; return how many were new."""
        dataset = dataset_row(uow, self.namespace, self.dataset, visible=True)
        if clock_interval(dataset.name) is not None:
            raise Invalid(f"{dataset.name} is a clock: its lots become READY by themselves")
        if self.manifests and len(self.manifests) != len(self.lots):
            raise Invalid("send a manifest for each lot, or none")
        name = f"{dataset.namespace}/{dataset.name}"
        uow.tables(LotTables).check_interval(dataset.id, name, self.lots)
        return register(
            uow,
            dataset,
            self.lots,
            self.who,
            now,
            priority=self.priority,
            renew=self.renew,
            notes=dict(zip(self.lots, self.manifests, strict=False)),
        )


def register(
    uow: UnitOfWork,
    dataset: DatasetRow,
    lots: Sequence[str],
    who: str,
    now: Micros,
    *,
    priority: int = 0,
    renew: bool = False,
    notes: Mapping[str, ManifestNote] = NO_NOTES,
) -> int:
    """Make lots READY, each with a new version; `notes` are their manifests, by lot."""
    tables, outbox = uow.tables(LockTables), uow.tables(LotTables)
    lots = list(dict.fromkeys(map(check_lot, lots)))
    tables.outputs.prefetch((dataset.id, lot) for lot in lots)
    fresh = [lot for lot in lots if needs_registration(tables, dataset, lot, renew=renew)]
    if not fresh:
        return 0
    versions = _declare_versions(uow, dataset, fresh, now)
    for lot, version in zip(fresh, versions, strict=True):
        was, status = _put_outside(tables, dataset, lot, Status.READY, version, now)
        tables.append(LogRow(now, "register", lot, None, dataset.id, None, was, status, who, ""))
        noted = {dataset.id: notes[lot]} if lot in notes else NO_NOTES
        held = (dataset.id,) if status != Status.READY else ()
        outbox.publish(
            lot, {dataset.id: version}, now, notes=noted, job_id=None, run_id=None, held=held
        )
    work_state.refresh_jobs_of(tables, [dataset.id], fresh, now, dict.fromkeys(fresh, -priority))
    return len(fresh)


def announce(
    uow: UnitOfWork, dataset: DatasetRow, lot: str, who: str, now: Micros, note: ManifestNote
) -> None:
    """Announce a lot from outside that is not complete yet, so that no job reads it."""
    tables, outbox = uow.tables(LockTables), uow.tables(LotTables)
    if not needs_registration(tables, dataset, check_lot(lot), renew=True):
        return
    [version] = _declare_versions(uow, dataset, [lot], now)
    was, status = _put_outside(tables, dataset, lot, Status.PENDING, version, now)
    tables.append(LogRow(now, "announce", lot, None, dataset.id, None, was, status, who, ""))
    outbox.put_manifest(version, dataset.id, lot, note, now)
    outbox.add_event(
        LotEventKind.ANNOUNCED, dataset.id, lot, now, version_id=version, state=note.state
    )
    work_state.refresh_jobs_of(tables, [dataset.id], [lot], now)


def withdraw(
    uow: UnitOfWork,
    dataset: DatasetRow,
    lot: str,
    who: str,
    why: str,
    now: Micros,
    notes: Mapping[str, ManifestNote],
) -> bool:
    """Withdraw an announced lot that will not arrive; return False if there is no such lot.

    `notes` are the new manifests of its versions, by version.
    """
    tables, outbox = uow.tables(LockTables), uow.tables(LotTables)
    held = tables.outputs.get((dataset.id, lot))
    is_held = held is not None and held.status == Status.HOLD
    if held is None or (held.held_from if is_held else held.status) != Status.PENDING:
        return False
    # Without a run, the lot is not mistaken for one that a job failed to make.
    gone = {"held_from": Status.ERROR} if is_held else {"status": Status.ERROR, "since": now}
    after = replace(held, run_id=None, **gone)
    tables.put_status(after)
    entry = (now, "remove", lot, None, dataset.id, None, held.status, after.status, who, why)
    tables.append(LogRow(*entry))
    for version_id, note in notes.items():
        noted = outbox.manifests.get(version_id)
        if noted is not None:
            outbox.manifests.put(version_id, replace(noted, **msgspec.structs.asdict(note)))
    state = ManifestState.REMOVED
    outbox.add_event(
        LotEventKind.REMOVED, dataset.id, lot, now, version_id=held.version_id, state=state
    )
    work_state.refresh_jobs_of(tables, [dataset.id], [lot], now)
    return True


def _put_outside(
    tables: LockTables, dataset: DatasetRow, lot: str, status: Status, version: str, now: Micros
) -> tuple[str, Status]:
    """Write the OUTPUT row of a lot from outside; return its status before and after.

    A person's hold stays. A hold for failed checks ends: it concerned the version before.
    """
    held = tables.outputs.get((dataset.id, lot))
    row = StatusRow(
        dataset.id, lot, DatasetRole.OUTPUT, EXTERNAL_JOB, status, "", None, version, now
    )
    if held is not None and held.status == Status.HOLD:
        drop_reason(tables, dataset.id, lot, QUALITY)
        if tables.reasons.get((dataset.id, lot)) is not None:
            row = replace(row, status=Status.HOLD, held_from=status, since=held.since)
    tables.put_status(row)
    return held.status if held is not None else "", row.status


def needs_registration(tables: LockTables, dataset: DatasetRow, lot: str, *, renew: bool) -> bool:
    """Whether registration would change a lot; raise Conflict if it is not allowed."""
    held = tables.outputs.get((dataset.id, lot))
    if held is None or writable(Status(held.status)):
        return True
    is_held = held.status == Status.HOLD
    status = Status((held.held_from or Status.PENDING) if renew and is_held else held.status)
    if held.job_id == EXTERNAL_JOB and status is Status.PENDING:
        return True
    if held.job_id == EXTERNAL_JOB and status is Status.READY:
        return renew
    raise Conflict(
        f"lot {lot} of {dataset.namespace}/{dataset.name} is {held.status}: it is "
        f"{'held' if is_held else 'made by a job'}, and cannot be registered"
    )


def _declare_versions(
    uow: UnitOfWork, dataset: DatasetRow, lots: Sequence[str], now: Micros
) -> list[str]:
    """Add a published version for each lot; the last one becomes the dataset's current version."""
    shown = datasets.shown_version(uow, dataset)
    schema = datasets.schema_of(shown)
    before = shown if shown is not None and shown.published_at is not None else None
    now = datasets.next_publication(dataset, now)
    stamps = write_stamps({LOT_FACET: event_stamp(now, "")})
    versions = []
    for number, lot in enumerate(lots):
        count, at = dataset.latest_number + number + 1, now + number
        version_id = ids.derived_id("lot", dataset.id, lot, str(count))
        version = replace(
            datasets.new_version(dataset, version_id, count, Origin.DECLARED, None, schema, at),
            facets=lot_facets(lot),
            stamps=stamps,
            published_at=at,
        )
        before = inherit(uow, version, before)
        uow.versions.put(before.id, before)
        versions.append(before.id)
    last = now + len(lots) - 1
    datasets.follow_versions(uow, dataset, versions[-1], len(versions), last)
    return versions
