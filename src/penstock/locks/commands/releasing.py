"""Refusals to release a hold that is not there: they name what stops the work instead."""

from collections.abc import Sequence

from penstock.catalog.rows import DatasetRow, JobRow
from penstock.catalog.world import World
from penstock.clock import Micros
from penstock.errors import Conflict
from penstock.locks import advice
from penstock.locks.facts import Gate
from penstock.locks.reading import list_stops_of_dataset, list_stops_of_job
from penstock.locks.room import LockRoom
from penstock.locks.rows import LINEAGE, HoldRow, LotJobRow, StatusRow, WorkRow
from penstock.locks.table import Status
from penstock.locks.why import why
from penstock.states import WorkState

_SHOWN_MAX = 3
_UNCHANGED = "so nothing was changed"


def refuse_job(world: World, named: JobRow, held: HoldRow | None) -> Conflict:
    """The refusal for a job that is not held for itself."""
    name = f"job {named.namespace}/{named.name}"
    if held is not None and held.kind == LINEAGE:
        source = world.datasets.get(held.source_id) if held.source_id is not None else None
        command = ""
        if source is not None:
            command = f": `{advice.unhold_dataset(f'{source.namespace}/{source.name}')}`"
        return Conflict(f"{name} is not held for itself: {held.why}; unhold that dataset{command}")
    job = world.room(LockRoom).jobs.get(named.id)
    gates = list_stops_of_job(world.tx, job) if job is not None else []
    return Conflict(
        f"{name} is not held, {_UNCHANGED}{_gates(gates)}{_held_work(world, named, gates)}"
    )


def _held_work(world: World, named: JobRow, gates: Sequence[Gate]) -> str:
    """A lot of the job that is held, if no whole hold explains why it stands still."""
    which = {"job_id": named.id, "state": str(WorkState.HELD), "limit": 1, "offset": 0}
    rows = [] if gates else world.tx.rows(WorkRow, "read_stuck_work", **which)
    if not rows:
        return ""
    command = advice.unhold_work(f"{named.namespace}/{named.name}", rows[0].lot)
    return f"; lots of it are held, such as {rows[0].lot}: `{command}`"


def refuse_dataset(world: World, dataset: DatasetRow, only: str | None) -> Conflict:
    """The refusal for a dataset that is not held."""
    gates = list_stops_of_dataset(world.tx, dataset.id, only)
    name = f"{dataset.namespace}/{dataset.name}"
    rest = _gates(gates)
    if not gates:
        lots = world.tx.fetch("first_held_lot", dataset_id=dataset.id)
        rest = "".join(
            f"; lots of it are held, such as {lot}: `{advice.unhold_lot(name, lot)}`"
            for (lot,) in lots
        )
    return Conflict(f"dataset {name} is not held, {_UNCHANGED}{rest}")


def refuse_lot(
    world: World, dataset: DatasetRow, lot: str, row: StatusRow | None, only: str | None
) -> Conflict:
    """The refusal for a lot that is not held."""
    room = world.room(LockRoom)
    where = f"{dataset.namespace}/{dataset.name}"
    stands = f"it is {row.status}" if row is not None else "it is not there yet"
    rest = ""
    gates = [Gate(*found[1:]) for found in world.tx.fetch("read_held_gates", ids=[dataset.id])]
    if row is not None and row.held_from:
        rest = "; it is held as soon as it is there, for lots that it is made from"
    elif gates:
        rest = _gates(gates)
    else:
        rest = _work_around(world, room, dataset, lot, only)
    return Conflict(f"lot {lot} of {where} is not held, {_UNCHANGED}: {stands}{rest}")


def _work_around(
    world: World, room: LockRoom, dataset: DatasetRow, lot: str, only: str | None
) -> str:
    """The jobs that are kept from a lot of a dataset, although the lot itself is not held."""
    jobs = list(dict.fromkeys(job for _, job in room.wires.get(dataset.id) or ()))
    room.work.prefetch((job, lot) for job in jobs)
    held = [job for job in jobs if _is_held(room.work.get((job, lot)))]
    names = [row for job in held[:_SHOWN_MAX] if (row := world.jobs.get(job)) is not None]
    return "".join(
        f"; job {name.namespace}/{name.name} is held with it: "
        f"`{advice.unhold_work(f'{name.namespace}/{name.name}', lot)}`"
        for name in names
        if only in (None, name.namespace)
    )


def _is_held(work: WorkRow | None) -> bool:
    return work is not None and work.state == WorkState.HELD


def refuse_work(
    world: World, named: JobRow, row: WorkRow, now: Micros, only: str | None
) -> Conflict:
    """The refusal for a lot that its job is not kept from."""
    found = why(world.tx, named.namespace, named.name, row.lot, now, only=only)
    commands = [reason.command for reason in found.reasons if reason.command]
    rest = f" End that: {' or '.join(f'`{c}`' for c in commands[:_SHOWN_MAX])}" if commands else ""
    return Conflict(
        f"lot {row.lot} of job {named.namespace}/{named.name} is not held, {_UNCHANGED}. "
        f"{found.sentence}{rest}"
    )


def refuse_held_output(world: World, job: LotJobRow, lot: str) -> Conflict | None:
    """The refusal for work that only the hold of a lot it writes stops."""
    room = world.room(LockRoom)
    own = [room.inputs.get((dataset, job.job_id, lot)) for dataset in job.own_ids]
    if any(row is not None and row.status == Status.HOLD for row in own):
        return None
    made = [room.outputs.get((dataset, lot)) for dataset in job.output_ids]
    rows = [row for row in made if row is not None and row.status == Status.HOLD]
    if not rows or any(not row.held_from and row.job_id == job.job_id for row in rows):
        return None
    dataset = world.datasets.get(rows[0].dataset_id)
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
