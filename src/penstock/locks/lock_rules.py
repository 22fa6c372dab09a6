"""What a status row locks: the one place that decides about locks.

A row says of a lot of a dataset what a job does with it, as its producer (OUTPUT) or as one of
its consumers (INPUT). No row, no lock.
"""

from typing import Final, NamedTuple

from penstock.schema.catalog import DatasetRole
from penstock.schema.lots import Status


class Locks(NamedTuple):
    """What others, and the same job again, may not do while a row stands."""

    read: bool  # by anybody
    write: bool  # by anybody
    local: bool  # again, by the row's own job


FREE: Final = Locks(read=False, write=False, local=False)
_SHUT: Final = Locks(read=True, write=True, local=False)
_OUTPUT: Final = {
    None: FREE,
    Status.RUNNING: _SHUT,
    Status.READY: Locks(read=False, write=True, local=False),
    Status.RESUBMIT: Locks(read=True, write=False, local=False),
    Status.ERROR: Locks(read=True, write=False, local=False),
}
_INPUT: Final = {None: FREE, Status.ERROR: FREE}
_USED: Final = Locks(read=False, write=False, local=True)


def locks_of(role: DatasetRole, status: Status | None) -> Locks:
    """What a row with this role and status locks; None stands for no row."""
    if role == DatasetRole.OUTPUT:
        return _OUTPUT.get(status, _SHUT)
    return _INPUT.get(status, _USED)


def readable(output: Status | None) -> bool:
    """Whether a lot with this OUTPUT status is there and may be read."""
    return output is not None and not locks_of(DatasetRole.OUTPUT, output).read


def writable(output: Status | None) -> bool:
    """Whether a lot with this OUTPUT status may be made."""
    return not locks_of(DatasetRole.OUTPUT, output).write


def usable(own_input: Status | None) -> bool:
    """Whether a job whose INPUT row says this may work on the lot."""
    return not locks_of(DatasetRole.INPUT, own_input).local
