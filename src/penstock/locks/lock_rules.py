"""The rules of locks: what each status row locks.

A row states what a job does with a lot of a dataset, as its producer (OUTPUT) or as a consumer
(INPUT). A lot without rows has no lock.
"""

from typing import Final, NamedTuple

from penstock.schema.catalog import DatasetRole
from penstock.schema.lots import Status


class RowLocks(NamedTuple):
    """The actions that a status row forbids."""

    read: bool  # by every job
    write: bool  # by every job
    local: bool  # work by the row's own job


FREE: Final = RowLocks(read=False, write=False, local=False)
_LOCKED: Final = RowLocks(read=True, write=True, local=False)
_OUTPUT: Final = {
    None: FREE,
    Status.RUNNING: _LOCKED,
    Status.READY: RowLocks(read=False, write=True, local=False),
    Status.RESUBMIT: RowLocks(read=True, write=False, local=False),
    Status.ERROR: RowLocks(read=True, write=False, local=False),
}
_INPUT: Final = {None: FREE, Status.ERROR: FREE}
_USED: Final = RowLocks(read=False, write=False, local=True)


def locks_of(role: DatasetRole, status: Status | None) -> RowLocks:
    """Return the locks of a row with this role and status; a status of None means no row."""
    if role == DatasetRole.OUTPUT:
        return _OUTPUT.get(status, _LOCKED)
    return _INPUT.get(status, _USED)


def readable(output: Status | None) -> bool:
    """Whether a lot with this OUTPUT status exists and may be read."""
    return output is not None and not locks_of(DatasetRole.OUTPUT, output).read


def writable(output: Status | None) -> bool:
    """Whether a lot with this OUTPUT status may be made."""
    return not locks_of(DatasetRole.OUTPUT, output).write


def usable(input_status: Status | None) -> bool:
    """Whether a job with this INPUT status may work on the lot."""
    return not locks_of(DatasetRole.INPUT, input_status).local
