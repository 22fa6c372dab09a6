"""Walking downstream along what runs really read and made, lot by lot.

Wiring says what a job may read; a run's pinned inputs say what it did read. Only the latter lead
to what was made from a lot, and old runs count: something may still stand on what they made.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from penstock.catalog.entities.runs import lot_facet
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.db.database import Row
from penstock.states import RunState

T = TypeVar("T")

AT_ONCE = 5_000  # keys in one statement

Node = tuple[str, str]  # version id, lot: one version of one lot
Work = tuple[str, str]  # job id, lot


class LotRun(NamedTuple):
    """A run on lots."""

    id: str
    job_id: str
    job_version_id: str | None
    state: RunState
    started_at: Micros | None
    ended_at: Micros | None
    lots: tuple[str, ...]

    @property
    def micros(self) -> Micros:
        """How long it took, if it has ended."""
        if self.started_at is None or self.ended_at is None:
            return 0
        return max(0, self.ended_at - self.started_at)


class Derived(NamedTuple):
    """Runs that read something bad, and the versions that they made of it."""

    runs: Mapping[str, LotRun]
    made: Mapping[Node, str]  # the run that made it


def lot_runs(rows: Iterable[Row]) -> Iterator[LotRun]:
    """Runs as they are stored; those that are on no lot are left out."""
    for run_id, job_id, version, state, started_at, ended_at, facets in rows:
        facet = lot_facet(facets)
        if facet is not None:
            lots = facet.all_lots
            yield LotRun(run_id, job_id, version, RunState(state), started_at, ended_at, lots)


def parts(keys: Sequence[T]) -> Iterator[Sequence[T]]:
    """Keys, as many as one statement is given."""
    for begin in range(0, len(keys), AT_ONCE):
        yield keys[begin : begin + AT_ONCE]


def fetch_runs(tx: Transaction, run_ids: Iterable[str]) -> dict[str, LotRun]:
    """Runs that ended well, by id."""
    wanted = list(dict.fromkeys(run_ids))
    rows = (row for ids in parts(wanted) for row in tx.fetch("replay_runs", ids=ids))
    return {run.id: run for run in lot_runs(rows)}


def walk(tx: Transaction, nodes: Iterable[Node]) -> Derived:
    """All that was made, directly or not, from these versions of lots."""
    runs: dict[str, LotRun] = {}
    made: dict[Node, str] = {}
    seen = set(nodes)
    ahead = sorted(seen)
    while ahead:
        fresh = list(_readers(tx, ahead, runs))
        runs |= {run.id: run for run in fresh}
        found = made_by(tx, fresh)
        made |= found
        ahead = sorted(found.keys() - seen)
        seen.update(ahead)
    return Derived(runs, made)


def made_by(tx: Transaction, runs: Iterable[LotRun]) -> dict[Node, str]:
    """What runs that ended well have made, and which of them did."""
    ended = {run.id: run for run in runs if run.state == RunState.COMPLETED}
    return {
        (version_id, lot): run_id
        for ids in parts(list(ended))
        for run_id, _, version_id in tx.fetch("replay_made", ids=ids)
        for lot in ended[run_id].lots
    }


def _readers(
    tx: Transaction, nodes: Sequence[Node], known: Mapping[str, LotRun]
) -> Iterator[LotRun]:
    """The runs that read these and are not known yet, each once."""
    lots: dict[str, set[str]] = defaultdict(set)
    for version_id, lot in nodes:
        lots[version_id].add(lot)
    met = set(known)
    for ids in parts(list(lots)):
        for version_id, run_id, *rest in tx.fetch("replay_readers", ids=ids):
            if run_id in met:
                continue
            for run in lot_runs([(run_id, *rest)]):
                if not lots[version_id].isdisjoint(run.lots):
                    met.add(run_id)
                    yield run
