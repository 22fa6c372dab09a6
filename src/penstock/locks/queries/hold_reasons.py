"""Why lots are held, and when that is over."""

from penstock.catalog.rows import replace
from penstock.clock import Micros
from penstock.locks.lock_rules import readable
from penstock.locks.rows import OUTSIDE, LogRow, LotJobRow, ReasonsRow, StatusRow
from penstock.locks.tables import LockTables
from penstock.lots.tables import LotEventKind
from penstock.schema.lots import Status
from penstock.states import ManifestState

QUALITY = OUTSIDE  # a reason that is no dataset: checks of the lot have failed
_WHO = "penstock"


def add_reason(room: LockTables, dataset_id: str, lot: str, reason: str) -> bool:
    """Note why a lot is held; whether that is news."""
    held = room.reasons.get((dataset_id, lot))
    reasons = held.reasons if held is not None else ()
    if reason in reasons:
        return False
    room.put_reasons(ReasonsRow.of(dataset_id, lot, (*reasons, reason)))
    return True


def drop_reason(room: LockTables, dataset_id: str, lot: str, reason: str) -> bool:
    """Whether it was a reason."""
    held = room.reasons.get((dataset_id, lot))
    if held is None or reason not in held.reasons:
        return False
    left = tuple(other for other in held.reasons if other != reason)
    room.put_reasons(ReasonsRow.of(dataset_id, lot, left))
    return True


def drop_reasons(room: LockTables, dataset_id: str, lot: str) -> None:
    """A lot is not held any more, whatever it was held for."""
    if room.reasons.get((dataset_id, lot)) is not None:
        room.reasons.put((dataset_id, lot), None)


def is_for_quality_alone(room: LockTables, row: StatusRow) -> bool:
    """Whether a lot is held for its checks, and nothing else: then it may be made anew."""
    held = room.reasons.get((row.dataset_id, row.lot))
    return row.status == Status.HOLD and held is not None and held.reasons == (QUALITY,)


def is_held(room: LockTables, dataset_id: str, lot: str) -> bool:
    """Whether a lot of a dataset waits for a person."""
    row = room.outputs.get((dataset_id, lot))
    return row is not None and row.status == Status.HOLD


def free_outlived(room: LockTables, job: LotJobRow, lot: str, now: Micros) -> bool:
    """Let go what a job made of lots that failed their checks and were made anew since.

    Whether anything was. It waits until everything that the job reads, and what it was held for, is
    there; what was made of something else than the job reads now waits for a person.
    """
    freed = False
    for dataset in job.output_ids:
        made = room.outputs.get((dataset, lot))
        if made is None or made.job_id != job.job_id or made.status != Status.HOLD:
            continue
        if made.held_from and _is_outlived(room, job, made):
            drop_reasons(room, dataset, lot)
            free = replace(made, status=Status(made.held_from), held_from="", since=now)
            room.put_status(free)
            why = "what it was made from was held, and is there again"
            entry = (now, "unhold", lot, None, dataset, None, made.status, free.status, _WHO, why)
            room.append(LogRow(*entry))
            tell_readable(room, free, now)
            freed = True
    return freed


def _is_outlived(room: LockTables, job: LotJobRow, made: StatusRow) -> bool:
    row = room.reasons.get((made.dataset_id, made.lot))
    reasons = row.reasons if row is not None else ()
    if not reasons or {QUALITY, made.dataset_id} & {*reasons}:
        return False
    sources = [room.outputs.get((dataset, made.lot)) for dataset in (*job.input_ids, *reasons)]
    is_there = all(source is not None and readable(Status(source.status)) for source in sources)
    return is_there and not _was_made_otherwise(room, job, made)


def _was_made_otherwise(room: LockTables, job: LotJobRow, made: StatusRow) -> bool:
    """Whether its job reads something else by now: that it is out of date would show nowhere."""
    read = room.read_by(made.run_id) if made.run_id is not None else ()
    keys = [(dataset, job.job_id, made.lot) for dataset in read if dataset not in job.input_ids]
    return any(own and own.run_id == made.run_id for own in map(room.inputs.get, keys))


def tell_readable(room: LockTables, row: StatusRow, now: Micros) -> None:
    """Tell others of a lot that was held, if it can be read now."""
    if row.status != Status.READY or row.version_id is None:
        return
    noted = room.outbox.manifests.get(row.version_id)
    room.outbox.tell(
        LotEventKind.PUBLISHED,
        row.dataset_id,
        row.lot,
        now,
        version_id=row.version_id,
        state=ManifestState(noted.state) if noted is not None else ManifestState.COMPLETE,
        job_id=None if row.job_id == OUTSIDE else row.job_id,
        run_id=row.run_id,
    )
