"""The steppers of all operations, for the processes that keep operations going."""

from collections.abc import Callable

from penstock.clock import Clock
from penstock.operations.backfills.service import Backfills
from penstock.operations.replays.service import Replays
from penstock.store.write_queue import WriteQueue


def operation_steppers(writes: WriteQueue, clock: Clock) -> tuple[Callable[[], int], ...]:
    """Return one function for each kind, which steps its operations and returns their number."""
    return Backfills(writes, clock).step_all, Replays(writes, clock).step_all
