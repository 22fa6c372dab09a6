"""The runs upstream of a run: those that made what it read, those that made what they read, …

What a run read was pinned when it read it, so this is exact and never changes.
"""

from collections.abc import Sequence

from penstock.catalog.graph import DEPTH_DEFAULT, begin_walk
from penstock.catalog.nodes import find_run
from penstock.catalog.shapes import Shape, time_or_none
from penstock.db import Transaction
from penstock.states import RunState


class UpstreamJob(Shape, frozen=True):
    """The job of a run, in the version it had then."""

    namespace: str
    name: str
    version: str | None


class UpstreamRunTimes(Shape, frozen=True):
    """When a run went and how it ended."""

    id: str
    start: str | None
    end: str | None
    status: RunState


class UpstreamInput(Shape, frozen=True):
    """A version that a run read; one that no run made has no `producedByRunId`."""

    namespace: str
    name: str
    version: str
    produced_by_run_id: str | None


class UpstreamRun(Shape, frozen=True):
    """A run and what it read."""

    job: UpstreamJob
    run: UpstreamRunTimes
    inputs: Sequence[UpstreamInput]


class UpstreamRuns(Shape, frozen=True):
    """Runs, the nearest first."""

    runs: Sequence[UpstreamRun]


def upstream_runs(tx: Transaction, run_id: str, depth: int = DEPTH_DEFAULT) -> UpstreamRuns:
    """A run and those before it; a hop is from a run to one that made what it read."""
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
