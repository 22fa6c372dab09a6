"""Runs upstream of a run, and families of runs.

The versions that a run reads are pinned, so this graph is exact and never changes.
"""

from penstock.catalog.lineage.graph import DEPTH_DEFAULT, begin_walk
from penstock.catalog.lineage.nodes import find_run
from penstock.db import Transaction
from penstock.schema.catalog import EntityId
from penstock.schema.lineage import (
    FamilyRun,
    RunFamily,
    UpstreamInput,
    UpstreamJob,
    UpstreamRun,
    UpstreamRuns,
    UpstreamRunTimes,
)
from penstock.schema.shape import time_or_none
from penstock.states import RunState


def upstream_runs(tx: Transaction, run_id: str, depth: int = DEPTH_DEFAULT) -> UpstreamRuns:
    """Return a run and the runs upstream; a hop leads to a run that wrote an input."""
    begin_walk(tx, depth)
    frontier = [find_run(tx, run_id).id]
    inputs: dict[str, list[UpstreamInput]] = {}
    for _ in range(depth + 1):
        inputs.update((run, []) for run in frontier)
        made_by: set[str] = set()
        for run, *read in tx.fetch("run_inputs", ids=frontier):
            found = UpstreamInput(*read)
            inputs[run].append(found)
            if found.produced_by_run_id is not None:
                made_by.add(found.produced_by_run_id)
        frontier = sorted(made_by - inputs.keys())
        if not frontier:
            break
    rows = {row[0]: row for row in tx.fetch("runs_with_jobs", ids=list(inputs))}
    return UpstreamRuns(
        [
            UpstreamRun(
                UpstreamJob(namespace, name, job_version),
                UpstreamRunTimes(run, time_or_none(start), time_or_none(end), RunState(state)),
                sorted(inputs[run], key=lambda read: (read.namespace, read.name)),
            )
            for run, state, start, end, job_version, namespace, name in (
                rows[run] for run in inputs if run in rows
            )
        ]
    )


MEMBERS_MAX = 2000
DEPTH_MAX = 10


def family(tx: Transaction, run_id: str, *, only: str | None = None) -> RunFamily:
    """Return a run and its descendants; with `only`, those of jobs in that namespace."""
    rows = tx.fetch("run_family", id=find_run(tx, run_id).id, depth=DEPTH_MAX, most=MEMBERS_MAX + 1)
    runs = [
        FamilyRun(
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
    return RunFamily(runs, len(rows) > MEMBERS_MAX)
