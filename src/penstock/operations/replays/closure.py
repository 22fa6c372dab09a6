"""The work that stands on something bad: each job and lot whose last good run read it."""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from penstock.catalog.shapes import EntityId
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.locks.lock_rules import Status
from penstock.locks.queries.hold_reasons import QUALITY
from penstock.locks.rows import NOWHERE, LotJobRow, ReasonsRow, WorkRow
from penstock.operations.replays.target import Target, find_bad
from penstock.operations.replays.walk import LotRun, Node, Work, made_by, parts, walk
from penstock.states import WorkState


class Wired(NamedTuple):
    """A job that works lot by lot, and its name."""

    name: EntityId
    job: LotJobRow


class Stained(NamedTuple):
    """One job's work on one lot, which stands on something bad.

    `run` is its last good run; None, if its first is at it just now. `is_kept` says that a
    person keeps the job from the lot, `held` of which datasets one has to be let go first.
    `before` is the work whose results it reads, as far as that is stained too.
    """

    wired: Wired
    row: WorkRow
    run: LotRun | None
    is_root: bool
    is_kept: bool
    held: tuple[str, ...]
    before: frozenset[Work]

    @property
    def key(self) -> Work:
        """Which work it is."""
        return self.row.job_id, self.row.lot

    @property
    def micros(self) -> Micros:
        """How long its last good run took."""
        return self.run.micros if self.run is not None else 0


class Closure(NamedTuple):
    """Work that stands on something bad, in no order; `target` means the same whenever asked."""

    target: Target
    work: Sequence[Stained]


def closure(tx: Transaction, target: Target) -> Closure:
    """All work that has to be done again when a target is bad."""
    bad = find_bad(tx, target)
    derived = walk(tx, bad.nodes)
    runs = _by_work((*bad.roots, *derived.runs.values()))
    reached = _by_work(derived.runs.values())
    roots = _by_work(bad.roots)
    jobs = _jobs(tx, {job_id for job_id, _ in runs})
    rows = _work(tx, [key for key in runs if key[0] in jobs])
    there = _outputs(tx, rows, jobs)
    made = {**made_by(tx, bad.roots), **derived.made}
    last = {
        key: run
        for key, row in rows.items()
        if (run := _last(row, jobs[key[0]].job, runs[key], there, made)) is not None
    }
    left_out = roots.keys() - reached.keys() if target.downstream_only else set()
    kept = {key: run for key, run in last.items() if key not in left_out}
    kept_from = _kept_from(tx, [rows[key] for key in kept])
    found = [
        Stained(
            wired=jobs[key[0]],
            row=rows[key],
            run=run if run.ended_at is not None else None,
            is_root=key in roots and key not in reached,
            is_kept=key in kept_from,
            held=tuple(dict.fromkeys(_held(key, jobs[key[0]].job, there, kept))),
            before=frozenset(_before(key, jobs[key[0]].job, there) & kept.keys()),
        )
        for key, run in kept.items()
    ]
    return Closure(bad.target, found)


def _by_work(runs: Iterable[LotRun]) -> dict[Work, dict[str, LotRun]]:
    found: dict[Work, dict[str, LotRun]] = defaultdict(dict)
    for run in runs:
        for lot in run.lots:
            found[run.job_id, lot][run.id] = run
    return dict(found)


def _jobs(tx: Transaction, job_ids: Iterable[str]) -> dict[str, Wired]:
    found = {}
    for some in parts(sorted(job_ids)):
        for namespace, name, *row in tx.fetch("read_lot_jobs", ids=some):
            job = LotJobRow(*row)
            found[job.job_id] = Wired(EntityId(namespace, name), job)
    return found


def _work(tx: Transaction, keys: list[Work]) -> dict[Work, WorkRow]:
    texts = [job_id + lot for job_id, lot in keys]
    rows = (row for some in parts(texts) for row in tx.rows(WorkRow, "replay_work", keys=some))
    return {(row.job_id, row.lot): row for row in rows}


def _kept_from(tx: Transaction, rows: Iterable[WorkRow]) -> set[Work]:
    """The work that a person keeps its job from; asked only of what is held."""
    keys = [row.job_id + row.lot for row in rows if row.state == WorkState.HELD]
    asked = ({"keys": some, "nowhere": NOWHERE} for some in parts(keys))
    return {(job_id, lot) for which in asked for job_id, lot in tx.fetch("replay_kept", **which)}


class _There(NamedTuple):
    """A lot of a dataset: who makes it, what there is of it, and why it is held (JSON) if it is."""

    job_id: str
    version_id: str | None
    status: str
    held_from: str
    why: str | None

    @property
    def is_held(self) -> bool:
        """Whether it waits for a person."""
        return self.status == Status.HOLD

    @property
    def is_spent(self) -> bool:
        """Whether its job is out of tries with it, and nobody holds it."""
        return self.is_held and not self.held_from

    def reasons(self, dataset_id: str, lot: str) -> list[str]:
        """Of which datasets the lot is held, for this one to be; none where checks of it failed."""
        told = ReasonsRow(dataset_id, lot, self.why).reasons if self.why else (dataset_id,)
        return [reason for reason in told if reason != QUALITY]


There = Mapping[tuple[str, str], _There]  # by dataset id and lot


def _outputs(tx: Transaction, keys: Iterable[Work], jobs: Mapping[str, Wired]) -> There:
    """Who makes the lots that work reads and writes, and in which version they are there."""
    wanted = dict.fromkeys(
        dataset_id + lot
        for job_id, lot in keys
        for dataset_id in (*jobs[job_id].job.input_ids, *jobs[job_id].job.output_ids)
    )
    return {
        (dataset_id, lot): _There(*rest)
        for some in parts(list(wanted))
        for dataset_id, lot, *rest in tx.fetch("replay_outputs", keys=some)
    }


def _last(
    row: WorkRow,
    job: LotJobRow,
    stained: Mapping[str, LotRun],
    there: There,
    made: Mapping[Node, str],
) -> LotRun | None:
    """The last good run of some work, or the one under way, if that is stained.

    What a job makes is there until something newer is: it tells of the last good run even when
    the job was tried again since, without success.
    """
    at_hand = stained.get(row.run_id or "")
    if row.state == WorkState.DONE:
        return at_hand
    makers = (made.get(node) for node in _own_nodes(row, job, there))
    last = next((stained[run_id] for run_id in makers if run_id and run_id in stained), None)
    if last is not None or row.state == WorkState.RUNNING or job.output_ids:
        return last or (at_hand if row.state == WorkState.RUNNING else None)
    return max(stained.values(), key=lambda run: run.ended_at or 0)


def _own_nodes(row: WorkRow, job: LotJobRow, there: There) -> Iterator[Node]:
    for dataset_id in job.output_ids:
        found = there.get((dataset_id, row.lot))
        if found is not None and found.job_id == row.job_id and found.version_id is not None:
            yield found.version_id, row.lot


def _held(key: Work, job: LotJobRow, there: There, kept: Container[Work]) -> Iterator[str]:
    """The datasets of which the lot has to be let go first, whatever is made again before it."""
    lot = key[1]
    for dataset_id in job.output_ids:
        made = there.get((dataset_id, lot))
        if made is not None and made.is_held and not made.is_spent:
            reasons = made.reasons(dataset_id, lot)
            yield from (cause for cause in reasons if not _is_renewed(cause, lot, there, kept))
    for dataset_id in job.input_ids:
        read = there.get((dataset_id, lot))
        if read is not None and read.is_held and (read.job_id, lot) not in kept:
            yield from read.reasons(dataset_id, lot) or (dataset_id,)


def _is_renewed(dataset_id: str, lot: str, there: There, kept: Container[Work]) -> bool:
    """Whether a lot is held only for its checks, and is made again."""
    found = there.get((dataset_id, lot))
    if found is None or not found.is_held or (found.job_id, lot) not in kept:
        return False
    return not found.reasons(dataset_id, lot)


def _before(key: Work, job: LotJobRow, there: There) -> set[Work]:
    """The work that makes what a job reads of a lot."""
    lot = key[1]
    makers = (there.get((dataset_id, lot)) for dataset_id in job.input_ids)
    return {(found.job_id, lot) for found in makers if found is not None} - {key}
