"""The writes of arrivals: declared, forgotten, and lots made of what has arrived."""

from typing import ClassVar

from msgspec import Struct

from penstock import ids
from penstock.access import audit
from penstock.arcs.arrivals.arrival import Arrival, ArrivedRow, checked, first_moment, to_text
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

WATCHER = "penstock"  # who registers what has arrived


class ApplyArrival(Write, frozen=True):
    """Declare where the objects of a dataset arrive, or change it."""

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    who: str
    arrival: Arrival

    def execute(self, uow: UnitOfWork, now: Micros) -> ArrivalRow:
        """Saying the same again changes nothing; what was decided stays decided."""
        row, is_changed = self.fold(uow, now)
        if is_changed:
            self.tell(uow, now)
        return row

    def tell(self, uow: UnitOfWork, now: Micros) -> None:
        """Write it to the audit log, as a trial does not."""
        target = f"{self.arrival.namespace}/{self.arrival.dataset}"
        audit.append(uow.tx, now, self.who, "apply arrival", target, to_text(self.arrival))

    def fold(self, uow: UnitOfWork, now: Micros) -> tuple[ArrivalRow, bool]:
        """The arrival, and whether it is another than before."""
        arrival = checked(self.arrival)
        dataset_id = self._declared(uow, now)
        room = uow.tables(ArrivalTables)
        held = room.arrivals.get(dataset_id)
        text = to_text(arrival)
        if held is not None and held.declaration == text:
            return held, False
        name = f"{arrival.namespace}/{arrival.dataset}"
        if held is not None and held.arrival.interval != arrival.interval:
            raise Conflict(
                f"the lots of {name} are cut by {held.arrival.interval or 'free ids'}, not by "
                f"{arrival.interval or 'free ids'}; let the objects arrive in another dataset"
            )
        self._cut_lots(uow, dataset_id, now)
        start = first_moment(arrival, now) if held is None or arrival.start else held.start
        row = ArrivalRow(
            dataset_id=dataset_id,
            namespace=arrival.namespace,
            name=arrival.dataset,
            declaration=text,
            start=start,
            open_from=_open_from(held, start),
            revision=held.revision + 1 if held is not None else 1,
            created_at=held.created_at if held is not None else now,
            updated_at=now,
        )
        room.arrivals.put(dataset_id, row)
        uow.tables(LotTables).landings.put(dataset_id, LandingRow(dataset_id))
        return row, True

    def _declared(self, uow: UnitOfWork, now: Micros) -> str:
        """The dataset, which no job of ours may make."""
        arrival = self.arrival
        named = ids.dataset_id(arrival.namespace, arrival.dataset)
        dataset_id = uow.dataset_id(named)
        dataset = uow.datasets.get(dataset_id)
        if dataset is None or dataset.hidden:
            mention = Mention(named, arrival.namespace, arrival.dataset, NO_FACETS, NO_FACETS)
            dataset_id = declare_dataset(uow, mention, now)
        makers = [
            job
            for role, job in uow.tables(LockTables).wires.get(dataset_id) or ()
            if role == DatasetRole.OUTPUT
        ]
        if makers:
            job = uow.jobs.get(makers[0])
            shown = f"{job.namespace}/{job.name}" if job is not None else makers[0]
            raise Conflict(
                f"the lots of {arrival.namespace}/{arrival.dataset} are made by job {shown}; let "
                "the objects arrive in another dataset"
            )
        return dataset_id

    def _cut_lots(self, uow: UnitOfWork, dataset_id: str, now: Micros) -> None:
        """Keep how the lots are cut, beside how many of them may be worked on at once."""
        arrival, room = self.arrival, uow.tables(LotTables)
        held = room.datasets.get(dataset_id)
        if held is not None and held.interval not in ("", arrival.interval):
            raise Conflict(
                f"the lots of {arrival.namespace}/{arrival.dataset} are cut by {held.interval}, "
                f"not by {arrival.interval or 'free ids'}"
            )
        most = held.running_max if held is not None else 0
        row = LotDatasetRow(dataset_id, arrival.interval, arrival.version, most, now)
        room.datasets.put(dataset_id, row)


def _open_from(held: ArrivalRow | None, start: Micros) -> Micros:
    """From when on intervals are to be closed: lots that are there already stay as they are."""
    return start if held is None or start < held.start else max(start, held.open_from)


class ForgetArrival(Write, frozen=True):
    """Watch a location no more; its lots stay, and so does which object is in which."""

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    who: str
    namespace: str
    dataset: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """The row goes; what is being decided about it is void."""
        row = arrival_row(uow, self.namespace, self.dataset)
        target = f"{self.namespace}/{self.dataset}"
        audit.append(uow.tx, now, self.who, "delete arrival", target)
        uow.tables(ArrivalTables).arrivals.put(row.dataset_id, None)
        landings = uow.tables(LotTables).landings
        if landings.get(row.dataset_id) is not None:
            landings.put(row.dataset_id, None)


class NoteLanding(Write, frozen=True):
    """Keep what was met where the objects of a dataset arrive; since when, if it is a failure."""

    met: LandingRow

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """A failure that goes on is as old as it was."""
        landings = uow.tables(LotTables).landings
        held = landings.get(self.met.dataset_id)
        if held is None:  # nobody watches it any more
            return
        since = (held.failed_at if held.error else now) if self.met.error else 0
        landings.put(held.dataset_id, replace(self.met, failed_at=since))


def arrival_row(uow: UnitOfWork, namespace: str, dataset: str) -> ArrivalRow:
    """The arrival of a dataset, or NotFound."""
    dataset_id = uow.dataset_id(ids.dataset_id(namespace, dataset))
    row = uow.tables(ArrivalTables).arrivals.get(dataset_id)
    if row is None:
        raise missing_arrival(namespace, dataset)
    return row


class ArrivedLot(Struct, frozen=True):
    """A lot, and the manifest that was written for it."""

    lot: str
    manifest: ManifestNote


class PlaceObjects(Write, frozen=True):
    """Publish lots of what has arrived, and note which object is in which: together, or not at all.

    It is void if anything was decided about this arrival since the revision it was made on.
    """

    namespace: str
    dataset: str
    revision: int
    open_from: Micros
    lots: tuple[ArrivedLot, ...]
    objects: tuple[ArrivedRow, ...]
    gone: tuple[str, ...] = ()  # what the lots had, and is not there any more

    def execute(self, uow: UnitOfWork, now: Micros) -> int:
        """The revision after it."""
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
        room = uow.tables(ArrivalTables)
        for uri in self.gone:
            room.forgotten.put((row.dataset_id, uri), GoneObject(row.dataset_id, uri))
        for each in self.objects:
            room.objects.put((each.dataset_id, each.uri), each)
        for lot in self.lots:
            uow.tables(ArcTables).put_unsettled(row.dataset_id, lot.lot, lot.manifest.attempt)
        after = replace(row, open_from=self.open_from, revision=row.revision + 1)
        room.arrivals.put(row.dataset_id, after)
        return after.revision
