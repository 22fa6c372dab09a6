"""Commands that create runs, report their states and receive events."""

from typing import ClassVar

from msgspec import Struct

from penstock import ids
from penstock.catalog.commands.lookup import Write, job_row, run_row
from penstock.catalog.entities import job_versions, jobs, runs
from penstock.catalog.entities.merging import merge_second_names
from penstock.catalog.events.apply import receive, with_known_job
from penstock.catalog.events.facets import event_stamp
from penstock.catalog.events.namespaced import WriteScope, may_write
from penstock.catalog.events.parse import Event
from penstock.catalog.rows import JobRow, RunRow, replace
from penstock.catalog.unit_of_work import RowKeys, UnitOfWork
from penstock.clock import Micros, after
from penstock.errors import Conflict, Invalid, NotFound
from penstock.schema.catalog import DatasetRole
from penstock.states import RUN, RunState


class CreateRun(Write, frozen=True):
    """Create a run of a job."""

    namespace: str
    job: str
    run_id: str | None
    nominal_start: Micros | None
    nominal_end: Micros | None
    args: str

    def execute(self, uow: UnitOfWork, now: Micros) -> str:
        """Write it in state NEW; repeating the command has no effect."""
        job = job_row(uow, self.namespace, self.job, visible=True)
        run_id = ids.run_id(self.run_id) if self.run_id is not None else ids.new_id()
        former = uow.runs.get(run_id)
        if former is not None:
            if former.job_id != job.id:
                raise Conflict(f"run {run_id} already belongs to another job; use a new id")
            return run_id
        external = self.run_id if self.run_id is not None and self.run_id != run_id else None
        run = replace(
            jobs.has_spoken(jobs.new_run(run_id, job.id, external, now)),
            job_version_id=job.current_version_id,
            nominal_start=self.nominal_start,
            nominal_end=self.nominal_end,
            args=self.args,
        )
        uow.runs.put(run_id, run)
        uow.jobs.put(job.id, replace(job, updated_at=max(now, job.updated_at)))
        jobs.count_run(uow, run)
        job_versions.note_beginning(uow, run.job_version_id, run.created_at)
        return run_id


class MarkRun(Write, frozen=True):
    """Report the state of a run."""

    run_id: str
    state: RunState
    at: Micros | None
    namespace: str | None = None
    job: str | None = None
    within: str | None = None  # the namespace of a key for one namespace

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Move the run, with its inputs and outputs."""
        if self.state == RunState.NEW:
            raise Invalid("a run cannot be marked NEW; it is NEW when it is created")
        before = run_row(uow, self.run_id)
        job = uow.jobs.get(before.job_id)
        assert job is not None, "a run always has its job"
        if self.job is not None and (job.namespace, job.name) != (self.namespace, self.job):
            raise NotFound(f"job {self.namespace}/{self.job} has no run {self.run_id!r}")
        RUN.check(RunState(before.state), self.state, before.id)
        at = self.at if self.at is not None else self._counts_at(uow, before, job, now)
        run = replace(
            jobs.has_spoken(runs.mark(before, self.state, at)),
            updated_at=max(now, before.updated_at),
        )
        uow.runs.put(run.id, run)
        job = replace(job, updated_at=max(now, job.updated_at))
        uow.jobs.put(job.id, jobs.follow_run(uow, job, run, before))
        if before.started_at is None:
            read_declared(uow, run.id, at)
        if run.state == RunState.COMPLETED and before.ended_at is None:
            write_declared(uow, run.id, at, self.within)
        settled = uow.runs.get(run.id)
        assert settled is not None, "it was put just now"
        runs.settle(uow, settled, before)

    def _counts_at(self, uow: UnitOfWork, run: RunRow, job: JobRow, now: Micros) -> Micros:
        """Return the time of a report without a time: after the creation of the run.

        An end counts after every earlier publication of the run's outputs.
        """
        at = max(now, run.created_at, run.started_at or 0)
        if self.state == RunState.RUNNING:
            return at
        version = uow.job_versions.get(run.job_version_id) if run.job_version_id else None
        outputs = {dataset for role, dataset in uow.io_of(run.id) if role == DatasetRole.OUTPUT}
        for name in job_versions.version_names(version.outputs) if version else ():
            outputs.add(ids.dataset_id(name.namespace, name.name))
        datasets = [row for row in map(uow.datasets.get, outputs) if row is not None]
        return after(at, job.version_at, *(row.published_at for row in datasets))


def read_declared(uow: UnitOfWork, run_id: str, at: Micros) -> None:
    """Pin the inputs that the job's version lists."""
    run = run_row(uow, run_id)
    version = uow.job_versions.get(run.job_version_id) if run.job_version_id else None
    for name in job_versions.version_names(version.inputs) if version else ():
        dataset_id = ids.dataset_id(name.namespace, name.name)
        runs.read_dataset(uow, run, dataset_id, None, event_stamp(at, ""), at)


def write_declared(uow: UnitOfWork, run_id: str, at: Micros, within: str | None) -> None:
    """Write the outputs that the job's version lists, if the run completed.

    A failed run wrote only what it reported. `within` is the namespace of a restricted key:
    elsewhere the versions are unconfirmed.
    """
    scope = WriteScope(within) if within is not None else None
    run = run_row(uow, run_id)
    version = uow.job_versions.get(run.job_version_id) if run.job_version_id else None
    for name in job_versions.version_names(version.outputs) if version else ():
        dataset = uow.datasets.get(ids.dataset_id(name.namespace, name.name))
        if dataset is not None:
            unconfirmed = not may_write(uow, scope, dataset.namespace)
            runs.write_dataset(uow, run, dataset, None, at, unconfirmed=unconfirmed)


class ReceiveEvent(Struct, frozen=True, gc=False):
    """Receive one OpenLineage event."""

    exclusive: ClassVar[bool] = False

    event: Event
    within: str | None = None  # the namespace of a key for one namespace

    def prefetch(self, keys: RowKeys) -> None:
        """Add everything that the event names."""
        event = self.event
        if event.job_id:
            keys.jobs.add(event.job_id)
            keys.namespaces.add(event.job_namespace)
        if event.run_id is not None:
            keys.runs.add(event.run_id)
        for mention in event.inputs:
            keys.datasets.add(mention.id)
        for mention in event.outputs:
            keys.datasets.add(mention.id)
        if event.dataset is not None:
            keys.datasets.add(event.dataset.id)

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        merge_second_names(uow, self.event)
        scope = WriteScope(self.within) if self.within is not None else None
        receive(uow, with_known_job(uow, self.event), now, scope=scope)
