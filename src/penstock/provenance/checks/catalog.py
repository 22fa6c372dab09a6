"""Invariants of the catalog."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from penstock import ids
from penstock.catalog.entities.job_versions import version_names
from penstock.catalog.rows import Row
from penstock.catalog.unit_of_work import IoKey
from penstock.db import Transaction
from penstock.provenance.checks.invariant import NO_ID, PAGE, Grounds, Invariant, by_statement
from penstock.schema.catalog import DatasetRole


class _Shape(Row, frozen=True):
    job_id: str
    namespace: str
    name: str
    inputs: str
    outputs: str

    @property
    def edges(self) -> set[IoKey]:
        """The datasets that the job reads and writes."""
        sides = (DatasetRole.INPUT, self.inputs), (DatasetRole.OUTPUT, self.outputs)
        return {
            (role, ids.dataset_id(each.namespace, each.name))
            for role, text in sides
            for each in version_names(text)
        }


def current_edges_agree(grounds: Grounds) -> Iterator[str]:
    """Yield current edges that belong neither to a job's version nor to an open run."""
    after = NO_ID
    with grounds.database.read() as tx:
        while page := tx.rows(_Shape, "shapes_of_jobs_from", after=after, most=PAGE):
            after = page[-1].job_id
            current: dict[str, set[IoKey]] = defaultdict(set)
            edges = tx.fetch("current_edges_of_jobs", ids=[job.job_id for job in page])
            for job_id, role, dataset_id, _ in edges:
                current[job_id].add((role, dataset_id))
            for job in page:
                yield from _edges_of(tx, job, current[job.job_id])


def _edges_of(tx: Transaction, job: _Shape, current: set[IoKey]) -> Iterator[str]:
    wanted, subject = job.edges, f"job {job.namespace}/{job.name}"
    for role, dataset_id in sorted(wanted - current):
        yield f"{subject} has dataset {dataset_id} as {role}, and its edge is not current"
    if odd := current - wanted:
        going = tx.fetch("going_edges_of_job", job_id=job.job_id)
        for role, dataset_id in sorted(odd - {(role, dataset) for _, role, dataset in going}):
            yield f"{subject} shows dataset {dataset_id} as {role} without a source"


INVARIANTS: Final[tuple[Invariant, ...]] = (
    by_statement(
        "current-versions",
        "a dataset's current version is of a completed run, or was declared",
        "broken_current_versions",
        "dataset {}/{} has for its current version {}, which is {}",
    ),
    by_statement(
        "newest-versions",
        "a dataset's current version is the one published last",
        "broken_newest_versions",
        "dataset {}/{} has for its current version {}, and another was published later",
    ),
    by_statement(
        "pinned-versions",
        "versions that runs read and wrote exist, and a run wrote its own",
        "broken_pins",
        "run {} has as {} of dataset {} version {}, which does not exist or is not its own",
    ),
    by_statement(
        "run-counts",
        "the counts of runs and versions of jobs are right",
        "broken_run_counts",
        "job {}/{} counts {} runs and {} versions, which is wrong",
    ),
    by_statement(
        "version-counts",
        "the counts and latest versions of datasets are right",
        "broken_version_counts",
        "dataset {}/{} counts {} versions, the latest V{}, which is wrong",
    ),
    by_statement(
        "latest-runs",
        "jobs show their newest run and its state",
        "broken_latest_runs",
        "job {}/{} shows run {} as its newest, {}, which is wrong",
    ),
    by_statement(
        "job-versions",
        "the job version of a run exists, and is not newer than the run",
        "broken_job_versions",
        "run {} of job {}/{} has version {}, which does not exist or is newer",
    ),
    by_statement(
        "tallies",
        "the counts of visible datasets and jobs of namespaces are right",
        "broken_tallies",
        "{} of namespace {} in state {!r} are counted as {}, but there are {}",
    ),
    by_statement(
        "event-counts",
        "the hourly counts of events are right",
        "broken_event_counts",
        "in the hour {}, events {} are counted as {}, but there are {}",
    ),
    by_statement(
        "search",
        "search finds every dataset and job with its current fields",
        "broken_search_docs",
        "{} {}/{} is found with old fields, or was deleted",
    ),
    by_statement(
        "edges",
        "jobs show the datasets that their runs read and wrote",
        "broken_job_edges",
        "job {0}/{1} does not show dataset {3} as {2}, as run {4} has it",
    ),
    Invariant(
        "current-edges",
        "exactly the edges of jobs' current versions and of open runs are current",
        current_edges_agree,
    ),
)
