"""The tables of locks in a database, and their invariants."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from penstock.catalog import rows
from penstock.catalog.rows import Origin
from penstock.db import Transaction
from penstock.locks.rows import (
    EXTERNAL_JOB,
    LogRow,
    LotHoldRow,
    LotJobRow,
    ReasonsRow,
    StatusRow,
    WorkRow,
)
from penstock.schema.catalog import DatasetRole
from penstock.states import RUN, RunState
from tests.simulation.lock_model import OUTSIDE, QUALITY, UNKNOWN, Model, Row, Work

SHAPES: dict[str, Any] = {
    "lot_job": LotJobRow,
    "lot_hold": LotHoldRow,
    "lot_status": StatusRow,
    "lot_reason": ReasonsRow,
    "lot_work": WorkRow,
    "lot_log": LogRow,
    "run": rows.RunRow,
    "run_dataset": rows.RunDatasetRow,
    "version": rows.VersionRow,
    "dataset": rows.DatasetRow,
    "job": rows.JobRow,
}


class LockTables:
    """All rows of locks and of the catalog below them. Two are equal if every row is."""

    def __init__(self, tx: Transaction) -> None:
        self.rows = {name: tx.rows(shape, f"every_{name}") for name, shape in SHAPES.items()}
        self.work: list[WorkRow] = self.rows["lot_work"]
        self.status: list[StatusRow] = self.rows["lot_status"]
        self.reasons: list[ReasonsRow] = self.rows["lot_reason"]
        self.log: list[LogRow] = self.rows["lot_log"]
        self.runs: dict[str, rows.RunRow] = {row.id: row for row in self.rows["run"]}
        self.versions: dict[str, rows.VersionRow] = {row.id: row for row in self.rows["version"]}
        self.datasets: dict[str, rows.DatasetRow] = {row.id: row for row in self.rows["dataset"]}
        self.io: list[rows.RunDatasetRow] = self.rows["run_dataset"]
        self.names = {row.id: row.name for row in (*self.rows["dataset"], *self.rows["job"])}
        self.names[EXTERNAL_JOB] = OUTSIDE

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LockTables) and self._sorted() == other._sorted()

    __hash__ = None  # type: ignore[assignment]

    def _sorted(self) -> dict[str, list[Any]]:
        return {name: sorted(rows, key=repr) for name, rows in self.rows.items()}

    def pins(self) -> dict[tuple[str, str], str]:
        """Return the version of each dataset that each run reads."""
        return {
            (r.run_id, r.dataset_id): r.version_id for r in self.io if r.role == DatasetRole.INPUT
        }


def broken_promises(tables: LockTables) -> Iterator[str]:
    """Return the broken invariants, without comparison to a model."""
    live = {row.run_id: row for row in tables.work if row.state == "RUNNING"}
    yield from _one_writer(tables, live)
    for row in live.values():
        run = tables.runs.get(row.run_id or "")
        if run is None or run.state != RunState.RUNNING or run.job_id != row.job_id:
            yield f"{row} is RUNNING, its run is {run}"
    for run in tables.runs.values():
        if run.state == RunState.RUNNING and run.id not in live:
            yield f"{run} is RUNNING, but no claim is"
    for dataset in tables.datasets.values():
        yield from _current(tables, dataset)
    with_reason = {(row.dataset_id, row.lot) for row in tables.reasons}
    for status in tables.status:
        is_there = (status.dataset_id, status.lot) in with_reason
        waits = bool(status.held_from) or (status.status == "HOLD" and status.run_id is None)
        if status.role == DatasetRole.OUTPUT and is_there != waits:
            yield f"{status} is held for {'something' if is_there else 'nothing'}"


def _one_writer(tables: LockTables, live: dict[str | None, WorkRow]) -> Iterator[str]:
    """Each job's lot and each dataset's lot has one writer. Rows in RUNNING have live claims."""
    outputs = Counter((r.dataset_id, r.lot) for r in tables.status if r.role == DatasetRole.OUTPUT)
    yield from (f"two rows for the output {key}" for key, many in outputs.items() if many > 1)
    running = {
        (row.role, row.dataset_id, row.lot, row.job_id, row.run_id)
        for row in tables.status
        if row.status == "RUNNING"
    }
    for key in running:
        claim = live.get(key[-1])
        if claim is None or (claim.lot, claim.job_id) != key[2:4]:
            yield f"a row in RUNNING that no claim has: {key}"
    for run_id, dataset in tables.pins():
        row = live.get(run_id)
        if row is not None and ("INPUT", dataset, row.lot, row.job_id, run_id) not in running:
            yield f"no row in RUNNING for what {row} reads: {dataset}"


def _current(tables: LockTables, dataset: rows.DatasetRow) -> Iterator[str]:
    """The current version was completed or declared."""
    if dataset.current_version_id is None:
        return
    version = tables.versions.get(dataset.current_version_id)
    if version is None:
        yield f"{dataset.name} has a current version that is not there"
    elif version.origin == Origin.RUN:
        run = tables.runs.get(version.run_id or "")
        if run is None or run.state != RunState.COMPLETED:
            yield f"{dataset.name} has for current {version} of {run}"
    elif version.run_id is not None:
        yield f"{version} was declared, and has a run"


class Memory:
    """Values that must never change once they were seen."""

    def __init__(self) -> None:
        self._pins: dict[tuple[str, str], str] = {}
        self._ended: dict[str, rows.RunRow] = {}
        self._versions: dict[str, rows.VersionRow] = {}
        self._tokens: dict[tuple[str, str], int] = {}
        self._log: list[LogRow] = []

    def changed(self, tables: LockTables) -> Iterator[str]:
        """Return the values that have changed, then record the new ones."""
        pins = tables.pins()
        ended = {key: run for key, run in tables.runs.items() if run.state in RUN.terminal}
        settled = {
            key: version
            for key, version in tables.versions.items()
            if version.run_id is None or version.run_id in ended
        }
        tokens = {(row.job_id, row.lot): row.token for row in tables.work}
        yield from _differences("input version", self._pins, pins)
        yield from _differences("ended run", self._ended, ended)
        yield from _differences("version", self._versions, settled)
        for key, token in self._tokens.items():
            if tokens.get(key, 0) < token:
                yield f"the token of {key} was {token} and is {tokens.get(key)}"
        if tables.log[: len(self._log)] != self._log:
            yield "the log was rewritten"
        self._pins, self._ended, self._versions = pins, ended, settled
        self._tokens, self._log = tokens, tables.log

    def has_version(self, version_id: str | None) -> bool:
        """Return whether this version existed at the last look."""
        return version_id in self._versions


def _differences(what: str, before: dict[Any, Any], after: dict[Any, Any]) -> Iterator[str]:
    for key, value in before.items():
        if after.get(key) != value:
            yield f"{what} {key} was {value} and is {after.get(key)}"


def disagreements(tables: LockTables, model: Model, memory: Memory) -> Iterator[str]:
    """Return the differences between database and model. The model copies unknown values."""
    _learn(tables, model)
    names = tables.names
    rows_seen, used = {}, {}
    for row in tables.status:
        row_of_lot = Row(row.status, names[row.job_id], row.version_id, row.held_from)
        if row.role == DatasetRole.OUTPUT:
            key = names[row.dataset_id], row.lot
            rows_seen[key] = row_of_lot
            model_row = model.made.get(key)
            if model_row is not None and model_row.version == UNKNOWN:
                model_row.version = row.version_id
                if row.version_id is None or memory.has_version(row.version_id):
                    yield f"{key} has no version of its own: {row}"
        else:
            used[names[row.dataset_id], names[row.job_id], row.lot] = row_of_lot
    yield from _differences("model's output", dict(model.made), rows_seen)
    yield from _differences("output", rows_seen, dict(model.made))
    yield from _differences("model's input", dict(model.used), used)
    yield from _differences("input", used, dict(model.used))
    quality = {EXTERNAL_JOB: QUALITY}
    reasons = {
        (names[row.dataset_id], row.lot): {quality.get(r) or names[r] for r in row.reasons}
        for row in tables.reasons
    }
    yield from _differences("model's reasons", dict(model.reasons), reasons)
    yield from _differences("reasons", reasons, dict(model.reasons))
    yield from _work(tables, model)
    runs = {key: str(run.state) for key, run in tables.runs.items()}
    yield from _differences("model's run", dict(model.runs), runs)
    yield from _differences("run", runs, dict(model.runs))
    current = {row.name: row.current_version_id for row in tables.datasets.values()}
    for name, published in model.current.items():
        if published.version not in (UNKNOWN, current[name]):
            yield f"{published.version} was published last of {name}, current is {current[name]}"


def _learn(tables: LockTables, model: Model) -> None:
    """Copy the lots that each job has seen. They matter only where there is work."""
    rows = {(tables.names[row.job_id], row.lot): row for row in tables.work}
    for key, row in rows.items():
        model.work.setdefault(key, Work(rank=row.rank))
    for key in list(model.work):
        if key not in rows and model.states(*key) == {"WAITING"}:
            del model.work[key]


def _work(tables: LockTables, model: Model) -> Iterator[str]:
    rows = {(tables.names[row.job_id], row.lot): row for row in tables.work}
    yield from (f"no work row for {key}" for key in model.work.keys() - rows.keys())
    for key, row in rows.items():
        work, states = model.work[key], model.states(*key)
        if row.state not in states:
            yield f"{key} is {row.state}, not {states}"
        if (row.rank, row.tries, row.token) != (work.rank, work.tries, work.token):
            yield f"{key} is {row}, not {work}"
        claim = model.claims.get(row.run_id or "")
        if claim is not None and row.lease_until != claim.lease_until:
            yield f"the lease of {key} holds until {row.lease_until}, not {claim.lease_until}"
