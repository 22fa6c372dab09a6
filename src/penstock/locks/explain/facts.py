"""The facts about a lot and the jobs around it, loaded as values."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from penstock.catalog.rows import replace
from penstock.clock import Micros, say_time
from penstock.locks.explain import advice
from penstock.locks.hold_reasons import QUALITY
from penstock.locks.lock_rules import readable, writable
from penstock.locks.rows import EXTERNAL_JOB, LINEAGE, GateOwnerRow, LotJobRow, WorkRow
from penstock.lots.rows import LandingRow
from penstock.schema.catalog import EntityId
from penstock.schema.lots import Status
from penstock.states import ManifestState, WorkState

_WAITS = (None, WorkState.WAITING, WorkState.HELD)


class LotMaker(Struct, frozen=True):
    """An OUTPUT row: the job that makes, or made, a lot of a dataset, and its progress."""

    job_id: str
    status: Status
    held_from: str
    version_id: str | None
    since: Micros
    namespace: str | None
    name: str | None  # empty if the viewer may not see the job
    tries_max: int | None
    owner: str | None
    tries: int | None
    lease_until: Micros | None
    error: str | None
    run_id: str | None
    manifest: str | None  # the state of the manifest, for a lot that was removed

    @property
    def is_removed(self) -> bool:
        """Whether the data of the lot was removed."""
        return self.manifest == ManifestState.REMOVED

    @property
    def is_readable(self) -> bool:
        """Whether the lot exists and may be read."""
        return readable(Status(self.status))

    @property
    def is_writable(self) -> bool:
        """Whether the lot may be made."""
        return writable(Status(self.status))

    @property
    def is_held(self) -> bool:
        """Whether the lot is held."""
        return self.status == Status.HOLD

    @property
    def is_held_for_itself(self) -> bool:
        """Whether a person, failed checks or a held lot upstream hold it, not a spent job."""
        return self.is_held and bool(self.held_from)

    @property
    def is_spent(self) -> bool:
        """Whether it is held because its job is out of tries with it."""
        return self.is_held and not self.held_from and self.job_id != EXTERNAL_JOB

    @property
    def job(self) -> str:
        """The maker, in words."""
        return _job(self.namespace, self.name) if self.name is not None else "outside"

    def redact(self, only: str | None) -> "LotMaker":
        """Hide the maker if it is a job outside of this namespace."""
        if only is None or self.namespace in (None, only):
            return self
        return replace(self, namespace=None, name="", owner=None, error=None, run_id=None)


class LotWriter(Struct, frozen=True):
    """A job that is wired to make lots of a dataset."""

    job_id: str
    namespace: str | None
    name: str  # empty if the viewer may not see the job
    is_deleted: bool

    @property
    def job(self) -> str:
        """The job, in words."""
        return _job(self.namespace, self.name)

    def redact(self, only: str | None) -> "LotWriter":
        """Hide the name of a job outside of this namespace."""
        return self if only in (None, self.namespace) else replace(self, namespace=None, name="")


def _job(namespace: str | None, name: str) -> str:
    return f"job {namespace}/{name}" if name else "a job in a namespace that is not shown"


class LotReader(Struct, frozen=True):
    """An INPUT row of the job: its progress with reading the lot."""

    status: Status
    version_id: str | None


class WholeHold(Struct, frozen=True):
    """The hold of a whole dataset or job."""

    kind: str
    namespace: str
    name: str
    source_namespace: str | None  # the dataset upstream whose hold this one follows
    source_name: str | None
    who: str
    why: str
    since: Micros

    @property
    def key(self) -> str:
        """The name of the dataset or job in commands."""
        return f"{self.namespace}/{self.name}"

    @property
    def source(self) -> EntityId | None:
        """The dataset upstream whose hold this one follows."""
        if self.source_namespace is None or self.source_name is None:
            return None
        return EntityId(self.source_namespace, self.source_name)

    @property
    def command(self) -> str | None:
        """The command that ends the hold."""
        if self.kind == "DATASET":
            return advice.release_dataset(self.key)
        if self.kind == LINEAGE:
            source = self.source
            return advice.release_dataset(f"{source.namespace}/{source.name}") if source else None
        return advice.release_job(self.key)

    @property
    def sentence(self) -> str:
        """The hold in words, without a full stop."""
        why = f": {self.why}" if self.why else ""
        what = "dataset" if self.kind == "DATASET" else "job"
        return f"{what} {self.key} is held by {self.who!r} since {say_time(self.since)}{why}"


class HoldEntry(Struct, frozen=True):
    """The log entry of a hold."""

    action: str
    who: str
    why: str
    at: Micros


class LotContext(Struct, frozen=True):
    """The facts about one lot in the datasets around some jobs, by their ids."""

    lot: str
    names: Mapping[str, EntityId]
    makers: Mapping[str, LotMaker]
    writers: Mapping[str, Sequence[LotWriter]]
    gates: Mapping[str, WholeHold]
    stops: Mapping[str, HoldEntry]
    clocks: Mapping[str, Micros]  # clocks in use, with the end of their next interval
    landings: Mapping[str, LandingRow]  # datasets without a maker whose objects arrive
    held_for: Mapping[str, Sequence[str]]  # the reasons of holds, as ids

    def dataset(self, dataset_id: str) -> str:
        """The name of a dataset."""
        name = self.names[dataset_id]
        return f"{name.namespace}/{name.name}"

    def list_makers(self, dataset_id: str) -> list[LotWriter]:
        """List the jobs that can make lots of a dataset, the current maker first."""
        maker = self.makers.get(dataset_id)
        current_id = maker.job_id if maker is not None else None
        writers = [writer for writer in self.writers.get(dataset_id, ()) if not writer.is_deleted]
        return sorted(writers, key=lambda writer: writer.job_id != current_id)

    def find_release_command(self, dataset_id: str) -> str | None:
        """Return the command that ends the hold of a lot."""
        reasons = self.held_for.get(dataset_id, ())
        if QUALITY in reasons:
            return advice.accept_lot(self.dataset(dataset_id), self.lot)
        source = dataset_id if dataset_id in reasons else next(iter(reasons), dataset_id)
        return advice.release_lot(self.dataset(source), self.lot) if source in self.names else None

    def is_abandoned(self, dataset_id: str) -> bool:
        """Whether the job that began the lot no longer makes lots of the dataset."""
        maker = self.makers.get(dataset_id)
        if maker is None or maker.job_id == EXTERNAL_JOB:
            return False
        return maker.job_id not in [writer.job_id for writer in self.list_makers(dataset_id)]

    def list_awaited_jobs(self, dataset_id: str) -> list[str]:
        """List the jobs that must act before the lot exists or other jobs can make it.

        A held lot, or one that a spent job left behind, waits for a person instead.
        """
        maker = self.makers.get(dataset_id)
        job_ids = [writer.job_id for writer in self.list_makers(dataset_id)]
        if maker is None:
            return job_ids
        if maker.status == Status.RUNNING:
            return [maker.job_id]
        if maker.is_writable:  # the maker of a removed lot needs to be resubmitted first
            return [job_id for job_id in job_ids if not maker.is_removed or job_id != maker.job_id]
        return [maker.job_id] if maker.is_spent and maker.job_id in job_ids else []


class WorkFacts(Struct, frozen=True):
    """The facts about one job and one lot."""

    job: EntityId
    row: LotJobRow
    work: WorkRow | None
    readers: Mapping[str, LotReader]
    around: LotContext
    owners: Sequence[GateOwnerRow] = ()  # replays that have not let the lot pass yet

    @property
    def state(self) -> WorkState | None:
        """The state of the work; None if no input has a row of the lot."""
        if self.work is not None:
            return WorkState(self.work.state)
        met = any(dataset in self.around.makers for dataset in self.row.input_ids)
        return WorkState.WAITING if met else None

    @property
    def unreadable(self) -> list[str]:
        """The inputs of which the lot does not exist or may not be read."""
        makers = [(dataset, self.around.makers.get(dataset)) for dataset in self.row.input_ids]
        return [dataset for dataset, maker in makers if maker is None or not maker.is_readable]

    def leads_to(self, namespace: str | None, name: str | None) -> list[str]:
        """List the jobs that must act before a dataset no longer stops this job."""
        datasets = (*self.unreadable, *self.row.output_ids)
        named = [
            d for d in datasets if self.around.names[d] == EntityId(namespace or "", name or "")
        ]
        return [
            job
            for job in self.waits_for
            if any(job in self.around.list_awaited_jobs(d) for d in named)
        ]

    @property
    def waits_for(self) -> list[str]:
        """The jobs that must act before this one can."""
        if self.state not in _WAITS:
            return []
        job_ids = [
            job for dataset in self.unreadable for job in self.around.list_awaited_jobs(dataset)
        ]
        for dataset in self.row.output_ids:
            maker = self.around.makers.get(dataset)
            if maker is not None and not maker.is_writable and maker.job_id != self.row.job_id:
                job_ids += self.around.list_awaited_jobs(dataset)
        return list(dict.fromkeys(job_ids))

    @property
    def lot(self) -> str:
        """The id of the lot."""
        return self.around.lot
