"""Lookup of the rows that commands name."""

from typing import ClassVar

import msgspec
from msgspec import Struct

from penstock import ids
from penstock.access import audit
from penstock.catalog.entities import datasets
from penstock.catalog.events.schema import Field
from penstock.catalog.rows import DatasetRow, JobRow, NamespaceRow, RunRow
from penstock.catalog.unit_of_work import RowKeys, UnitOfWork
from penstock.clock import Micros
from penstock.errors import NotFound


class Write(Struct, frozen=True):
    """A command that loads rows on demand."""

    exclusive: ClassVar[bool] = False

    def prefetch(self, keys: RowKeys) -> None:
        """Add no keys: such commands are rare."""


def namespace_row(uow: UnitOfWork, name: str) -> NamespaceRow:
    """Return the namespace, or raise NotFound."""
    row = uow.namespaces.get(name)
    if row is None:
        raise NotFound(f"there is no namespace {name!r}; create it with PUT /namespaces/{{name}}")
    return row


def dataset_row(uow: UnitOfWork, namespace: str, name: str, *, visible: bool = False) -> DatasetRow:
    """Return the dataset with this name, or raise NotFound."""
    row = uow.datasets.get(uow.dataset_id(ids.dataset_id(namespace, name)))
    if row is None or (visible and row.hidden):
        raise NotFound(f"there is no dataset {name!r} in namespace {namespace!r}")
    return row


def job_row(uow: UnitOfWork, namespace: str, name: str, *, visible: bool = False) -> JobRow:
    """Return the job, or raise NotFound."""
    row = uow.jobs.get(ids.job_id(namespace, name))
    if row is None or (visible and row.hidden):
        raise NotFound(f"there is no job {name!r} in namespace {namespace!r}")
    return row


def run_row(uow: UnitOfWork, run_id: str) -> RunRow:
    """Return the run, or raise NotFound."""
    row = uow.runs.get(ids.run_id(run_id))
    if row is None:
        raise NotFound(f"there is no run {run_id!r}")
    return row


def check_field(uow: UnitOfWork, dataset: DatasetRow, field: str) -> None:
    """Refuse a field that the dataset does not have."""
    fields = msgspec.json.decode(datasets.shown_schema(uow, dataset)[0], type=list[Field])
    if all(held.name != field for held in fields):
        raise NotFound(f"dataset {dataset.name!r} has no field {field!r}")


def record(
    uow: UnitOfWork, now: Micros, who: str, action: str, target: str, detail: str = ""
) -> None:
    """Record an administrator's action in the audit log."""
    audit.append(uow.tx, at=now, who=who, action=action, target=target, detail=detail)
