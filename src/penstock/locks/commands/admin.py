"""What administrators do to lots and locks; every action is in the audit log."""

from collections.abc import Sequence
from typing import ClassVar

from penstock.access import audit
from penstock.catalog.commands.lookup import Write, dataset_row, job_row
from penstock.catalog.rows import DatasetRow, JobRow, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import Conflict, NotFound
from penstock.locks import claiming, holds, work
from penstock.locks.commands.claims import wired
from penstock.locks.explain import advice
from penstock.locks.explain.facts import Gate, Stop
from penstock.locks.explain.why import why
from penstock.locks.queries.claims import list_stops_of_dataset, list_stops_of_job
from penstock.locks.queries.hold_reasons import (
    QUALITY,
    add_reason,
    drop_reason,
    drop_reasons,
    is_for_quality_alone,
    is_held,
    tell_readable,
)
from penstock.locks.rows import (
    LINEAGE,
    NOWHERE,
    OUTSIDE,
    HoldRow,
    LogRow,
    LotJobRow,
    StatusRow,
    WorkRow,
)
from penstock.locks.tables import LockTables
from penstock.lots.manifests import ManifestNote
from penstock.lots.tables import LotTables
from penstock.schema.catalog import DatasetRole
from penstock.schema.lot_ids import check_lot
from penstock.schema.lots import Status
from penstock.states import WorkState

_SHOWN_MAX = 3
_UNCHANGED = "so nothing was changed"


def refuse_job(uow: UnitOfWork, named: JobRow, held: HoldRow | None) -> Conflict:
    """The refusal for a job that is not held for itself."""
    name = f"job {named.namespace}/{named.name}"
    if held is not None and held.kind == LINEAGE:
        source = uow.datasets.get(held.source_id) if held.source_id is not None else None
        command = ""
        if source is not None:
            command = f": `{advice.unhold_dataset(f'{source.namespace}/{source.name}')}`"
        return Conflict(f"{name} is not held for itself: {held.why}; unhold that dataset{command}")
    job = uow.tables(LockTables).jobs.get(named.id)
    gates = list_stops_of_job(uow.tx, job) if job is not None else []
    return Conflict(
        f"{name} is not held, {_UNCHANGED}{_gates(gates)}{_held_work(uow, named, gates)}"
    )


def _held_work(uow: UnitOfWork, named: JobRow, gates: Sequence[Gate]) -> str:
    """A lot of the job that is held, if no whole hold explains why it stands still."""
    which = {"job_id": named.id, "state": str(WorkState.HELD), "limit": 1, "offset": 0}
    rows = [] if gates else uow.tx.rows(WorkRow, "read_stuck_work", **which)
    if not rows:
        return ""
    command = advice.unhold_work(f"{named.namespace}/{named.name}", rows[0].lot)
    return f"; lots of it are held, such as {rows[0].lot}: `{command}`"


def refuse_dataset(uow: UnitOfWork, dataset: DatasetRow, only: str | None) -> Conflict:
    """The refusal for a dataset that is not held."""
    gates = list_stops_of_dataset(uow.tx, dataset.id, only)
    name = f"{dataset.namespace}/{dataset.name}"
    rest = _gates(gates)
    if not gates:
        lots = uow.tx.fetch("first_held_lot", dataset_id=dataset.id)
        rest = "".join(
            f"; lots of it are held, such as {lot}: `{advice.unhold_lot(name, lot)}`"
            for (lot,) in lots
        )
    return Conflict(f"dataset {name} is not held, {_UNCHANGED}{rest}")


def refuse_lot(
    uow: UnitOfWork, dataset: DatasetRow, lot: str, row: StatusRow | None, only: str | None
) -> Conflict:
    """The refusal for a lot that is not held."""
    room = uow.tables(LockTables)
    where = f"{dataset.namespace}/{dataset.name}"
    stands = f"it is {row.status}" if row is not None else "it is not there yet"
    rest = ""
    gates = [Gate(*found[1:]) for found in uow.tx.fetch("read_held_gates", ids=[dataset.id])]
    if row is not None and row.held_from:
        rest = "; it is held as soon as it is there, for lots that it is made from"
    elif gates:
        rest = _gates(gates)
    else:
        rest = _work_around(uow, room, dataset, lot, only)
    return Conflict(f"lot {lot} of {where} is not held, {_UNCHANGED}: {stands}{rest}")


def _work_around(
    uow: UnitOfWork, room: LockTables, dataset: DatasetRow, lot: str, only: str | None
) -> str:
    """The jobs that are kept from a lot of a dataset, although the lot itself is not held."""
    jobs = list(dict.fromkeys(job for _, job in room.wires.get(dataset.id) or ()))
    room.work.prefetch((job, lot) for job in jobs)
    held = [job for job in jobs if _is_held(room.work.get((job, lot)))]
    names = [row for job in held[:_SHOWN_MAX] if (row := uow.jobs.get(job)) is not None]
    return "".join(
        f"; job {name.namespace}/{name.name} is held with it: "
        f"`{advice.unhold_work(f'{name.namespace}/{name.name}', lot)}`"
        for name in names
        if only in (None, name.namespace)
    )


def _is_held(work: WorkRow | None) -> bool:
    return work is not None and work.state == WorkState.HELD


def refuse_work(
    uow: UnitOfWork, named: JobRow, row: WorkRow, now: Micros, only: str | None
) -> Conflict:
    """The refusal for a lot that its job is not kept from."""
    found = why(uow.tx, named.namespace, named.name, row.lot, now, only=only)
    commands = [reason.command for reason in found.reasons if reason.command]
    rest = f" End that: {' or '.join(f'`{c}`' for c in commands[:_SHOWN_MAX])}" if commands else ""
    return Conflict(
        f"lot {row.lot} of job {named.namespace}/{named.name} is not held, {_UNCHANGED}. "
        f"{found.sentence}{rest}"
    )


def refuse_held_output(uow: UnitOfWork, job: LotJobRow, lot: str) -> Conflict | None:
    """The refusal for work that only the hold of a lot it writes stops."""
    room = uow.tables(LockTables)
    own = [room.inputs.get((dataset, job.job_id, lot)) for dataset in job.own_ids]
    if any(row is not None and row.status == Status.HOLD for row in own):
        return None
    made = [room.outputs.get((dataset, lot)) for dataset in job.output_ids]
    rows = [row for row in made if row is not None and row.status == Status.HOLD]
    if not rows or any(not row.held_from and row.job_id == job.job_id for row in rows):
        return None
    dataset = uow.datasets.get(rows[0].dataset_id)
    name = f"{dataset.namespace}/{dataset.name}" if dataset is not None else rows[0].dataset_id
    return Conflict(
        f"nothing was changed: lot {lot} of {name} itself is held; release that: "
        f"`{advice.unhold_lot(name, lot)}`"
    )


def _gates(gates: Sequence[Gate]) -> str:
    """Holds of whole jobs and datasets, with the commands that end them."""
    return "".join(
        f"; {gate.sentence}{f': `{gate.command}`' if gate.command else ''}"
        for gate in gates[:_SHOWN_MAX]
    )


class Admin(Write, frozen=True):
    """An action of an administrator: who does it, and why."""

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    who: str
    why: str

    def record(self, uow: UnitOfWork, now: Micros, action: str, target: str) -> None:
        """Put the action into the audit log."""
        audit.append(uow.tx, at=now, who=self.who, action=action, target=target, detail=self.why)

    def is_said(self, before: Stop | None) -> bool:
        """Whether the same person has said the same before, as who repeats a call does."""
        return before is not None and (before.who, before.why) == (self.who, self.why)


class ResubmitLots(Admin, frozen=True):
    """Have a job work on lots again: their outputs are to be made again, their inputs released."""

    namespace: str
    job: str
    lots: tuple[str, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Resubmit all of them, or none."""
        room = uow.tables(LockTables)
        named = job_row(uow, self.namespace, self.job, visible=True)
        job = wired(room, named)
        for lot in dict.fromkeys(self.lots):
            row = _met(room, named, lot)
            if row.state == WorkState.RUNNING:
                raise Conflict(
                    f"lot {lot} of job {named.namespace}/{named.name} is being worked on by "
                    f"{row.owner!r}; release its lock first"
                )
            self._resubmit(room, job, row, now)
            self.record(uow, now, "lot resubmit", _target(named, lot))

    def _resubmit(self, room: LockTables, job: LotJobRow, row: WorkRow, now: Micros) -> None:
        lot = row.lot
        for dataset in job.input_ids:
            held = room.inputs.get((dataset, job.job_id, lot))
            if held is not None:
                room.put_status(replace(held, status=Status.ERROR, held_from="", since=now))
        room.keep_no_more(job.job_id, lot)
        for dataset in job.output_ids:
            made = room.outputs.get((dataset, lot))
            if made is not None and made.job_id == job.job_id:
                if is_for_quality_alone(room, made):
                    drop_reasons(room, dataset, lot)
                elif made.status == Status.HOLD and made.held_from:
                    raise Conflict(
                        f"what this job made of lot {lot} is held; unhold that lot of the dataset "
                        "first, then resubmit"
                    )
                room.put_status(replace(made, status=Status.RESUBMIT, held_from="", since=now))
        fresh = replace(row, tries=0, not_before=0, error="")
        room.put_work(fresh)
        work.refresh(room, job, [lot], now)
        after = room.work.get((job.job_id, lot)) or fresh
        work.moved(room, after, row, "resubmit", self.who, now, self.why)
        work.refresh_around(room, job.output_ids, [lot], now)


class ReleaseLock(Admin, frozen=True):
    """End somebody else's claim on a lot; its holder can no longer publish."""

    namespace: str
    job: str
    lot: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Release it."""
        room = uow.tables(LockTables)
        named = job_row(uow, self.namespace, self.job)
        row = _met(room, named, self.lot)
        if row.state != WorkState.RUNNING:
            raise Conflict(
                f"nobody holds lot {self.lot} of job {named.namespace}/{named.name}: it is "
                f"{row.state}; resubmit it to have it worked on again"
            )
        claiming.give_back(uow, row, "release", self.who, self.why, now)
        self.record(uow, now, "lock release", _target(named, self.lot))


class HoldJob(Admin, frozen=True):
    """Stop a job: none of its lots is claimed until it is let go. Without `hold`, let it go."""

    namespace: str
    job: str
    hold: bool = True

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Hold it, or let it go."""
        named = job_row(uow, self.namespace, self.job)
        held = uow.tables(LockTables).holds.get(named.id)
        if not self.hold and (held is None or held.kind == LINEAGE):
            raise refuse_job(uow, named, held)
        _hold_whole(uow, named.id, "JOB", self, hold=self.hold, now=now)
        holds.follow_datasets(uow, now)
        action = "job hold" if self.hold else "job unhold"
        self.record(uow, now, action, f"job:{named.namespace}:{named.name}")


class HoldDataset(Admin, frozen=True):
    """Stop every job that reads or writes lots of a dataset, and all that work on what is made of
    them. Without `hold`, let them go on.
    """

    namespace: str
    dataset: str
    hold: bool = True
    only: str | None = None  # the namespace whose jobs a refusal may name; None for all

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Hold it, or let it go."""
        row = dataset_row(uow, self.namespace, self.dataset)
        if not self.hold and uow.tables(LockTables).holds.get(row.id) is None:
            raise refuse_dataset(uow, row, self.only)
        _hold_whole(uow, row.id, "DATASET", self, hold=self.hold, now=now)
        holds.follow_datasets(uow, now)
        action = "dataset hold" if self.hold else "dataset unhold"
        self.record(uow, now, action, f"dataset:{row.namespace}:{row.name}")


def _hold_whole(
    uow: UnitOfWork, key: str, kind: str, action: Admin, *, hold: bool, now: Micros
) -> None:
    shelf = uow.tables(LockTables).holds
    held = shelf.get(key)
    if hold and (held is None or held.kind != kind):
        shelf.put(key, HoldRow(key, kind, action.who, action.why, now))
    elif not hold and held is not None:
        shelf.put(key, None)


class HoldLot(Admin, frozen=True):
    """Lock one lot of a dataset for everybody, with all that was made of it. Without `hold`, put
    it back as it was, and after it what was held with it.

    To hold what is held already is to give one more reason: both are kept, and end together.
    """

    namespace: str
    dataset: str
    lot: str
    hold: bool = True
    only: str | None = None  # the namespace whose jobs a refusal may name; None for all

    def execute(self, uow: UnitOfWork, now: Micros) -> Stop | None:
        """Hold it, or let it go: what held it before."""
        room = uow.tables(LockTables)
        dataset = dataset_row(uow, self.namespace, self.dataset)
        held = room.outputs.get((dataset.id, check_lot(self.lot)))
        is_new, before = True, None
        if self.hold:
            after: StatusRow | None = self._held(dataset, held, now)
            is_new = add_reason(room, dataset.id, self.lot, dataset.id)
            if held is not None and held.status == Status.HOLD:
                before = _last_hold(uow, self.lot, dataset=dataset.id)
            if not is_new and self.is_said(before):
                return before
        else:
            if held is None or held.status != Status.HOLD:
                raise refuse_lot(uow, dataset, self.lot, held, self.only)
            after = self._freed(uow, dataset, held, now)
        if after is None:
            room.outputs.put((dataset.id, self.lot), None)
        else:
            room.put_status(after)
        action = "hold" if self.hold else "unhold"
        room.append(
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
            holds.let_go(uow, dataset, self.lot, self.who, self.why, now)
            if after is not None:
                tell_readable(room, after, now)
        work.refresh_around(room, [dataset.id], [self.lot], now)
        if self.hold and is_new:
            holds.spread(uow, dataset, self.lot, self.who, self.why, now)
        target = f"dataset:{dataset.namespace}:{dataset.name} lot {self.lot}"
        self.record(uow, now, f"lot {action}", target)
        return before

    def _held(self, dataset: DatasetRow, held: StatusRow | None, now: Micros) -> StatusRow:
        if held is None:
            return StatusRow(
                dataset.id, self.lot, DatasetRole.OUTPUT, OUTSIDE, Status.HOLD, "", None, None, now
            )
        if held.status == Status.RUNNING:
            raise Conflict(
                f"lot {self.lot} of {dataset.namespace}/{dataset.name} is being made; release the "
                "lock of its job first, or hold the dataset"
            )
        if held.status == Status.HOLD:  # one that its job is out of tries with waits for two now
            spent = not held.held_from and held.job_id != OUTSIDE
            return replace(held, held_from=Status.ERROR) if spent else held
        return replace(held, status=Status.HOLD, held_from=held.status, since=now)

    def _freed(
        self, uow: UnitOfWork, dataset: DatasetRow, held: StatusRow, now: Micros
    ) -> StatusRow | None:
        self._drop_reason(uow, dataset)
        if not held.held_from:
            return None if held.job_id == OUTSIDE else replace(held, status=Status.ERROR, since=now)
        return replace(held, status=Status(held.held_from), held_from="", since=now)

    def _drop_reason(self, uow: UnitOfWork, dataset: DatasetRow) -> None:
        """Refuse what is held for another reason than somebody's word, as long as that holds."""
        room = uow.tables(LockTables)
        row = room.reasons.get((dataset.id, self.lot))
        others = [
            reason
            for reason in (row.reasons if row else ())
            if reason == QUALITY or (reason != dataset.id and is_held(room, reason, self.lot))
        ]
        where = f"lot {self.lot} of {dataset.namespace}/{dataset.name}"
        if QUALITY in others:
            raise Conflict(
                f"{where} is held because checks of it failed; accept it as it is, or resubmit it: "
                f"`{advice.accept_lot(f'{dataset.namespace}/{dataset.name}', self.lot)}`"
            )
        if others:
            source = uow.datasets.get(others[0])
            name = f"{source.namespace}/{source.name}" if source is not None else others[0]
            raise Conflict(
                f"{where} was made from lot {self.lot} of {name}, which is held; unhold that: "
                f"`{advice.unhold_lot(name, self.lot)}`"
            )
        drop_reasons(room, dataset.id, self.lot)


class HoldWork(Admin, frozen=True):
    """Keep one job from one lot. Without `hold`, let it try again, with all its tries."""

    namespace: str
    job: str
    lot: str
    hold: bool = True
    only: str | None = None  # the namespace whose jobs a refusal may name; None for all

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Hold it, or let it go."""
        room = uow.tables(LockTables)
        named = job_row(uow, self.namespace, self.job)
        job = wired(room, named)
        row = room.work.get((job.job_id, check_lot(self.lot))) or work.new_work(
            job.job_id, self.lot, 0, WorkState.WAITING, now
        )
        if row.state == WorkState.RUNNING:
            raise Conflict(
                f"lot {self.lot} of job {named.namespace}/{named.name} is being worked on by "
                f"{row.owner!r}; release its lock first"
            )
        is_held = row.state == WorkState.HELD
        # What is held already, for whatever reason, can be kept from the job as well; to let go
        # ends both.
        is_kept = self.hold and room.is_kept(job.job_id, self.lot)
        if is_kept and self.is_said(_last_hold(uow, self.lot, job=job.job_id)):
            return
        if not self.hold and not is_held:
            raise refuse_work(uow, named, row, now, self.only)
        if not self.hold and (refusal := refuse_held_output(uow, job, self.lot)):
            raise refusal
        if self.hold:
            keep = (Status.HOLD, "", None, None, now)
            room.put_status(StatusRow(NOWHERE, self.lot, DatasetRole.INPUT, job.job_id, *keep))
        else:
            room.keep_no_more(job.job_id, self.lot)
            self._let_try(room, job, now)
        action = "hold" if self.hold else "unhold"
        state = work.standing(room, job, self.lot, later=False)
        is_over = self.hold or state == WorkState.DONE  # what is done took the tries that it took
        fresh = replace(row, tries=row.tries if is_over else 0, not_before=0)
        after = work.standing_at(fresh, state, now) if state != row.state else fresh
        work.moved(room, after, row, action, self.who, now, self.why)
        work.refresh(room, job, [self.lot], now)  # only now: what went stale is held again
        work.refresh_around(room, job.output_ids, [self.lot], now)
        self.record(uow, now, f"work {action}", _target(named, self.lot))

    def _let_try(self, room: LockTables, job: LotJobRow, now: Micros) -> None:
        """Let go what the job is out of tries with, and what it holds for a newer input."""
        for dataset in job.input_ids:
            held = room.inputs.get((dataset, job.job_id, self.lot))
            if held is not None and held.status == Status.HOLD:
                before = Status(held.held_from) if held.held_from else Status.ERROR
                room.put_status(replace(held, status=before, held_from="", since=now))
        for dataset in job.output_ids:
            made = room.outputs.get((dataset, self.lot))
            spent = made is not None and made.job_id == job.job_id and not made.held_from
            if made is not None and spent and made.status == Status.HOLD:
                room.put_status(replace(made, status=Status.ERROR, since=now))


class PrioritizeWork(Admin, frozen=True):
    """Have lots of a job worked on before or after others."""

    namespace: str
    job: str
    lots: tuple[str, ...]
    priority: int

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Give all of them this priority, or none."""
        room = uow.tables(LockTables)
        named = job_row(uow, self.namespace, self.job)
        wired(room, named)
        for lot in dict.fromkeys(self.lots):
            room.put_work(replace(_met(room, named, lot), rank=-self.priority))
            self.record(uow, now, f"work priority {self.priority}", _target(named, lot))


def _met(room: LockTables, job: JobRow, lot: str) -> WorkRow:
    row = room.work.get((job.id, check_lot(lot)))
    if row is None:
        raise NotFound(f"job {job.namespace}/{job.name} has never met lot {lot}")
    return row


def _last_hold(
    uow: UnitOfWork, lot: str, *, job: str | None = None, dataset: str | None = None
) -> Stop | None:
    """What has held a lot of a dataset, or a job's work on it, last."""
    which = {"lot": lot, "jobs": [job] if job else [], "datasets": [dataset] if dataset else []}
    stops = [Stop(*stop) for _, _, *stop in uow.tx.fetch("read_holds_of_lot", **which)]
    return stops[-1] if stops else None


def _target(job: JobRow, lot: str) -> str:
    return f"job:{job.namespace}:{job.name} lot {lot}"


class AcceptLot(Admin, frozen=True):
    """Let a lot be read although checks of it failed.

    `manifest` says that it is complete, where the one of `version` said that it is partial.
    """

    namespace: str
    dataset: str
    lot: str
    version: str
    manifest: ManifestNote | None = None

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """It is as it was, mostly READY, unless it is held for another reason too."""
        room = uow.tables(LockTables)
        dataset = dataset_row(uow, self.namespace, self.dataset)
        row = room.outputs.get((dataset.id, check_lot(self.lot)))
        where = f"lot {self.lot} of {self.namespace}/{self.dataset}"
        if row is None or not drop_reason(room, dataset.id, self.lot, QUALITY):
            raise Conflict(
                f"{where} is not held for checks that failed; there is nothing to accept"
            )
        if row.version_id != self.version:
            raise Conflict(f"{where} has got another version meanwhile; look at it again")
        if self.manifest is not None:
            uow.tables(LotTables).put_manifest(
                self.version, dataset.id, self.lot, self.manifest, now
            )
        after = row
        if room.reasons.get((dataset.id, self.lot)) is None:
            # Since it was held, a newer input may have had it made again.
            after = replace(row, status=Status(row.held_from), held_from="", since=now)
            room.put_status(after)
            tell_readable(room, after, now)
        room.append(
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
            holds.let_go(uow, dataset, self.lot, self.who, self.why, now)
        work.refresh_around(room, [dataset.id], [self.lot], now)
        self.record(uow, now, "lot accept", f"dataset:{self.namespace}:{self.dataset} {self.lot}")
