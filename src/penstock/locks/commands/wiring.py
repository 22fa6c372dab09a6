"""The wiring of jobs: which datasets a job reads and writes lot by lot."""

from collections.abc import Iterable, Iterator

import msgspec

from penstock import ids
from penstock.catalog.commands import DatasetName
from penstock.catalog.commands.lookup import Write
from penstock.catalog.entities import job_versions, jobs
from penstock.catalog.entities import names as dataset_names
from penstock.catalog.events.apply import declare_dataset
from penstock.catalog.events.facets import NO_FACETS
from penstock.catalog.events.parse import Mention
from penstock.catalog.rows import replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import END_OF_TIME, Micros
from penstock.db import Transaction
from penstock.errors import Conflict, Forbidden, Invalid, NotFound
from penstock.locks import holds, work_state
from penstock.locks.claiming import find_dataset_names
from penstock.locks.rows import ClockRow, LotJobDatasetRow, LotJobRow
from penstock.locks.tables import LockTables
from penstock.schema.catalog import DatasetRole
from penstock.schema.locks import Stale
from penstock.schema.lot_ids import Interval, clock_interval, is_clock
from penstock.schema.lots import Status
from penstock.states import WorkState

LEASE_SECONDS = 60
TRIES_MAX = 5
BACK_OFF_SECONDS = 10
LOTS_AT_ONCE = 1000


class WireJob(Write, frozen=True):
    """Wire a job: set its inputs and outputs, and how its lots are claimed.

    A field that is None stays unchanged. With `within`, the one namespace of a key, the job gets
    no new output in another namespace. `managed_by` is the engine that claims its lots.
    """

    namespace: str
    job: str
    inputs: tuple[DatasetName, ...] | None = None
    outputs: tuple[DatasetName, ...] | None = None
    lease_seconds: int | None = None
    tries_max: int | None = None
    back_off_seconds: int | None = None
    enforced: bool | None = None
    stale: Stale | None = None
    within: str | None = None
    managed_by: str | None = None

    def execute(self, uow: UnitOfWork, now: Micros) -> LotJobRow:
        """Write the wiring, and find lots that the job can work on."""
        tables = uow.tables(LockTables)
        job_id = ids.job_id(self.namespace, self.job)
        held = tables.jobs.get(job_id)
        job = uow.jobs.get(job_id)
        is_shown = job is not None and not job.hidden
        wired = self._wired(uow, held, job_id, now)
        if is_shown and held is not None and replace(wired, updated_at=held.updated_at) == held:
            return held
        if not is_shown and self.inputs is None and self.outputs is None:
            raise NotFound(
                f"job {self.namespace}/{self.job} was deleted; name its inputs and outputs to "
                "restore it"
            )
        tables.jobs.put(job_id, wired)
        before = held or replace(wired, inputs="[]", outputs="[]")
        same = (before.inputs, before.outputs) == (wired.inputs, wired.outputs)
        if is_shown and same and before.stated == wired.stated:
            return wired
        open_work = tables.list_open_work(job_id)
        running = sum(row.state == WorkState.RUNNING for row in open_work)
        if running and not _sides(before) <= _sides(wired):
            raise Conflict(
                f"{running} lots of job {self.namespace}/{self.job} are being worked on; its "
                "inputs and outputs can change when they are done or released"
            )
        self._declare(uow, wired, now)
        update_wires(tables, before, wired)
        holds.update_lineage_holds(uow, now)
        for dataset_id in wired.input_ids:
            _start_clock(uow, dataset_id, now)
        refreshed = set[str]()
        for lots in self._lots(uow, before, wired, [row.lot for row in open_work]):
            fresh = [lot for lot in lots if lot not in refreshed]
            refreshed.update(fresh)
            work_state.refresh(tables, wired, fresh, now)
        return wired

    def _lots(
        self, uow: UnitOfWork, before: LotJobRow, wired: LotJobRow, open_lots: list[str]
    ) -> Iterator[list[str]]:
        """Yield the lots whose work may change, page by page."""
        yield open_lots
        # Lots that are done may not be done by the new wiring, or new outputs may lack them.
        is_stated_first = before.stated != wired.stated
        if (
            is_stated_first
            or not _sides(before) <= _sides(wired)
            or before.outputs != wired.outputs
        ):
            yield from _met_lots(uow, wired.job_id)
        for dataset_id in wired.input_ids:
            yield from _ready_lots(uow, dataset_id)

    def _wired(
        self, uow: UnitOfWork, held: LotJobRow | None, job_id: str, now: Micros
    ) -> LotJobRow:
        inputs = _ids(uow, self.inputs, now) if self.inputs is not None else None
        outputs = _ids(uow, self.outputs, now) if self.outputs is not None else None
        if held is None and not inputs and not outputs:
            raise NotFound(
                f"job {self.namespace}/{self.job} has no inputs to find lots of; name them"
            )
        fresh = held or default_wiring(job_id, now)
        wired = replace(
            fresh,
            inputs=_text(inputs) if inputs is not None else fresh.inputs,
            outputs=_text(outputs) if outputs is not None else fresh.outputs,
            lease_seconds=_at_least(self.lease_seconds, 1, "lease") or fresh.lease_seconds,
            tries_max=_at_least(self.tries_max, 1, "tries") or fresh.tries_max,
            back_off_seconds=(
                fresh.back_off_seconds
                if self.back_off_seconds is None
                else _at_least(self.back_off_seconds, 0, "backoff")
            ),
            enforced=fresh.enforced if self.enforced is None else int(self.enforced),
            stale=fresh.stale if self.stale is None else self.stale,
            managed_by=self.managed_by or fresh.managed_by,
            stated=fresh.stated if inputs is None and outputs is None else 1,
            updated_at=now,
        )
        if not wired.input_ids and not wired.output_ids:
            raise Invalid("a job that works lot by lot needs an input; a clock dataset is one")
        if set(wired.input_ids) & set(wired.output_ids):
            raise Invalid("a dataset cannot be an input and an output of one job")
        for output in filter(None, map(uow.datasets.get, wired.output_ids)):
            if is_clock(output.name):
                raise Invalid(f"{output.name} is a clock, and no job makes it: name another output")
        self._check_within(uow, [d for d in wired.output_ids if d not in fresh.output_ids])
        return wired

    def _check_within(self, uow: UnitOfWork, added: Iterable[str]) -> None:
        """Refuse new outputs elsewhere: their lots would start jobs that the key must not start."""
        for dataset in filter(None, map(uow.datasets.get, added)):
            if self.within not in (None, dataset.namespace):
                raise Forbidden(
                    f"a key for namespace {self.within!r} cannot wire a job to make lots of "
                    f"{dataset.namespace}/{dataset.name}; wire it once with a key for every "
                    "namespace, then use this key"
                )

    def _declare(self, uow: UnitOfWork, wired: LotJobRow, now: Micros) -> None:
        """Declare the job in the catalog, with the same edges."""
        dataset_names.ensure_namespace(uow, self.namespace, now)
        job = uow.jobs.get(wired.job_id) or jobs.new_job(
            wired.job_id, self.namespace, self.job, now
        )
        job = replace(job, hidden=0, updated_at=max(now, job.updated_at))
        uow.jobs.put(job.id, job)
        # The wiring wins over events, whatever their time.
        at = max(now, min(job.version_at + 1, END_OF_TIME))
        shape = find_dataset_names(uow, wired)
        job, version = job_versions.put_job_version(uow, job, *shape, job.location, at)
        uow.job_versions.put(version.id, replace(version, declared_at=at))
        job = replace(job, current_version_id=version.id, version_at=at)
        uow.jobs.put(job.id, job)
        job_versions.settle_edges(uow, job, (), at)


def default_wiring(job_id: str, now: Micros) -> LotJobRow:
    """Return the wiring of a new job, with the default lease, tries and backoff."""
    defaults = (LEASE_SECONDS, TRIES_MAX, BACK_OFF_SECONDS)
    return LotJobRow(job_id, "[]", "[]", *defaults, 0, 0, Stale.IGNORE, now, now)


def _at_least(value: int | None, least: int, what: str) -> int:
    if value is not None and value < least:
        raise Invalid(f"the {what} cannot be {value}; the least is {least}")
    return value or 0


def _ids(uow: UnitOfWork, names: tuple[DatasetName, ...], now: Micros) -> tuple[str, ...]:
    """Return the ids of datasets; declare those that are new."""
    dataset_ids = []
    for name in dict.fromkeys(names):
        clock_interval(name.name)  # refuses a clock that does not exist
        first_id = ids.dataset_id(name.namespace, name.name)
        dataset_id = uow.dataset_id(first_id)
        if uow.datasets.get(dataset_id) is None:
            mention = Mention(first_id, name.namespace, name.name, NO_FACETS, NO_FACETS)
            dataset_id = declare_dataset(uow, mention, now)
        dataset_ids.append(dataset_id)
    return tuple(dataset_ids)


def _text(dataset_ids: tuple[str, ...]) -> str:
    return msgspec.json.encode(dataset_ids).decode()


def update_wires(tables: LockTables, before: LotJobRow, wired: LotJobRow) -> None:
    """Update the wires of the datasets that a job reads or writes, or did so before."""
    had, has = _sides(before), _sides(wired)
    for role, dataset in had ^ has:
        row, key = LotJobDatasetRow(dataset, role, wired.job_id), (role, dataset, wired.job_id)
        wires = [wire for wire in tables.wires.get(dataset) or () if wire != (role, wired.job_id)]
        is_wired = (role, dataset) in has
        if is_wired:
            wires.append((role, wired.job_id))
        # The same unit of work may have changed this wire before: the last change is written.
        tables.wired.put(key, row if is_wired else None)
        tables.unwired.put(key, None if is_wired else row)
        tables.wires.put(dataset, tuple(wires))


def _sides(job: LotJobRow) -> set[tuple[DatasetRole, str]]:
    return {(DatasetRole.INPUT, d) for d in job.input_ids} | {
        (DatasetRole.OUTPUT, d) for d in job.output_ids
    }


def _start_clock(uow: UnitOfWork, dataset_id: str, now: Micros) -> None:
    """Start a clock when a job first reads it."""
    tables = uow.tables(LockTables)
    dataset = uow.datasets.get(dataset_id)
    interval: Interval | None = clock_interval(dataset.name) if dataset is not None else None
    if interval is None or tables.clocks.get(dataset_id) is not None:
        return
    tables.clocks.put(dataset_id, ClockRow(dataset_id, interval, interval.at(now).end))


def _met_lots(uow: UnitOfWork, job_id: str) -> Iterator[list[str]]:
    """Yield the lots of a job's work, page by page."""
    unstored = [row for row in uow.tables(LockTables).work.unstored() if row.job_id == job_id]
    if fresh := [row.lot for row in unstored]:
        yield fresh
    yield from _pages(uow.tx, "lots_met_by_job", job_id=job_id)


def _ready_lots(uow: UnitOfWork, dataset_id: str) -> Iterator[list[str]]:
    """Yield the READY lots of a dataset, page by page."""
    tables = uow.tables(LockTables)
    unstored = [row for row in tables.outputs.unstored() if row.dataset_id == dataset_id]
    if fresh := [row.lot for row in unstored if row.status == Status.READY]:
        yield fresh
    yield from _pages(uow.tx, "ready_lots_of_dataset", dataset_id=dataset_id)


def _pages(tx: Transaction, statement: str, **params: object) -> Iterator[list[str]]:
    after = ""
    while rows := tx.fetch(statement, after=after, most=LOTS_AT_ONCE, **params):
        after = rows[-1][0]
        yield [lot for (lot,) in rows]
