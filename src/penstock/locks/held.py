"""Why lots are held."""

from penstock.locks.room import LockRoom
from penstock.locks.rows import OUTSIDE, ReasonsRow, StatusRow
from penstock.locks.table import Status

QUALITY = OUTSIDE  # a reason that is no dataset: checks of the lot have failed


def add_reason(room: LockRoom, dataset_id: str, lot: str, reason: str) -> None:
    """Note why a lot is held."""
    held = room.reasons.get((dataset_id, lot))
    reasons = held.reasons if held is not None else ()
    if reason not in reasons:
        room.put_reasons(ReasonsRow.of(dataset_id, lot, (*reasons, reason)))


def drop_reason(room: LockRoom, dataset_id: str, lot: str, reason: str) -> bool:
    """Whether it was a reason."""
    held = room.reasons.get((dataset_id, lot))
    if held is None or reason not in held.reasons:
        return False
    left = tuple(other for other in held.reasons if other != reason)
    room.put_reasons(ReasonsRow.of(dataset_id, lot, left))
    return True


def is_for_quality_alone(room: LockRoom, row: StatusRow) -> bool:
    """Whether a lot is held for its checks, and nothing else: then it may be made anew."""
    held = room.reasons.get((row.dataset_id, row.lot))
    return row.status == Status.HOLD and held is not None and held.reasons == (QUALITY,)
