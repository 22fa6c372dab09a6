"""Actions of administrators on lots and work; each is recorded in the audit log."""

from typing import ClassVar

from penstock.access import audit
from penstock.catalog.commands.lookup import Write, dataset_row, job_row
from penstock.catalog.rows import JobRow, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import Conflict, NotFound
from penstock.locks import claiming, holds, work_state
from penstock.locks.commands.claims import require_wiring
from penstock.locks.explain.facts import HoldEntry
from penstock.locks.hold_reasons import (
    QUALITY,
    announce_if_readable,
    drop_reason,
    drop_reasons,
    is_for_quality_alone,
)
from penstock.locks.rows import LogRow, LotJobRow, WorkRow
from penstock.locks.tables import LockTables
from penstock.lots.manifests import ManifestNote
from penstock.lots.tables import LotTables
from penstock.schema.lot_ids import check_lot
from penstock.schema.lots import Status
from penstock.states import WorkState


class AdminCommand(Write, frozen=True):
    """An action of an administrator, with a reason."""

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    who: str
    why: str

    def record(self, uow: UnitOfWork, now: Micros, action: str, target: str) -> None:
        """Record the action in the audit log."""
        audit.append(uow.tx, at=now, who=self.who, action=action, target=target, detail=self.why)

    def is_repeated(self, before: HoldEntry | None) -> bool:
        """Whether the same person gave the same reason before, as when a call is repeated."""
        return before is not None and (before.who, before.why) == (self.who, self.why)


class ResubmitLots(AdminCommand, frozen=True):
    """Resubmit lots of a job: release their inputs and make their outputs again."""

    namespace: str
    job: str
    lots: tuple[str, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Resubmit all of them, or none."""
        tables = uow.tables(LockTables)
        catalog_job = job_row(uow, self.namespace, self.job, visible=True)
        job = require_wiring(tables, catalog_job)
        for lot in dict.fromkeys(self.lots):
            row = require_work(tables, catalog_job, lot)
            if row.state == WorkState.RUNNING:
                raise Conflict(
                    f"lot {lot} of job {catalog_job.namespace}/{catalog_job.name}"
                    " is being worked on by "
                    f"{row.owner!r}; end its claim first"
                )
            self._resubmit(tables, job, row, now)
            self.record(uow, now, "lot resubmit", work_target(catalog_job, lot))

    def _resubmit(self, tables: LockTables, job: LotJobRow, row: WorkRow, now: Micros) -> None:
        lot = row.lot
        for dataset in job.input_ids:
            read = tables.inputs.get((dataset, job.job_id, lot))
            if read is not None:
                tables.put_status(replace(read, status=Status.ERROR, held_from="", since=now))
        tables.release_work(job.job_id, lot)
        for dataset in job.output_ids:
            output = tables.outputs.get((dataset, lot))
            if output is not None and output.job_id == job.job_id:
                if is_for_quality_alone(tables, output):
                    drop_reasons(tables, dataset, lot)
                elif output.status == Status.HOLD and output.held_from:
                    raise Conflict(
                        f"an output of this job is held for lot {lot}; release the hold of that "
                        "lot first, then resubmit"
                    )
                tables.put_status(replace(output, status=Status.RESUBMIT, held_from="", since=now))
        fresh = replace(row, tries=0, not_before=0, error="")
        tables.put_work(fresh)
        work_state.refresh(tables, job, [lot], now)
        after = tables.work.get((job.job_id, lot)) or fresh
        work_state.record_transition(tables, after, row, "resubmit", self.who, now, self.why)
        work_state.refresh_jobs_of(tables, job.output_ids, [lot], now)


class EndClaim(AdminCommand, frozen=True):
    """End the claim of another worker, which can no longer publish."""

    namespace: str
    job: str
    lot: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """End the claim."""
        tables = uow.tables(LockTables)
        catalog_job = job_row(uow, self.namespace, self.job)
        row = require_work(tables, catalog_job, self.lot)
        if row.state != WorkState.RUNNING:
            raise Conflict(
                f"no worker has claimed lot {self.lot} of job "
                f"{catalog_job.namespace}/{catalog_job.name}: it is {row.state}; resubmit it to "
                "make it again"
            )
        claiming.release(uow, row, "release", self.who, self.why, now)
        self.record(uow, now, "lock release", work_target(catalog_job, self.lot))


class PrioritizeWork(AdminCommand, frozen=True):
    """Set the priority of lots of a job."""

    namespace: str
    job: str
    lots: tuple[str, ...]
    priority: int

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Set the priority of all of them, or none."""
        tables = uow.tables(LockTables)
        catalog_job = job_row(uow, self.namespace, self.job)
        require_wiring(tables, catalog_job)
        for lot in dict.fromkeys(self.lots):
            tables.put_work(replace(require_work(tables, catalog_job, lot), rank=-self.priority))
            self.record(uow, now, f"work priority {self.priority}", work_target(catalog_job, lot))


class AcceptLot(AdminCommand, frozen=True):
    """Accept a lot although checks of it failed.

    If the manifest of `version` is partial, `manifest` is a complete one that replaces it.
    """

    namespace: str
    dataset: str
    lot: str
    version: str
    manifest: ManifestNote | None = None

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Restore the status before the hold, unless the lot has another reason to be held."""
        tables = uow.tables(LockTables)
        dataset = dataset_row(uow, self.namespace, self.dataset)
        row = tables.outputs.get((dataset.id, check_lot(self.lot)))
        where = f"lot {self.lot} of {self.namespace}/{self.dataset}"
        if row is None or not drop_reason(tables, dataset.id, self.lot, QUALITY):
            raise Conflict(f"{where} is not held for failed checks; there is nothing to accept")
        if row.version_id != self.version:
            raise Conflict(f"{where} has a newer version; check that one, then accept it")
        if self.manifest is not None:
            uow.tables(LotTables).put_manifest(
                self.version, dataset.id, self.lot, self.manifest, now
            )
        after = row
        if tables.reasons.get((dataset.id, self.lot)) is None:
            # A newer input may have resubmitted the lot during the hold.
            after = replace(row, status=Status(row.held_from), held_from="", since=now)
            tables.put_status(after)
            announce_if_readable(tables, after, now)
        tables.append(
            LogRow(
                now,
                "accept",
                self.lot,
                None,
                dataset.id,
                row.run_id,
                row.status,
                after.status,
                self.who,
                self.why,
            )
        )
        if after.status == Status.READY:
            holds.release_hold(uow, dataset, self.lot, self.who, self.why, now)
        work_state.refresh_jobs_of(tables, [dataset.id], [self.lot], now)
        self.record(uow, now, "lot accept", f"dataset:{self.namespace}:{self.dataset} {self.lot}")


def require_work(tables: LockTables, job: JobRow, lot: str) -> WorkRow:
    """Return a job's work on a lot, or raise NotFound."""
    row = tables.work.get((job.id, check_lot(lot)))
    if row is None:
        raise NotFound(f"job {job.namespace}/{job.name} has never met lot {lot}")
    return row


def work_target(job: JobRow, lot: str) -> str:
    """Return the name of a job's work on a lot in the audit log."""
    return f"job:{job.namespace}:{job.name} lot {lot}"
