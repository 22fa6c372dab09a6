"""What is known of a lot around a job, as values to reason about."""

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
    """An OUTPUT row: who makes, or made, the lot of a dataset, and how far that is."""

    job_id: str
    status: Status
    held_from: str
    version_id: str | None
    since: Micros
    namespace: str | None
    name: str | None  # empty where it is not to be told
    tries_max: int | None
    owner: str | None
    tries: int | None
    lease_until: Micros | None
    error: str | None
    run_id: str | None
    manifest: str | None  # its state, of a lot that cannot be read though nobody failed with it

    @property
    def is_removed(self) -> bool:
        """Whether it was there, and its data was cleaned away."""
        return self.manifest == ManifestState.REMOVED

    @property
    def is_readable(self) -> bool:
        """Whether the lot is there and may be read."""
        return readable(Status(self.status))

    @property
    def is_writable(self) -> bool:
        """Whether the lot may be made."""
        return writable(Status(self.status))

    @property
    def is_held(self) -> bool:
        """Whether the lot waits for a person."""
        return self.status == Status.HOLD

    @property
    def is_held_for_itself(self) -> bool:
        """Whether a person, checks or a lot upstream hold it, and not its job's last failure."""
        return self.is_held and bool(self.held_from)

    @property
    def is_spent(self) -> bool:
        """Whether its job is out of tries with it; who holds it by hand leaves what it was."""
        return self.is_held and not self.held_from and self.job_id != EXTERNAL_JOB

    @property
    def job(self) -> str:
        """Who makes it, in words."""
        return _job(self.namespace, self.name) if self.name is not None else "outside"

    def redact(self, only: str | None) -> "LotMaker":
        """How far it is, without who makes it, if that is a job outside of this namespace."""
        if only is None or self.namespace in (None, only):
            return self
        return replace(self, namespace=None, name="", owner=None, error=None, run_id=None)


class LotWriter(Struct, frozen=True):
    """A job that is wired to make lots of a dataset."""

    job_id: str
    namespace: str | None
    name: str  # empty where it is not to be told
    is_deleted: bool

    @property
    def job(self) -> str:
        """Which it is, in words."""
        return _job(self.namespace, self.name)

    def redact(self, only: str | None) -> "LotWriter":
        """The same without its name, if it is outside of this namespace."""
        return self if only in (None, self.namespace) else replace(self, namespace=None, name="")


def _job(namespace: str | None, name: str) -> str:
    return f"job {namespace}/{name}" if name else "a job in a namespace that is not shown"


class LotReader(Struct, frozen=True):
    """An INPUT row of the job: how far it is with reading the lot."""

    status: Status
    version_id: str | None


class WholeHold(Struct, frozen=True):
    """A dataset or a job that is held whole."""

    kind: str
    namespace: str
    name: str
    source_namespace: str | None  # of the dataset whose hold this one follows
    source_name: str | None
    who: str
    why: str
    since: Micros

    @property
    def key(self) -> str:
        """What is held, as commands name it."""
        return f"{self.namespace}/{self.name}"

    @property
    def source(self) -> EntityId | None:
        """The dataset whose hold this one follows."""
        if self.source_namespace is None or self.source_name is None:
            return None
        return EntityId(self.source_namespace, self.source_name)

    @property
    def command(self) -> str | None:
        """The command that ends the hold."""
        if self.kind == "DATASET":
            return advice.unhold_dataset(self.key)
        if self.kind == LINEAGE:
            source = self.source
            return advice.unhold_dataset(f"{source.namespace}/{source.name}") if source else None
        return advice.unhold_job(self.key)

    @property
    def sentence(self) -> str:
        """What is held, by whom and why, without a full stop."""
        why = f": {self.why}" if self.why else ""
        what = "dataset" if self.kind == "DATASET" else "job"
        return f"{what} {self.key} is held by {self.who!r} since {say_time(self.since)}{why}"


class HoldEntry(Struct, frozen=True):
    """The transition that put a lot on hold."""

    action: str
    who: str
    why: str
    at: Micros


class LotContext(Struct, frozen=True):
    """What is known of one lot in the datasets around some jobs; they go by their ids."""

    lot: str
    names: Mapping[str, EntityId]
    makers: Mapping[str, LotMaker]
    writers: Mapping[str, Sequence[LotWriter]]
    gates: Mapping[str, WholeHold]
    stops: Mapping[str, HoldEntry]
    clocks: Mapping[str, Micros]  # those in use, and when the next of their intervals ends
    landings: Mapping[str, LandingRow]  # of datasets that no job makes, whose objects arrive
    held_for: Mapping[str, Sequence[str]]  # of datasets whose lot is held: the reasons, as ids

    def dataset(self, dataset_id: str) -> str:
        """A dataset in words."""
        name = self.names[dataset_id]
        return f"{name.namespace}/{name.name}"

    def list_makers(self, dataset_id: str) -> list[LotWriter]:
        """The jobs that can make lots of a dataset, who has begun with this one first."""
        maker = self.makers.get(dataset_id)
        begun = maker.job_id if maker is not None else None
        able = [writer for writer in self.writers.get(dataset_id, ()) if not writer.is_deleted]
        return sorted(able, key=lambda writer: writer.job_id != begun)

    def find_release_command(self, dataset_id: str) -> str | None:
        """The command that ends the hold of a lot."""
        reasons = self.held_for.get(dataset_id, ())
        if QUALITY in reasons:
            return advice.accept_lot(self.dataset(dataset_id), self.lot)
        source = dataset_id if dataset_id in reasons else next(iter(reasons), dataset_id)
        return advice.unhold_lot(self.dataset(source), self.lot) if source in self.names else None

    def is_abandoned(self, dataset_id: str) -> bool:
        """Whether the job that has begun with the lot makes lots of the dataset no longer."""
        maker = self.makers.get(dataset_id)
        if maker is None or maker.job_id == EXTERNAL_JOB:
            return False
        return maker.job_id not in [writer.job_id for writer in self.list_makers(dataset_id)]

    def list_awaited_jobs(self, dataset_id: str) -> list[str]:
        """The jobs that have to do something before the lot is there or can be made by others.

        What is held by hand, or was left by a job that is out of tries, waits for a person.
        """
        maker, able = self.makers.get(dataset_id), [w.job_id for w in self.list_makers(dataset_id)]
        if maker is None:
            return able
        if maker.status == Status.RUNNING:
            return [maker.job_id]
        if maker.is_writable:  # whoever is wired to it may make it; who did, only when told to
            return [job_id for job_id in able if not maker.is_removed or job_id != maker.job_id]
        return [maker.job_id] if maker.is_spent and maker.job_id in able else []


class WorkFacts(Struct, frozen=True):
    """All that is known about one job and one lot."""

    job: EntityId
    row: LotJobRow
    work: WorkRow | None
    readers: Mapping[str, LotReader]
    around: LotContext
    owners: Sequence[GateOwnerRow] = ()  # in whose order the lot has not had its turn

    @property
    def state(self) -> WorkState | None:
        """Where the job stands with the lot; None if no input of it has anything of that lot."""
        if self.work is not None:
            return WorkState(self.work.state)
        met = any(dataset in self.around.makers for dataset in self.row.input_ids)
        return WorkState.WAITING if met else None

    @property
    def unreadable(self) -> list[str]:
        """The inputs of which the lot is not there, or may not be read."""
        makers = [(dataset, self.around.makers.get(dataset)) for dataset in self.row.input_ids]
        return [dataset for dataset, maker in makers if maker is None or not maker.is_readable]

    def leads_to(self, namespace: str | None, name: str | None) -> list[str]:
        """The jobs that must do something before a dataset, an input or output, stops this one."""
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
        """The jobs that must do something before this one can."""
        if self.state not in _WAITS:
            return []
        found = [
            job for dataset in self.unreadable for job in self.around.list_awaited_jobs(dataset)
        ]
        for dataset in self.row.output_ids:
            maker = self.around.makers.get(dataset)
            if maker is not None and not maker.is_writable and maker.job_id != self.row.job_id:
                found += self.around.list_awaited_jobs(dataset)
        return list(dict.fromkeys(found))

    @property
    def lot(self) -> str:
        """The lot."""
        return self.around.lot
