"""The closure of a replay: all work whose last good run read bad data, directly or not."""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from penstock.clock import Micros
from penstock.db import Transaction
from penstock.locks.hold_reasons import QUALITY
from penstock.locks.rows import HOLD_SENTINEL, LotJobRow, ReasonsRow, WorkRow
from penstock.operations.replays.target import ReplayTarget, find_bad
from penstock.operations.replays.walk import Node, PastRun, Work, batches, find_outputs, walk
from penstock.schema.catalog import EntityId
from penstock.schema.lots import Status
from penstock.states import WorkState


class WiredJob(NamedTuple):
    """A wired job, and its name."""

    name: EntityId
    job: LotJobRow


class AffectedWork(NamedTuple):
    """One job's work on one lot that was done with bad data.

    `run` is its last good run; None if its first run is under way. `is_on_hold` means that a person
    holds the work. `held_datasets` are the datasets whose lot a person must release first. `before`
    is the affected work whose results it reads.
    """

    wired: WiredJob
    row: WorkRow
    run: PastRun | None
    is_root: bool
    is_on_hold: bool
    held_datasets: tuple[str, ...]
    before: frozenset[Work]

    @property
    def key(self) -> Work:
        """The key of the work."""
        return self.row.job_id, self.row.lot

    @property
    def micros(self) -> Micros:
        """The duration of its last good run."""
        return self.run.micros if self.run is not None else 0


class Closure(NamedTuple):
    """Affected work in no order; `target` is pinned to the versions of now."""

    target: ReplayTarget
    work: Sequence[AffectedWork]


def find_closure(tx: Transaction, target: ReplayTarget) -> Closure:
    """Return all work that must be done again if a target is bad."""
    bad = find_bad(tx, target)
    derived = walk(tx, bad.nodes)
    runs = _by_work((*bad.roots, *derived.runs.values()))
    reached = _by_work(derived.runs.values())
    roots = _by_work(bad.roots)
    jobs = _jobs(tx, {job_id for job_id, _ in runs})
    rows = _work(tx, [key for key in runs if key[0] in jobs])
    outputs = _outputs(tx, rows, jobs)
    makers = {**find_outputs(tx, bad.roots), **derived.made}
    last = {
        key: run
        for key, row in rows.items()
        if (run := _last(row, jobs[key[0]].job, runs[key], outputs, makers)) is not None
    }
    left_out = roots.keys() - reached.keys() if target.downstream_only else set()
    affected = {key: run for key, run in last.items() if key not in left_out}
    on_hold = _work_on_hold(tx, [rows[key] for key in affected])
    work = [
        AffectedWork(
            wired=jobs[key[0]],
            row=rows[key],
            run=run if run.ended_at is not None else None,
            is_root=key in roots and key not in reached,
            is_on_hold=key in on_hold,
            held_datasets=tuple(dict.fromkeys(_held(key, jobs[key[0]].job, outputs, affected))),
            before=frozenset(_before(key, jobs[key[0]].job, outputs) & affected.keys()),
        )
        for key, run in affected.items()
    ]
    return Closure(bad.target, work)


def _by_work(runs: Iterable[PastRun]) -> dict[Work, dict[str, PastRun]]:
    by_work: dict[Work, dict[str, PastRun]] = defaultdict(dict)
    for run in runs:
        for lot in run.lots:
            by_work[run.job_id, lot][run.id] = run
    return dict(by_work)


def _jobs(tx: Transaction, job_ids: Iterable[str]) -> dict[str, WiredJob]:
    jobs = {}
    for batch in batches(sorted(job_ids)):
        for namespace, name, *row in tx.fetch("read_lot_jobs", ids=batch):
            job = LotJobRow(*row)
            jobs[job.job_id] = WiredJob(EntityId(namespace, name), job)
    return jobs


def _work(tx: Transaction, keys: list[Work]) -> dict[Work, WorkRow]:
    texts = [job_id + lot for job_id, lot in keys]
    rows = (row for batch in batches(texts) for row in tx.rows(WorkRow, "replay_work", keys=batch))
    return {(row.job_id, row.lot): row for row in rows}


def _work_on_hold(tx: Transaction, rows: Iterable[WorkRow]) -> set[Work]:
    """Return the work that a person holds; only held work is looked up."""
    keys = [row.job_id + row.lot for row in rows if row.state == WorkState.HELD]
    parameters = ({"keys": batch, "nowhere": HOLD_SENTINEL} for batch in batches(keys))
    return {
        (job_id, lot) for which in parameters for job_id, lot in tx.fetch("replay_kept", **which)
    }


class _LotOutput(NamedTuple):
    """A lot of a dataset: its writer, its version, and the reasons (JSON) if it is held."""

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
        """Whether its job is out of tries, and no person holds it."""
        return self.is_held and not self.held_from

    def reasons(self, dataset_id: str, lot: str) -> list[str]:
        """Return the datasets for whose sake the lot is held; none if only its checks failed."""
        names = ReasonsRow(dataset_id, lot, self.why).reasons if self.why else (dataset_id,)
        return [reason for reason in names if reason != QUALITY]


LotOutputs = Mapping[tuple[str, str], _LotOutput]  # by dataset id and lot


def _outputs(tx: Transaction, keys: Iterable[Work], jobs: Mapping[str, WiredJob]) -> LotOutputs:
    wanted = dict.fromkeys(
        dataset_id + lot
        for job_id, lot in keys
        for dataset_id in (*jobs[job_id].job.input_ids, *jobs[job_id].job.output_ids)
    )
    return {
        (dataset_id, lot): _LotOutput(*rest)
        for batch in batches(list(wanted))
        for dataset_id, lot, *rest in tx.fetch("replay_outputs", keys=batch)
    }


def _last(
    row: WorkRow,
    job: LotJobRow,
    affected: Mapping[str, PastRun],
    outputs: LotOutputs,
    makers: Mapping[Node, str],
) -> PastRun | None:
    """Return the affected last good run of some work, or the affected run under way.

    The current output shows the last good run, even if the job was tried again since without
    success.
    """
    current = affected.get(row.run_id or "")
    if row.state == WorkState.DONE:
        return current
    candidates = (makers.get(node) for node in _own_nodes(row, job, outputs))
    last = next((affected[run_id] for run_id in candidates if run_id and run_id in affected), None)
    if last is not None or row.state == WorkState.RUNNING or job.output_ids:
        return last or (current if row.state == WorkState.RUNNING else None)
    return max(affected.values(), key=lambda run: run.ended_at or 0)


def _own_nodes(row: WorkRow, job: LotJobRow, outputs: LotOutputs) -> Iterator[Node]:
    for dataset_id in job.output_ids:
        output = outputs.get((dataset_id, row.lot))
        if output is not None and output.job_id == row.job_id and output.version_id is not None:
            yield output.version_id, row.lot


def _held(
    key: Work, job: LotJobRow, outputs: LotOutputs, affected: Container[Work]
) -> Iterator[str]:
    """Yield the datasets whose lot a person must release first, whatever is made again before."""
    lot = key[1]
    for dataset_id in job.output_ids:
        output = outputs.get((dataset_id, lot))
        if output is not None and output.is_held and not output.is_spent:
            reasons = output.reasons(dataset_id, lot)
            yield from (
                cause for cause in reasons if not _is_renewed(cause, lot, outputs, affected)
            )
    for dataset_id in job.input_ids:
        read = outputs.get((dataset_id, lot))
        if read is not None and read.is_held and (read.job_id, lot) not in affected:
            yield from read.reasons(dataset_id, lot) or (dataset_id,)


def _is_renewed(dataset_id: str, lot: str, outputs: LotOutputs, affected: Container[Work]) -> bool:
    output = outputs.get((dataset_id, lot))
    if output is None or not output.is_held or (output.job_id, lot) not in affected:
        return False
    return not output.reasons(dataset_id, lot)


def _before(key: Work, job: LotJobRow, outputs: LotOutputs) -> set[Work]:
    lot = key[1]
    makers = (outputs.get((dataset_id, lot)) for dataset_id in job.input_ids)
    return {(output.job_id, lot) for output in makers if output is not None} - {key}
