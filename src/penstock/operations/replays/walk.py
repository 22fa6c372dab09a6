"""The walk downstream, along the versions that runs really read and made, lot by lot.

Wiring shows what a job may read; the pinned inputs of a run show what it did read. Only those lead
to derived data. Old runs count too: other data may still be derived from their outputs.
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

KEYS_MAX = 5_000  # keys in one statement

Node = tuple[str, str]  # version id, lot: one version of one lot
Work = tuple[str, str]  # job id, lot


class PastRun(NamedTuple):
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
        """Its duration, if it has ended."""
        if self.started_at is None or self.ended_at is None:
            return 0
        return max(0, self.ended_at - self.started_at)


class Derived(NamedTuple):
    """Runs that read bad data, and the versions that they made."""

    runs: Mapping[str, PastRun]
    made: Mapping[Node, str]  # the run that made it


def past_runs(rows: Iterable[Row]) -> Iterator[PastRun]:
    """Yield runs from their columns, without those that are on no lot."""
    for run_id, job_id, version, state, started_at, ended_at, facets in rows:
        facet = lot_facet(facets)
        if facet is not None:
            lots = facet.all_lots
            yield PastRun(run_id, job_id, version, RunState(state), started_at, ended_at, lots)


def batches(keys: Sequence[T]) -> Iterator[Sequence[T]]:
    """Divide keys into batches for one statement."""
    for begin in range(0, len(keys), KEYS_MAX):
        yield keys[begin : begin + KEYS_MAX]


def fetch_runs(tx: Transaction, run_ids: Iterable[str]) -> dict[str, PastRun]:
    """Read runs that ended well, by id."""
    wanted = list(dict.fromkeys(run_ids))
    rows = (row for ids in batches(wanted) for row in tx.fetch("replay_runs", ids=ids))
    return {run.id: run for run in past_runs(rows)}


def walk(tx: Transaction, nodes: Iterable[Node]) -> Derived:
    """Return everything that was made, directly or not, from versions of lots."""
    runs: dict[str, PastRun] = {}
    makers: dict[Node, str] = {}
    seen = set(nodes)
    ahead = sorted(seen)
    while ahead:
        fresh = list(_readers(tx, ahead, runs))
        runs |= {run.id: run for run in fresh}
        outputs = find_outputs(tx, fresh)
        makers |= outputs
        ahead = sorted(outputs.keys() - seen)
        seen.update(ahead)
    return Derived(runs, makers)


def find_outputs(tx: Transaction, runs: Iterable[PastRun]) -> dict[Node, str]:
    """Return the versions that completed runs made, each with its run."""
    ended = {run.id: run for run in runs if run.state == RunState.COMPLETED}
    return {
        (version_id, lot): run_id
        for ids in batches(list(ended))
        for run_id, _, version_id in tx.fetch("replay_made", ids=ids)
        for lot in ended[run_id].lots
    }


def _readers(
    tx: Transaction, nodes: Sequence[Node], known: Mapping[str, PastRun]
) -> Iterator[PastRun]:
    lots: dict[str, set[str]] = defaultdict(set)
    for version_id, lot in nodes:
        lots[version_id].add(lot)
    seen = set(known)
    for ids in batches(list(lots)):
        for version_id, run_id, *rest in tx.fetch("replay_readers", ids=ids):
            if run_id in seen:
                continue
            for run in past_runs([(run_id, *rest)]):
                if not lots[version_id].isdisjoint(run.lots):
                    seen.add(run_id)
                    yield run
