"""Names of child jobs: Marquez stores `PARENT.CHILD` where a client reports `CHILD`.

A job with the longer name takes precedence. Otherwise the name means the child.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from penstock.catalog.rows import JobRow
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.db import Transaction
from penstock.ids import job_id

DOTS_MAX = 32  # dots of a name to try; names have few


class ChildJob(Struct, frozen=True):
    """A job that has a parent."""

    id: str
    namespace: str
    name: str
    hidden: int
    created_at: int
    parent: str
    grandparent: str | None

    def is_called(self, name: str) -> bool:
        """Return whether Marquez calls the job by this name."""
        return _is_called(name, self.name, self.parent, self.grandparent)


def child_names(name: str) -> Iterator[str]:
    """Return the possible names of a child, longest first."""
    _, *parts = name.split(".", DOTS_MAX)
    for first in range(len(parts)):
        child = ".".join(parts[first:])
        if child:
            yield child


def find_children(tx: Transaction, names: Iterable[tuple[str, str]]) -> dict[str, ChildJob]:
    """Return the jobs, by id, that these names may mean as children."""
    ids = {job_id(namespace, child) for namespace, name in names for child in child_names(name)}
    if not ids:
        return {}
    return {row.id: row for row in tx.rows(ChildJob, "child_jobs_by_ids", ids=sorted(ids))}


def child_of(children: dict[str, ChildJob], namespace: str, name: str) -> ChildJob | None:
    """Return the job among these that Marquez calls by this name."""
    for child in child_names(name):
        job = children.get(job_id(namespace, child))
        if job is not None and job.is_called(name):
            return job
    return None


def find_child(tx: Transaction, namespace: str, name: str) -> ChildJob | None:
    """Return the job that Marquez calls by this name, unless a job has the name itself."""
    if "." not in name or tx.fetch_one("read_job_by_id", id=job_id(namespace, name)) is not None:
        return None
    return child_of(find_children(tx, [(namespace, name)]), namespace, name)


def known_child(uow: UnitOfWork, namespace: str, name: str) -> JobRow | None:
    """Return the child job for a write; query the database only if no job has the name."""
    if "." not in name or uow.jobs.get(job_id(namespace, name)) is not None:
        return None
    candidates = [job_id(namespace, child) for child in child_names(name)]
    uow.jobs.prefetch(candidates)
    for candidate in candidates:
        job = uow.jobs.get(candidate)
        parent = uow.jobs.get(job.parent_job_id) if job and job.parent_job_id else None
        if job is None or parent is None:
            continue
        above = uow.jobs.get(parent.parent_job_id) if parent.parent_job_id else None
        if _is_called(name, job.name, parent.name, above.name if above else None):
            return job
    return None


def _is_called(name: str, child: str, parent: str, grandparent: str | None) -> bool:
    prefix = name.removesuffix(f".{child}")
    return prefix != name and prefix in (parent, f"{grandparent}.{parent}")
