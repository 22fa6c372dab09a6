"""What a status row locks: the one place that decides about locks.

A row says of a lot of a dataset what a job does with it, as its producer (OUTPUT) or as one of
its consumers (INPUT). No row, no lock.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from penstock.catalog.rows import Role


class Status(StrEnum):
    """What a job does, or did, with a lot."""

    PENDING = "PENDING"  # announced from outside; nobody may touch it yet
    RUNNING = "RUNNING"
    READY = "READY"  # OUTPUT only: there to be read
    DONE = "DONE"  # INPUT only: consumed
    ERROR = "ERROR"
    RESUBMIT = "RESUBMIT"  # OUTPUT only: to be made again; RERUN is another name for it
    HOLD = "HOLD"  # waits for a person


class RowLocks(NamedTuple):
    """What others, and the same job again, may not do while a row stands."""

    read: bool  # by anybody
    write: bool  # by anybody
    local: bool  # again, by the row's own job


FREE: Final = RowLocks(read=False, write=False, local=False)
_SHUT: Final = RowLocks(read=True, write=True, local=False)
_OUTPUT: Final = {
    None: FREE,
    Status.RUNNING: _SHUT,
    Status.READY: RowLocks(read=False, write=True, local=False),
    Status.RESUBMIT: RowLocks(read=True, write=False, local=False),
    Status.ERROR: RowLocks(read=True, write=False, local=False),
}
_INPUT: Final = {None: FREE, Status.ERROR: FREE}
_USED: Final = RowLocks(read=False, write=False, local=True)


def locks_of(role: Role, status: Status | None) -> RowLocks:
    """What a row with this role and status locks; None stands for no row."""
    if role == Role.OUTPUT:
        return _OUTPUT.get(status, _SHUT)
    return _INPUT.get(status, _USED)


def readable(output: Status | None) -> bool:
    """Whether a lot with this OUTPUT status is there and may be read."""
    return output is not None and not locks_of(Role.OUTPUT, output).read


def writable(output: Status | None) -> bool:
    """Whether a lot with this OUTPUT status may be made."""
    return not locks_of(Role.OUTPUT, output).write


def usable(own_input: Status | None) -> bool:
    """Whether a job whose INPUT row says this may work on the lot."""
    return not locks_of(Role.INPUT, own_input).local
