"""How much work there is and how old it is, for whoever watches that nothing is stuck."""

from collections.abc import Mapping

from msgspec import Struct

from penstock.clock import SECOND, Micros
from penstock.db import Transaction
from penstock.locks.standing import COUNTED_MAX, JOBS_LOOKED_AT, JOBS_MAX
from penstock.states import WorkState

_COUNTED = (
    WorkState.READY,
    WorkState.WAITING,
    WorkState.LATER,
    WorkState.HELD,
    WorkState.RUNNING,
)


class Backlog(Struct, frozen=True):
    """Open lots by state, up to a thousand of a job in each, and how long the oldest are so.

    A lot that is ready counts as the next of its job. With none there is no age, but 0.
    """

    lots: Mapping[WorkState, int]
    ready_seconds: float
    running_seconds: float


def backlog(tx: Transaction, now: Micros) -> Backlog:
    """What jobs have to do."""
    most = {"looked_at": JOBS_LOOKED_AT, "most": COUNTED_MAX, "jobs": JOBS_MAX, "namespace": None}
    jobs, [[ready, running]] = tx.fetch_many(
        [("standing_of_jobs", most), ("oldest_work", {"looked_at": JOBS_LOOKED_AT})]
    )
    counts = [row[3:] for row in jobs if row[1] is not None]
    totals = map(sum, zip(*counts, strict=True)) if counts else [0] * len(_COUNTED)
    return Backlog(
        lots=dict(zip(_COUNTED, totals, strict=True)),
        ready_seconds=_age(ready, now),
        running_seconds=_age(running, now),
    )


def _age(since: Micros | None, now: Micros) -> float:
    return 0.0 if since is None else max(0.0, (now - since) / SECOND)
