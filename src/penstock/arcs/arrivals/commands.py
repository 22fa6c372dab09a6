"""The writes of arrivals: declarations, and lots made of arrived objects."""

from typing import ClassVar

from msgspec import Struct

from penstock import ids
from penstock.access import audit
from penstock.arcs.arrivals.arrival import Arrival, ArrivedRow, check_arrival, first_moment, to_text
from penstock.arcs.arrivals.rows import ArrivalRow, ArrivalTables, GoneObject, missing_arrival
from penstock.arcs.rows import ArcTables
from penstock.catalog.commands.lookup import Write, dataset_row
from penstock.catalog.events.apply import declare_dataset
from penstock.catalog.events.facets import NO_FACETS
from penstock.catalog.events.parse import Mention
from penstock.catalog.rows import replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import Conflict
from penstock.locks.commands.lots import register
from penstock.locks.tables import LockTables
from penstock.lots.manifests import ManifestNote
from penstock.lots.rows import LandingRow, LotDatasetRow
from penstock.lots.tables import LotTables
from penstock.schema.catalog import DatasetRole

WATCHER = "penstock"  # the owner of lots that arrive


class ApplyArrival(Write, frozen=True):
    """Declare or change the arrival of a dataset."""

    exclusive: ClassVar[bool] = True  # for the audit log

    who: str
    arrival: Arrival

    def execute(self, uow: UnitOfWork, now: Micros) -> ArrivalRow:
        """Return the arrival. Repeating a declaration changes nothing."""
        row, is_changed = self.upsert(uow, now)
        if is_changed:
            self.append_audit(uow, now)
        return row

    def append_audit(self, uow: UnitOfWork, now: Micros) -> None:
        """Append the declaration to the audit log; a trial does not."""
        target = f"{self.arrival.namespace}/{self.arrival.dataset}"
        audit.append(uow.tx, now, self.who, "apply arrival", target, to_text(self.arrival))

    def upsert(self, uow: UnitOfWork, now: Micros) -> tuple[ArrivalRow, bool]:
        """Return the arrival, and whether it has changed."""
        arrival = check_arrival(self.arrival)
        dataset_id = self._declared(uow, now)
        tables = uow.tables(ArrivalTables)
        stored = tables.arrivals.get(dataset_id)
        text = to_text(arrival)
        if stored is not None and stored.declaration == text:
            return stored, False
        name = f"{arrival.namespace}/{arrival.dataset}"
        if stored is not None and stored.arrival.interval != arrival.interval:
            raise Conflict(
                f"the lots of {name} are cut by {stored.arrival.interval or 'free ids'}, not by "
                f"{arrival.interval or 'free ids'}; let the objects arrive in another dataset"
            )
        self._cut_lots(uow, dataset_id, now)
        start = first_moment(arrival, now) if stored is None or arrival.start else stored.start
        row = ArrivalRow(
            dataset_id=dataset_id,
            namespace=arrival.namespace,
            name=arrival.dataset,
            declaration=text,
            start=start,
            open_from=_open_from(stored, start),
            revision=stored.revision + 1 if stored is not None else 1,
            created_at=stored.created_at if stored is not None else now,
            updated_at=now,
        )
        tables.arrivals.put(dataset_id, row)
        uow.tables(LotTables).landings.put(dataset_id, LandingRow(dataset_id))
        return row, True

    def _declared(self, uow: UnitOfWork, now: Micros) -> str:
        """Return the dataset. No job of Penstock may write it."""
        arrival = self.arrival
        derived_id = ids.dataset_id(arrival.namespace, arrival.dataset)
        dataset_id = uow.dataset_id(derived_id)
        dataset = uow.datasets.get(dataset_id)
        if dataset is None or dataset.hidden:
            mention = Mention(derived_id, arrival.namespace, arrival.dataset, NO_FACETS, NO_FACETS)
            dataset_id = declare_dataset(uow, mention, now)
        makers = [
            job
            for role, job in uow.tables(LockTables).wires.get(dataset_id) or ()
            if role == DatasetRole.OUTPUT
        ]
        if makers:
            job = uow.jobs.get(makers[0])
            maker = f"{job.namespace}/{job.name}" if job is not None else makers[0]
            raise Conflict(
                f"the lots of {arrival.namespace}/{arrival.dataset} are made by job {maker}; let "
                "the objects arrive in another dataset"
            )
        return dataset_id

    def _cut_lots(self, uow: UnitOfWork, dataset_id: str, now: Micros) -> None:
        """Store the interval of the lots, and keep the limit of running lots."""
        arrival, tables = self.arrival, uow.tables(LotTables)
        stored = tables.datasets.get(dataset_id)
        if stored is not None and stored.interval not in ("", arrival.interval):
            raise Conflict(
                f"the lots of {arrival.namespace}/{arrival.dataset} are cut by {stored.interval}, "
                f"not by {arrival.interval or 'free ids'}"
            )
        most = stored.running_max if stored is not None else 0
        row = LotDatasetRow(dataset_id, arrival.interval, arrival.version, most, now)
        tables.datasets.put(dataset_id, row)


def _open_from(stored: ArrivalRow | None, start: Micros) -> Micros:
    """Return where open intervals begin: existing lots stay as they are."""
    return start if stored is None or start < stored.start else max(start, stored.open_from)


class DeleteArrival(Write, frozen=True):
    """Delete an arrival; its lots and the record of their objects stay."""

    exclusive: ClassVar[bool] = True  # for the audit log

    who: str
    namespace: str
    dataset: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Delete the row, which makes a decision under way void."""
        row = arrival_row(uow, self.namespace, self.dataset)
        target = f"{self.namespace}/{self.dataset}"
        audit.append(uow.tx, now, self.who, "delete arrival", target)
        uow.tables(ArrivalTables).arrivals.put(row.dataset_id, None)
        landings = uow.tables(LotTables).landings
        if landings.get(row.dataset_id) is not None:
            landings.put(row.dataset_id, None)


class RecordLanding(Write, frozen=True):
    """Record a problem at the location of an arrival, and since when it lasts."""

    landing: LandingRow

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Keep the time of a problem that is unchanged."""
        landings = uow.tables(LotTables).landings
        stored = landings.get(self.landing.dataset_id)
        if stored is None:  # the arrival was deleted
            return
        since = (stored.failed_at if stored.error else now) if self.landing.error else 0
        landings.put(stored.dataset_id, replace(self.landing, failed_at=since))


def arrival_row(uow: UnitOfWork, namespace: str, dataset: str) -> ArrivalRow:
    """Return the arrival of a dataset, or raise NotFound."""
    dataset_id = uow.dataset_id(ids.dataset_id(namespace, dataset))
    row = uow.tables(ArrivalTables).arrivals.get(dataset_id)
    if row is None:
        raise missing_arrival(namespace, dataset)
    return row


class ArrivedLot(Struct, frozen=True):
    """A lot and the manifest that was written for it."""

    lot: str
    manifest: ManifestNote


class PublishArrivals(Write, frozen=True):
    """Publish lots of arrived objects and record the objects, in one transaction.

    It is void if the arrival has had another decision since the revision that it was made on.
    """

    namespace: str
    dataset: str
    revision: int
    open_from: Micros
    lots: tuple[ArrivedLot, ...]
    objects: tuple[ArrivedRow, ...]
    gone: tuple[str, ...] = ()  # objects that the lots had and that are gone

    def execute(self, uow: UnitOfWork, now: Micros) -> int:
        """Return the revision after the write."""
        row = arrival_row(uow, self.namespace, self.dataset)
        if row.revision != self.revision:
            raise Conflict(
                f"the arrivals of {self.namespace}/{self.dataset} are at revision {row.revision}, "
                f"not at {self.revision}: another watcher, or a declaration, came first; look again"
            )
        dataset = dataset_row(uow, self.namespace, self.dataset, visible=True)
        if self.lots:
            notes = {each.lot: each.manifest for each in self.lots}
            register(uow, dataset, list(notes), WATCHER, now, renew=True, notes=notes)
        tables = uow.tables(ArrivalTables)
        for uri in self.gone:
            tables.gone.put((row.dataset_id, uri), GoneObject(row.dataset_id, uri))
        for each in self.objects:
            tables.objects.put((each.dataset_id, each.uri), each)
        for lot in self.lots:
            uow.tables(ArcTables).put_unsettled(row.dataset_id, lot.lot, lot.manifest.attempt)
        after = replace(row, open_from=self.open_from, revision=row.revision + 1)
        tables.arrivals.put(row.dataset_id, after)
        return after.revision
