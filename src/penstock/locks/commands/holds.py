"""Holds of jobs, datasets, lots and work, and their release."""

from collections.abc import Sequence

from penstock.catalog.commands.lookup import dataset_row, job_row
from penstock.catalog.rows import DatasetRow, JobRow, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import Conflict
from penstock.locks import holds
from penstock.locks import work_state as work
from penstock.locks.commands.admin import AdminCommand, work_target
from penstock.locks.commands.claims import require_wiring
from penstock.locks.explain import advice
from penstock.locks.explain.facts import HoldEntry, WholeHold
from penstock.locks.explain.why import explain_work
from penstock.locks.hold_reasons import (
    QUALITY,
    add_reason,
    announce_if_readable,
    drop_reasons,
    is_held,
)
from penstock.locks.queries.claims import list_stops_of_dataset, list_stops_of_job
from penstock.locks.rows import (
    EXTERNAL_JOB,
    HOLD_SENTINEL,
    LINEAGE,
    LogRow,
    LotHoldRow,
    LotJobRow,
    StatusRow,
    WorkRow,
)
from penstock.locks.tables import LockTables
from penstock.schema.catalog import DatasetRole
from penstock.schema.lot_ids import check_lot
from penstock.schema.lots import Status
from penstock.states import WorkState

_SHOWN_MAX = 3
_UNCHANGED = "so nothing was changed"


class HoldJob(AdminCommand, frozen=True):
    """Hold a job: no lot of it is claimed until the release. Without `hold`, release it."""

    namespace: str
    job: str
    hold: bool = True

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Hold or release it."""
        catalog_job = job_row(uow, self.namespace, self.job)
        held = uow.tables(LockTables).holds.get(catalog_job.id)
        if not self.hold and (held is None or held.kind == LINEAGE):
            raise refuse_job(uow, catalog_job, held)
        _hold_whole(uow, catalog_job.id, "JOB", self, hold=self.hold, now=now)
        holds.update_lineage_holds(uow, now)
        action = "job hold" if self.hold else "job release hold"
        self.record(uow, now, action, f"job:{catalog_job.namespace}:{catalog_job.name}")


class HoldDataset(AdminCommand, frozen=True):
    """Hold a dataset: stop the jobs that read or write it, and all jobs downstream.

    Without `hold`, release it.
    """

    namespace: str
    dataset: str
    hold: bool = True
    only: str | None = None  # the one namespace whose jobs a refusal may name

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Hold or release it."""
        row = dataset_row(uow, self.namespace, self.dataset)
        if not self.hold and uow.tables(LockTables).holds.get(row.id) is None:
            raise refuse_dataset(uow, row, self.only)
        _hold_whole(uow, row.id, "DATASET", self, hold=self.hold, now=now)
        holds.update_lineage_holds(uow, now)
        action = "dataset hold" if self.hold else "dataset release hold"
        self.record(uow, now, action, f"dataset:{row.namespace}:{row.name}")


def _hold_whole(
    uow: UnitOfWork, key: str, kind: str, action: AdminCommand, *, hold: bool, now: Micros
) -> None:
    cache = uow.tables(LockTables).holds
    held = cache.get(key)
    if hold and (held is None or held.kind != kind):
        cache.put(key, LotHoldRow(key, kind, action.who, action.why, now))
    elif not hold and held is not None:
        cache.put(key, None)


class HoldLot(AdminCommand, frozen=True):
    """Hold a lot and every lot made from it.

    Without `hold`, restore the lot, then the lots that were held with it. A second hold on a lot
    adds a reason. One release ends both holds.
    """

    namespace: str
    dataset: str
    lot: str
    hold: bool = True
    only: str | None = None  # the one namespace whose jobs a refusal may name

    def execute(self, uow: UnitOfWork, now: Micros) -> HoldEntry | None:
        """Hold or release the lot; return the entry of an earlier hold."""
        tables = uow.tables(LockTables)
        dataset = dataset_row(uow, self.namespace, self.dataset)
        held = tables.outputs.get((dataset.id, check_lot(self.lot)))
        is_new, before = True, None
        if self.hold:
            after: StatusRow | None = self._held(dataset, held, now)
            is_new = add_reason(tables, dataset.id, self.lot, dataset.id)
            if held is not None and held.status == Status.HOLD:
                before = _last_hold(uow, self.lot, dataset=dataset.id)
            if not is_new and self.is_repeated(before):
                return before
        else:
            if held is None or held.status != Status.HOLD:
                raise refuse_lot(uow, dataset, self.lot, held, self.only)
            after = self._freed(uow, dataset, held, now)
        if after is None:
            tables.outputs.put((dataset.id, self.lot), None)
        else:
            tables.put_status(after)
        action = "hold" if self.hold else "release hold"
        tables.append(
            LogRow(
                now,
                action,
                self.lot,
                None,
                dataset.id,
                None,
                held.status if held else "",
                after.status if after else "",
                self.who,
                self.why,
            )
        )
        if not self.hold:
            holds.release_hold(uow, dataset, self.lot, self.who, self.why, now)
            if after is not None:
                announce_if_readable(tables, after, now)
        work.refresh_jobs_of(tables, [dataset.id], [self.lot], now)
        if self.hold and is_new:
            holds.propagate_hold(uow, dataset, self.lot, self.who, self.why, now)
        target = f"dataset:{dataset.namespace}:{dataset.name} lot {self.lot}"
        self.record(uow, now, f"lot {action}", target)
        return before

    def _held(self, dataset: DatasetRow, held: StatusRow | None, now: Micros) -> StatusRow:
        if held is None:
            return StatusRow(
                dataset.id,
                self.lot,
                DatasetRole.OUTPUT,
                EXTERNAL_JOB,
                Status.HOLD,
                "",
                None,
                None,
                now,
            )
        if held.status == Status.RUNNING:
            raise Conflict(
                f"lot {self.lot} of {dataset.namespace}/{dataset.name} is being made; end the "
                "claim of its job first, or hold the dataset"
            )
        if held.status == Status.HOLD:
            # A lot that its job is out of tries with has two holds now.
            is_spent = not held.held_from and held.job_id != EXTERNAL_JOB
            return replace(held, held_from=Status.ERROR) if is_spent else held
        return replace(held, status=Status.HOLD, held_from=held.status, since=now)

    def _freed(
        self, uow: UnitOfWork, dataset: DatasetRow, held: StatusRow, now: Micros
    ) -> StatusRow | None:
        self._drop_reason(uow, dataset)
        if not held.held_from:
            return (
                None
                if held.job_id == EXTERNAL_JOB
                else replace(held, status=Status.ERROR, since=now)
            )
        return replace(held, status=Status(held.held_from), held_from="", since=now)

    def _drop_reason(self, uow: UnitOfWork, dataset: DatasetRow) -> None:
        """Drop the reasons; refuse if failed checks or a held lot upstream are among them."""
        tables = uow.tables(LockTables)
        row = tables.reasons.get((dataset.id, self.lot))
        others = [
            reason
            for reason in (row.reasons if row else ())
            if reason == QUALITY or (reason != dataset.id and is_held(tables, reason, self.lot))
        ]
        where = f"lot {self.lot} of {dataset.namespace}/{dataset.name}"
        if QUALITY in others:
            raise Conflict(
                f"{where} is held because checks of it failed; accept it, or resubmit it: "
                f"`{advice.accept_lot(f'{dataset.namespace}/{dataset.name}', self.lot)}`"
            )
        if others:
            source = uow.datasets.get(others[0])
            name = f"{source.namespace}/{source.name}" if source is not None else others[0]
            raise Conflict(
                f"{where} was made from lot {self.lot} of {name}, which is held; release that: "
                f"`{advice.release_lot(name, self.lot)}`"
            )
        drop_reasons(tables, dataset.id, self.lot)


class HoldWork(AdminCommand, frozen=True):
    """Hold one job's work on one lot. Without `hold`, release it with all its tries."""

    namespace: str
    job: str
    lot: str
    hold: bool = True
    only: str | None = None  # the one namespace whose jobs a refusal may name

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Hold or release it."""
        tables = uow.tables(LockTables)
        catalog_job = job_row(uow, self.namespace, self.job)
        job = require_wiring(tables, catalog_job)
        row = tables.work.get((job.job_id, check_lot(self.lot))) or work.new_work(
            job.job_id, self.lot, 0, WorkState.WAITING, now
        )
        if row.state == WorkState.RUNNING:
            raise Conflict(
                f"lot {self.lot} of job {catalog_job.namespace}/{catalog_job.name}"
                " is being worked on by "
                f"{row.owner!r}; end its claim first"
            )
        is_held = row.state == WorkState.HELD
        # Work that is held for another reason can be held by a person too; a release ends both.
        is_kept = self.hold and tables.is_work_held(job.job_id, self.lot)
        if is_kept and self.is_repeated(_last_hold(uow, self.lot, job=job.job_id)):
            return
        if not self.hold and not is_held:
            raise refuse_work(uow, catalog_job, row, now, self.only)
        if not self.hold and (refusal := refuse_held_output(uow, job, self.lot)):
            raise refusal
        if self.hold:
            keep = (Status.HOLD, "", None, None, now)
            tables.put_status(
                StatusRow(HOLD_SENTINEL, self.lot, DatasetRole.INPUT, job.job_id, *keep)
            )
        else:
            tables.release_work(job.job_id, self.lot)
            self._release_rows(tables, job, now)
        action = "hold" if self.hold else "release hold"
        state = work.derive_state(tables, job, self.lot, is_backing_off=False)
        keeps_tries = self.hold or state == WorkState.DONE
        fresh = replace(row, tries=row.tries if keeps_tries else 0, not_before=0)
        after = work.with_state(fresh, state, now) if state != row.state else fresh
        work.record_transition(tables, after, row, action, self.who, now, self.why)
        work.refresh(tables, job, [self.lot], now)  # last: work that went stale is held again
        work.refresh_jobs_of(tables, job.output_ids, [self.lot], now)
        self.record(uow, now, f"work {action}", work_target(catalog_job, self.lot))

    def _release_rows(self, tables: LockTables, job: LotJobRow, now: Micros) -> None:
        """Release rows that are held because of failed tries or a newer input."""
        for dataset in job.input_ids:
            held = tables.inputs.get((dataset, job.job_id, self.lot))
            if held is not None and held.status == Status.HOLD:
                before = Status(held.held_from) if held.held_from else Status.ERROR
                tables.put_status(replace(held, status=before, held_from="", since=now))
        for dataset in job.output_ids:
            output = tables.outputs.get((dataset, self.lot))
            spent = output is not None and output.job_id == job.job_id and not output.held_from
            if output is not None and spent and output.status == Status.HOLD:
                tables.put_status(replace(output, status=Status.ERROR, since=now))


def _last_hold(
    uow: UnitOfWork, lot: str, *, job: str | None = None, dataset: str | None = None
) -> HoldEntry | None:
    """Return the last hold of a lot of a dataset, or of a job's work on it."""
    which = {"lot": lot, "jobs": [job] if job else [], "datasets": [dataset] if dataset else []}
    stops = [HoldEntry(*stop) for _, _, *stop in uow.tx.fetch("read_holds_of_lot", **which)]
    return stops[-1] if stops else None


def refuse_job(uow: UnitOfWork, catalog_job: JobRow, held: LotHoldRow | None) -> Conflict:
    """Return the refusal to release a job that has no hold of its own."""
    name = f"job {catalog_job.namespace}/{catalog_job.name}"
    if held is not None and held.kind == LINEAGE:
        source = uow.datasets.get(held.source_id) if held.source_id is not None else None
        command = ""
        if source is not None:
            command = f": `{advice.release_dataset(f'{source.namespace}/{source.name}')}`"
        return Conflict(f"{name} has no hold of its own: {held.why}; release that dataset{command}")
    job = uow.tables(LockTables).jobs.get(catalog_job.id)
    gates = list_stops_of_job(uow.tx, job) if job is not None else []
    return Conflict(
        f"{name} is not held, {_UNCHANGED}{_gates(gates)}{_held_work(uow, catalog_job, gates)}"
    )


def _held_work(uow: UnitOfWork, catalog_job: JobRow, gates: Sequence[WholeHold]) -> str:
    """Name a held lot of the job, if no hold of a whole job or dataset explains the stop."""
    which = {"job_id": catalog_job.id, "state": str(WorkState.HELD), "limit": 1, "offset": 0}
    rows = [] if gates else uow.tx.rows(WorkRow, "read_stuck_work", **which)
    if not rows:
        return ""
    command = advice.release_work(f"{catalog_job.namespace}/{catalog_job.name}", rows[0].lot)
    return f"; lots of it are held, such as {rows[0].lot}: `{command}`"


def refuse_dataset(uow: UnitOfWork, dataset: DatasetRow, only: str | None) -> Conflict:
    """Return the refusal to release a dataset that is not held."""
    gates = list_stops_of_dataset(uow.tx, dataset.id, only)
    name = f"{dataset.namespace}/{dataset.name}"
    rest = _gates(gates)
    if not gates:
        lots = uow.tx.fetch("first_held_lot", dataset_id=dataset.id)
        rest = "".join(
            f"; lots of it are held, such as {lot}: `{advice.release_lot(name, lot)}`"
            for (lot,) in lots
        )
    return Conflict(f"dataset {name} is not held, {_UNCHANGED}{rest}")


def refuse_lot(
    uow: UnitOfWork, dataset: DatasetRow, lot: str, row: StatusRow | None, only: str | None
) -> Conflict:
    """Return the refusal to release a lot that is not held."""
    tables = uow.tables(LockTables)
    where = f"{dataset.namespace}/{dataset.name}"
    stands = f"it is {row.status}" if row is not None else "it does not exist yet"
    rest = ""
    gates = [WholeHold(*found[1:]) for found in uow.tx.fetch("read_held_gates", ids=[dataset.id])]
    if row is not None and row.held_from:
        rest = "; it will be held when it is published, because a lot that it is made from is held"
    elif gates:
        rest = _gates(gates)
    else:
        rest = _work_around(uow, tables, dataset, lot, only)
    return Conflict(f"lot {lot} of {where} is not held, {_UNCHANGED}: {stands}{rest}")


def _work_around(
    uow: UnitOfWork, tables: LockTables, dataset: DatasetRow, lot: str, only: str | None
) -> str:
    """Name the jobs whose work on the lot is held, although the lot itself is not."""
    jobs = list(dict.fromkeys(job for _, job in tables.wires.get(dataset.id) or ()))
    tables.work.prefetch((job, lot) for job in jobs)
    held = [job for job in jobs if _is_held(tables.work.get((job, lot)))]
    names = [row for job in held[:_SHOWN_MAX] if (row := uow.jobs.get(job)) is not None]
    return "".join(
        f"; job {name.namespace}/{name.name} is held with it: "
        f"`{advice.release_work(f'{name.namespace}/{name.name}', lot)}`"
        for name in names
        if only in (None, name.namespace)
    )


def _is_held(work: WorkRow | None) -> bool:
    return work is not None and work.state == WorkState.HELD


def refuse_work(
    uow: UnitOfWork, catalog_job: JobRow, row: WorkRow, now: Micros, only: str | None
) -> Conflict:
    """Return the refusal to release work that is not held."""
    found = explain_work(uow.tx, catalog_job.namespace, catalog_job.name, row.lot, now, only=only)
    commands = [reason.command for reason in found.reasons if reason.command]
    rest = f" End that: {' or '.join(f'`{c}`' for c in commands[:_SHOWN_MAX])}" if commands else ""
    return Conflict(
        f"lot {row.lot} of job {catalog_job.namespace}/{catalog_job.name}"
        f" is not held, {_UNCHANGED}. "
        f"{found.sentence}{rest}"
    )


def refuse_held_output(uow: UnitOfWork, job: LotJobRow, lot: str) -> Conflict | None:
    """Return the refusal to release work that only the hold of an output stops."""
    tables = uow.tables(LockTables)
    inputs = [tables.inputs.get((dataset, job.job_id, lot)) for dataset in job.input_row_ids]
    if any(row is not None and row.status == Status.HOLD for row in inputs):
        return None
    made = [tables.outputs.get((dataset, lot)) for dataset in job.output_ids]
    rows = [row for row in made if row is not None and row.status == Status.HOLD]
    if not rows or any(not row.held_from and row.job_id == job.job_id for row in rows):
        return None
    dataset = uow.datasets.get(rows[0].dataset_id)
    name = f"{dataset.namespace}/{dataset.name}" if dataset is not None else rows[0].dataset_id
    return Conflict(
        f"nothing was changed: lot {lot} of {name} itself is held; release that lot: "
        f"`{advice.release_lot(name, lot)}`"
    )


def _gates(gates: Sequence[WholeHold]) -> str:
    """Describe holds of whole jobs and datasets, with the commands that end them."""
    return "".join(
        f"; {gate.sentence}{f': `{gate.command}`' if gate.command else ''}"
        for gate in gates[:_SHOWN_MAX]
    )
