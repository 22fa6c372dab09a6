"""The reasons of a lot's hold; the lot is released when none is left."""

from penstock.catalog.rows import replace
from penstock.clock import Micros
from penstock.locks.lock_rules import readable
from penstock.locks.rows import EXTERNAL_JOB, LogRow, LotJobRow, ReasonsRow, StatusRow
from penstock.locks.tables import LockTables
from penstock.lots.tables import LotEventKind
from penstock.schema.lots import Status
from penstock.states import ManifestState

QUALITY = EXTERNAL_JOB  # a reason that is no dataset: checks of the lot failed
_WHO = "penstock"


def add_reason(tables: LockTables, dataset_id: str, lot: str, reason: str) -> bool:
    """Add a reason to a lot's hold; return whether it is new."""
    held = tables.reasons.get((dataset_id, lot))
    reasons = held.reasons if held is not None else ()
    if reason in reasons:
        return False
    tables.put_reasons(ReasonsRow.of(dataset_id, lot, (*reasons, reason)))
    return True


def drop_reason(tables: LockTables, dataset_id: str, lot: str, reason: str) -> bool:
    """Drop a reason of a lot's hold; return whether it was one."""
    held = tables.reasons.get((dataset_id, lot))
    if held is None or reason not in held.reasons:
        return False
    left = tuple(other for other in held.reasons if other != reason)
    tables.put_reasons(ReasonsRow.of(dataset_id, lot, left))
    return True


def drop_reasons(tables: LockTables, dataset_id: str, lot: str) -> None:
    """Drop all reasons of a lot's hold."""
    if tables.reasons.get((dataset_id, lot)) is not None:
        tables.reasons.put((dataset_id, lot), None)


def is_for_quality_alone(tables: LockTables, row: StatusRow) -> bool:
    """Whether failed checks alone hold a lot: then it may be resubmitted."""
    held = tables.reasons.get((row.dataset_id, row.lot))
    return row.status == Status.HOLD and held is not None and held.reasons == (QUALITY,)


def is_held(tables: LockTables, dataset_id: str, lot: str) -> bool:
    """Whether a lot of a dataset is held."""
    row = tables.outputs.get((dataset_id, lot))
    return row is not None and row.status == Status.HOLD


def release_outdated(tables: LockTables, job: LotJobRow, lot: str, now: Micros) -> bool:
    """Release outputs that were held for lots upstream which were made again since.

    Return whether any was. All inputs and all held lots must be READY first. An output that was
    made of other inputs than the job reads today stays held until a person releases it.
    """
    is_released = False
    for dataset in job.output_ids:
        made = tables.outputs.get((dataset, lot))
        if made is None or made.job_id != job.job_id or made.status != Status.HOLD:
            continue
        if made.held_from and _is_outlived(tables, job, made):
            drop_reasons(tables, dataset, lot)
            free = replace(made, status=Status(made.held_from), held_from="", since=now)
            tables.put_status(free)
            why = "a lot that it was made from was held, and is READY again"
            entry = (
                now,
                "release hold",
                lot,
                None,
                dataset,
                None,
                made.status,
                free.status,
                _WHO,
                why,
            )
            tables.append(LogRow(*entry))
            announce_if_readable(tables, free, now)
            is_released = True
    return is_released


def _is_outlived(tables: LockTables, job: LotJobRow, made: StatusRow) -> bool:
    row = tables.reasons.get((made.dataset_id, made.lot))
    reasons = row.reasons if row is not None else ()
    if not reasons or {QUALITY, made.dataset_id} & {*reasons}:
        return False
    sources = [tables.outputs.get((dataset, made.lot)) for dataset in (*job.input_ids, *reasons)]
    is_there = all(source is not None and readable(Status(source.status)) for source in sources)
    return is_there and not _was_made_otherwise(tables, job, made)


def _was_made_otherwise(tables: LockTables, job: LotJobRow, made: StatusRow) -> bool:
    """Whether the job reads other inputs today: a stale output would go unnoticed."""
    read = tables.list_inputs(made.run_id) if made.run_id is not None else ()
    keys = [(dataset, job.job_id, made.lot) for dataset in read if dataset not in job.input_ids]
    return any(own and own.run_id == made.run_id for own in map(tables.inputs.get, keys))


def announce_if_readable(tables: LockTables, row: StatusRow, now: Micros) -> None:
    """Put a lot that was held into the outbox, if it can be read now."""
    if row.status != Status.READY or row.version_id is None:
        return
    noted = tables.outbox.manifests.get(row.version_id)
    tables.outbox.add_event(
        LotEventKind.PUBLISHED,
        row.dataset_id,
        row.lot,
        now,
        version_id=row.version_id,
        state=ManifestState(noted.state) if noted is not None else ManifestState.COMPLETE,
        job_id=None if row.job_id == EXTERNAL_JOB else row.job_id,
        run_id=row.run_id,
    )
