"""The name that Marquez gives a child job: `PARENT.CHILD`, where a client reports `CHILD`.

A job with the longer name goes first. Only where there is none does the name mean the child.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from penstock.catalog.rows import JobRow
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.db import Transaction
from penstock.ids import job_id

DOTS_MAX = 32  # how many dots of a name are tried; a name has few


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
        """Whether Marquez calls it by this name."""
        return _is_called(name, self.name, self.parent, self.grandparent)


def child_names(name: str) -> Iterator[str]:
    """The names that a child may have whose parent's name is in front, the longest first."""
    _, *parts = name.split(".", DOTS_MAX)
    for first in range(len(parts)):
        child = ".".join(parts[first:])
        if child:
            yield child


def find_children(tx: Transaction, names: Iterable[tuple[str, str]]) -> dict[str, ChildJob]:
    """The jobs, by id, that any of these names may mean as a child's."""
    ids = {job_id(namespace, child) for namespace, name in names for child in child_names(name)}
    if not ids:
        return {}
    return {row.id: row for row in tx.rows(ChildJob, "child_jobs_by_ids", ids=sorted(ids))}


def child_of(children: dict[str, ChildJob], namespace: str, name: str) -> ChildJob | None:
    """The job among these that Marquez calls by this name."""
    for child in child_names(name):
        found = children.get(job_id(namespace, child))
        if found is not None and found.is_called(name):
            return found
    return None


def find_child(tx: Transaction, namespace: str, name: str) -> ChildJob | None:
    """The job that Marquez calls by this name, if no job has it for its own."""
    if "." not in name or tx.fetch_one("read_job_by_id", id=job_id(namespace, name)) is not None:
        return None
    return child_of(find_children(tx, [(namespace, name)]), namespace, name)


def known_child(uow: UnitOfWork, namespace: str, name: str) -> JobRow | None:
    """The same for a write: it asks the database only about a name that no job has."""
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
