"""A run with the runs that it began: parents and children, as a chart over time needs them."""

from collections.abc import Sequence

from penstock.catalog.nodes import find_run
from penstock.catalog.shapes import EntityId, Shape, time_or_none
from penstock.db import Transaction
from penstock.states import RunState

MEMBERS_MAX = 2000
DEPTH_MAX = 10


class Member(Shape, frozen=True):
    """One run of a family; `depth` is how far it is from the run that was asked for."""

    id: str
    parent: str | None
    job: EntityId
    state: RunState
    started_at: str | None
    ended_at: str | None
    depth: int


class Family(Shape, frozen=True):
    """A run and its descendants, the first begun first; `is_cut` says that there are more."""

    runs: Sequence[Member]
    is_cut: bool


def family(tx: Transaction, run_id: str, *, only: str | None = None) -> Family:
    """A run, the runs that it began, and so on; with `only`, those of jobs in that namespace."""
    rows = tx.fetch("run_family", id=find_run(tx, run_id).id, depth=DEPTH_MAX, most=MEMBERS_MAX + 1)
    runs = [
        Member(
            id=id,
            parent=parent,
            job=EntityId(namespace, name),
            state=RunState(state),
            started_at=time_or_none(started),
            ended_at=time_or_none(ended),
            depth=depth,
        )
        for id, parent, namespace, name, state, started, ended, depth in rows[:MEMBERS_MAX]
        if only in (None, namespace)
    ]
    return Family(runs, len(rows) > MEMBERS_MAX)
