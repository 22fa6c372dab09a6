"""What a reported run would lock, and what stands in its way.

A run that others start is not asked to claim: its events tell what it reads and writes. Here is
decided what that means for locks; nothing is changed.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from penstock.catalog.entities import names
from penstock.catalog.entities.runs import LotFacet
from penstock.catalog.events.parse import Event, Mention
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import say_time
from penstock.locks.events.lot_facet import Lots, NamedLots
from penstock.locks.lock_rules import locks_of, usable, writable
from penstock.locks.rows import EXTERNAL_JOB, HOLD_SENTINEL, LotJobRow, StatusRow
from penstock.locks.tables import LockTables
from penstock.schema.catalog import DatasetRole
from penstock.schema.lot_ids import is_clock, sort_key
from penstock.schema.lots import Status
from penstock.states import WorkState


class LotAccess(Struct, frozen=True):
    """A lot that a run works on: the datasets it reads that lot of, and those it writes it to."""

    lot: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class LockPlan(Struct, frozen=True):
    """The lots that a run works on; and other lots, by dataset, that it only reads."""

    accesses: tuple[LotAccess, ...]
    reads: tuple[tuple[str, str], ...]  # dataset, lot


class LockConflict(Struct, frozen=True):
    """Why a lot may not be worked on, and where the lock is."""

    dataset_id: str | None
    why: str


class _Side(Struct, frozen=True):
    """The datasets on one side of a run that can have lots, and those that it names of each."""

    named: Mapping[str, Lots]
    of_run: Lots
    whole: bool  # a dataset of which it names no lot has the one that is worked on

    @property
    def lots(self) -> set[str]:
        """Every lot that is named of any of them."""
        return {lot for own in self.named.values() for lot in own or self.of_run}

    def having(self, lot: str) -> tuple[str, ...]:
        """The datasets of which this lot is meant."""
        return tuple(
            dataset
            for dataset, own in self.named.items()
            if lot in (own or self.of_run) or (self.whole and not own)
        )


def plan_locks(
    uow: UnitOfWork,
    event: Event,
    named: NamedLots,
    job: LotJobRow | None,
    said: LotFacet | None,
    within: str | None = None,
) -> LockPlan:
    """What an event aims at; `said` is what the run has told before.

    Which datasets have lots is a matter of the job's wiring where somebody has stated it, and of
    the event where not. The lots that are written are those worked on, if any are named. `within`
    is the namespace of the key that the event came with: outside, only what is wired is written.
    """
    of_run = named.of_run
    if not of_run and said is not None and (said.of_all or said.attempt is None):
        of_run = said.all_lots
    wired = job.output_ids if job is not None else ()
    written = (
        mention.id
        for mention in event.outputs
        if not is_clock(mention.name) and may_write(uow, mention, wired, within)
    )
    outputs = _side(uow, named.outputs, written, of_run, job, DatasetRole.OUTPUT)
    inputs = _side(uow, named.inputs, (m.id for m in event.inputs), of_run, job, DatasetRole.INPUT)
    lots = sorted(outputs.lots or inputs.lots, key=sort_key)
    found = [LotAccess(lot, inputs.having(lot), outputs.having(lot)) for lot in lots]
    # What is read and written is written.
    found = [
        LotAccess(
            access.lot, tuple(d for d in access.inputs if d not in access.outputs), access.outputs
        )
        for access in found
    ]
    reads = [
        (dataset, lot) for dataset, own in inputs.named.items() for lot in own if lot not in lots
    ]
    return LockPlan(tuple(found), tuple(reads))


def may_write(uow: UnitOfWork, output: Mention, wired: Iterable[str], within: str | None) -> bool:
    """Whether lots may be made of a dataset with a key for one namespace: there, or if wired."""
    if within is None or names.home(uow, output) == within:
        return True
    return uow.dataset_id(output.id) in wired


def _side(
    uow: UnitOfWork,
    named: Mapping[str, Lots],
    mentioned: Iterable[str],
    of_run: Lots,
    job: LotJobRow | None,
    role: DatasetRole,
) -> _Side:
    lots = {uow.dataset_id(name): own for name, own in named.items()}
    wired = (
        (job.input_ids if role == DatasetRole.INPUT else job.output_ids) if job is not None else ()
    )
    if job is not None and job.stated:
        return _Side({dataset: lots.get(dataset, ()) for dataset in wired}, of_run, whole=True)
    datasets = dict.fromkeys(map(uow.dataset_id, mentioned))
    if of_run:
        datasets |= dict.fromkeys(wired)
    return _Side({dataset: lots.get(dataset, ()) for dataset in datasets}, of_run, whole=False)


def find_missing(
    tables: LockTables, job_id: str, run_id: str, access: LotAccess
) -> LotAccess | None:
    """What a run does not hold yet of what it aims at."""
    inputs = [
        d for d in access.inputs if not _is_held(tables.inputs.get((d, job_id, access.lot)), run_id)
    ]
    outputs = [
        d for d in access.outputs if not _is_held(tables.outputs.get((d, access.lot)), run_id)
    ]
    return LotAccess(access.lot, tuple(inputs), tuple(outputs)) if inputs or outputs else None


def _is_held(row: StatusRow | None, run_id: str) -> bool:
    return row is not None and row.run_id == run_id and row.status == Status.RUNNING


def explain_unwritten(uow: UnitOfWork, named: NamedLots, lot: str, outputs: Iterable[str]) -> str:
    """Why a run that completes has not made a lot: it tells which it wrote, and leaves this out.

    Where it names no lots of a dataset, it has made what it set out to make. Empty if it has.
    """
    lots = {uow.dataset_id(name): own for name, own in named.outputs.items()}
    for dataset in outputs:
        written = lots.get(dataset) or named.of_run
        if written and lot not in written:
            name = _dataset_name(uow, dataset)
            return f"the run completed, but did not name lot {lot} among those it wrote of {name}"
    return ""


def find_conflict(
    uow: UnitOfWork, job_id: str, run_id: str, access: LotAccess, *, viewer_namespace: str
) -> LockConflict | None:
    """The first thing that keeps a run of a job from a lot, by the truth table.

    `beside` is the namespace of the job: those of others are not named to it.
    """
    return next(_obstacles(uow, job_id, run_id, access, viewer_namespace), None)


def _obstacles(
    uow: UnitOfWork, job_id: str, run_id: str, access: LotAccess, viewer_namespace: str
) -> Iterator[LockConflict]:
    tables = uow.tables(LockTables)
    gates = (job_id, *access.inputs, *access.outputs)
    tables.holds.prefetch(gates)
    for gate in gates:
        if (hold := tables.holds.get(gate)) is not None:
            what = _job_name(uow, gate) if gate == job_id else _dataset_name(uow, gate)
            since = say_time(hold.since)
            kind = "dataset" if hold.kind == "DATASET" else "job"
            why = f"{kind} {what} is held by {hold.who!r} since {since}: {hold.why}"
            yield LockConflict(None if gate == job_id else gate, why)
    work = tables.work.get((job_id, access.lot))
    if work is not None and work.state == WorkState.RUNNING and work.run_id != run_id:
        since = say_time(work.since)
        why = f"{work.owner!r} works on lot {access.lot} since {since}, in run {work.run_id}"
        yield LockConflict(None, why)
    if (kept := tables.inputs.get((HOLD_SENTINEL, job_id, access.lot))) is not None:
        yield LockConflict(
            None, f"this job is kept from lot {access.lot} since {say_time(kept.since)}"
        )
    for dataset in access.outputs:
        made = tables.outputs.get((dataset, access.lot))
        if made is not None and not writable(Status(made.status)):
            yield LockConflict(dataset, _said(uow, made, "cannot be written", viewer_namespace))
    for dataset in access.inputs:
        yield from find_read_conflicts(uow, dataset, access.lot, viewer_namespace=viewer_namespace)
        own = tables.inputs.get((dataset, job_id, access.lot))
        if own is not None and not usable(Status(own.status)):
            yield LockConflict(
                dataset, _said(uow, own, "was taken by this job before", viewer_namespace)
            )


def find_read_conflicts(
    uow: UnitOfWork, dataset: str, lot: str, *, viewer_namespace: str
) -> Iterator[LockConflict]:
    """Why a lot may not be read.

    Where no row speaks of it, nothing is locked: it came by a way that is not ours. But if a job
    of ours makes the dataset's lots, or a clock does, then it is not there yet. A job that was
    deleted makes none.
    """
    tables = uow.tables(LockTables)
    made = tables.outputs.get((dataset, lot))
    if made is not None:
        if locks_of(DatasetRole.OUTPUT, Status(made.status)).read:
            yield LockConflict(dataset, _said(uow, made, "cannot be read", viewer_namespace))
        return
    wired = [job for role, job in tables.wires.get(dataset) or () if role == DatasetRole.OUTPUT]
    uow.jobs.prefetch(wired)
    makers = [row for job in wired if (row := uow.jobs.get(job)) is not None and not row.hidden]
    if makers or tables.clocks.get(dataset) is not None:
        by = f"; it is made by {name_job(uow, makers[0].id, viewer_namespace)}" if makers else ""
        yield LockConflict(
            dataset, f"lot {lot} of {_dataset_name(uow, dataset)} is not there yet{by}"
        )


def _said(uow: UnitOfWork, row: StatusRow, what: str, viewer_namespace: str) -> str:
    by = run = ""
    if row.job_id != EXTERNAL_JOB:
        by = f" by {name_job(uow, row.job_id, viewer_namespace)}"
    if row.run_id is not None and _is_visible(uow, row.job_id, viewer_namespace):
        run = f" in run {row.run_id}"
    return (
        f"lot {row.lot} of {_dataset_name(uow, row.dataset_id)} {what}: it is {row.status}"
        f"{by}{run} since {say_time(row.since)}"
    )


def name_job(uow: UnitOfWork, job_id: str, viewer_namespace: str) -> str:
    """A job as messages in a namespace name it: of those elsewhere nothing is told."""
    if not _is_visible(uow, job_id, viewer_namespace):
        return "a job in another namespace"
    return f"job {_job_name(uow, job_id)}"


def _is_visible(uow: UnitOfWork, job_id: str, viewer_namespace: str) -> bool:
    job = uow.jobs.get(job_id)
    return job is None or job.namespace == viewer_namespace


def _job_name(uow: UnitOfWork, job_id: str) -> str:
    job = uow.jobs.get(job_id)
    return f"{job.namespace}/{job.name}" if job is not None else job_id


def _dataset_name(uow: UnitOfWork, dataset_id: str) -> str:
    dataset = uow.datasets.get(dataset_id)
    return f"{dataset.namespace}/{dataset.name}" if dataset is not None else dataset_id
