"""Commands that declare, tag and delete jobs."""

from typing import ClassVar

from penstock import ids
from penstock.catalog.commands.lookup import (
    Write,
    dataset_row,
    job_row,
    namespace_row,
    record,
    run_row,
)
from penstock.catalog.commands.runs import read_declared, write_declared
from penstock.catalog.entities import job_versions, jobs, names, runs
from penstock.catalog.events.facets import event_stamp
from penstock.catalog.events.known_facets import DatasetName
from penstock.catalog.rows import JobRow, RunRow, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import Conflict
from penstock.states import RunState


class PutJob(Write, frozen=True):
    """Declare a job; with a run id, the inputs and outputs of that run."""

    namespace: str
    name: str
    type: str
    inputs: tuple[DatasetName, ...]
    outputs: tuple[DatasetName, ...]
    location: str | None
    description: str | None
    run_id: str | None
    tags: tuple[str, ...]
    within: str | None = None  # the namespace of a key for one namespace

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Write the job and its version."""
        namespace_row(uow, self.namespace)
        named = {
            name: dataset_row(uow, name.namespace, name.name, visible=True)
            for name in (*self.inputs, *self.outputs)
        }
        run = run_row(uow, self.run_id) if self.run_id is not None else None
        job_id = ids.job_id(self.namespace, self.name)
        if run is not None and run.job_id != job_id:
            raise Conflict(f"run {run.id} belongs to another job than {self.namespace}/{self.name}")
        former = uow.jobs.get(job_id)
        if former is not None:
            now = jobs.next_change(former, now)
        else:
            former = jobs.new_job(job_id, self.namespace, self.name, now)
        job = self._stated(uow, former, now)
        names.show_namespace(uow, job.namespace)
        uow.jobs.put(job.id, job)
        inputs, outputs = (
            tuple(sorted({DatasetName(named[n].namespace, named[n].name) for n in side}))
            for side in (self.inputs, self.outputs)
        )
        version_id = job_versions.declare_version(uow, job, inputs, outputs, job.location, now)
        if run is not None:
            self._tell_of_run(uow, job_versions.give_version(uow, run, version_id), now)

    def _tell_of_run(self, uow: UnitOfWork, run: RunRow, now: Micros) -> None:
        """Record declared inputs: of a running run now, of an ended run as if reported before."""
        if run.started_at is not None:
            read_declared(uow, run.id, now)
        if run.ended_at is not None:
            if run.state == RunState.COMPLETED:
                write_declared(uow, run.id, run.ended_at, self.within)
            runs.settle(uow, run, run)

    def _stated(self, uow: UnitOfWork, job: JobRow, now: Micros) -> JobRow:
        stamp = event_stamp(now, "")
        job = replace(
            job,
            type=self.type,
            type_stamp=stamp,
            location=self.location if self.location is not None else job.location,
            location_stamp=stamp,
            description=self.description if self.description is not None else job.description,
            description_stamp=stamp,
            hidden=0,
            updated_at=max(now, job.updated_at),
        )
        return jobs.tag_job(uow, job, self.tags) if self.tags else job


class DeleteJob(Write, frozen=True):
    """Hide a job; its runs and lineage stay."""

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    namespace: str
    name: str
    who: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        job = job_row(uow, self.namespace, self.name)
        at = jobs.next_change(job, now)
        uow.jobs.put(job.id, replace(job, hidden=1, hidden_at=at, updated_at=at))
        record(uow, now, self.who, "job delete", f"job:{self.namespace}:{self.name}")


class RestoreJob(Write, frozen=True):
    """Show a deleted job again."""

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    namespace: str
    name: str
    who: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        job = job_row(uow, self.namespace, self.name)
        at = jobs.next_change(job, now)
        uow.jobs.put(job.id, replace(job, hidden=0, hidden_at=at, updated_at=at))
        names.show_namespace(uow, job.namespace)
        record(uow, now, self.who, "job restore", f"job:{self.namespace}:{self.name}")


class TagJob(Write, frozen=True):
    """Add a tag to a job."""

    namespace: str
    name: str
    tag: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        job = jobs.tag_job(uow, job_row(uow, self.namespace, self.name, visible=True), [self.tag])
        uow.jobs.put(job.id, replace(job, updated_at=max(now, job.updated_at)))


class UntagJob(Write, frozen=True):
    """Remove a tag from a job."""

    namespace: str
    name: str
    tag: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        job = jobs.untag_job(job_row(uow, self.namespace, self.name, visible=True), self.tag)
        uow.jobs.put(job.id, replace(job, updated_at=max(now, job.updated_at)))
