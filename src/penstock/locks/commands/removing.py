"""Removing lots that have no manifest: registered ones, and those that a claim has made."""

from penstock.catalog.commands.lookup import dataset_row
from penstock.catalog.rows import DatasetRow, replace
from penstock.catalog.world import World
from penstock.clock import Micros
from penstock.errors import Conflict, NotFound
from penstock.locks import advice, guard, rules
from penstock.locks.commands.admin import Admin
from penstock.locks.held import drop_reasons
from penstock.locks.room import LockRoom
from penstock.locks.rows import LogRow, StatusRow
from penstock.locks.table import Status
from penstock.lots.ids import check_lot
from penstock.lots.manifests import ManifestNote
from penstock.lots.room import LotEventKind, LotRoom
from penstock.states import ManifestState, WorkState


class LotWasRead(Conflict):
    """Jobs have read a lot, so removing it must be forced."""


class RemoveBareLot(Admin, frozen=True):
    """Remove a lot of which no manifest lists the data.

    A lot that nothing has read is forgotten. With `note`, the manifest of a removed lot, it stays
    as `removed` with its provenance; a lot that was read is removed only so.
    """

    namespace: str
    dataset: str
    lot: str
    note: ManifestNote | None = None
    force: bool = False

    def apply(self, world: World, now: Micros) -> None:
        """One transaction, or nothing; while a claim makes or reads it, it stays."""
        room = world.room(LockRoom)
        dataset = dataset_row(world, self.namespace, self.dataset)
        row = room.outputs.get((dataset.id, check_lot(self.lot)))
        if row is None:
            name = f"{dataset.namespace}/{dataset.name}"
            raise NotFound(f"there is no lot {self.lot} of {name}; `penstock lots list` lists them")
        self._check(world, dataset, row)
        is_kept = self.note is not None and row.version_id is not None
        if is_kept:
            self._mark_removed(world, row, now)
        else:
            self._forget(room, row)
        became = Status.ERROR if is_kept else ""
        entry = (now, "remove", self.lot, None, dataset.id, None, row.status, became)
        room.append(LogRow(*entry, self.who, self.why))
        if row.version_id is not None:
            world.room(LotRoom).tell(
                LotEventKind.REMOVED,
                dataset.id,
                self.lot,
                now,
                version_id=row.version_id,
                state=ManifestState.REMOVED,
            )
        self._settle_work(room, dataset, now)
        target = f"dataset:{dataset.namespace}:{dataset.name} lot {self.lot}"
        self.record(world, now, "lot remove", target)

    def _check(self, world: World, dataset: DatasetRow, row: StatusRow) -> None:
        """Refuse a lot that a claim works with, that is held, or that was read without force."""
        room = world.room(LockRoom)
        name = f"{dataset.namespace}/{dataset.name}"
        where = f"lot {self.lot} of {name}"
        if row.status == Status.RUNNING:
            job = guard.job_told(world, row.job_id, dataset.namespace)
            raise Conflict(f"{where} is being made by {job}; release its lock first")
        if room.reasons.get((dataset.id, self.lot)) is not None:
            command = advice.unhold_lot(name, self.lot)
            raise Conflict(f"{where} is held; release it first: `{command}`")
        readers = [own for own in room.readers_of(dataset.id, self.lot) if own.run_id is not None]
        jobs = [guard.job_told(world, own.job_id, dataset.namespace) for own in readers]
        for own, job in zip(readers, jobs, strict=True):
            if own.status == Status.RUNNING:
                raise Conflict(f"{where} is being read by {job}; release its lock first")
        if jobs and not self.force:
            raise LotWasRead(
                f"{where} was read by {' and '.join(dict.fromkeys(jobs))}; force it to mark the "
                "lot as removed: what was made from it, and its provenance, stay"
            )

    def _mark_removed(self, world: World, row: StatusRow, now: Micros) -> None:
        assert self.note is not None
        assert row.version_id is not None
        lots = world.room(LotRoom)
        lots.put_manifest(row.version_id, row.dataset_id, self.lot, self.note, now)
        # No run holds or made what is not there: so it is told from a lot that could not be made.
        gone = replace(row, status=Status.ERROR, held_from="", run_id=None, since=now)
        world.room(LockRoom).put_status(gone)

    def _forget(self, room: LockRoom, row: StatusRow) -> None:
        drop_reasons(room, row.dataset_id, self.lot)
        room.outputs.put((row.dataset_id, self.lot), None)

    def _settle_work(self, room: LockRoom, dataset: DatasetRow, now: Micros) -> None:
        """Forget the work of jobs that nothing is left of, and look again at that of others."""
        for job_id in dict.fromkeys(job for _, job in room.wires.get(dataset.id) or ()):
            job, work = room.jobs.get(job_id), room.work.get((job_id, self.lot))
            if job is None or work is None or work.state == WorkState.RUNNING:
                continue
            own = [room.inputs.get((each, job_id, self.lot)) for each in job.own_ids]
            around = (*job.input_ids, *job.output_ids)
            made = [room.outputs.get((each, self.lot)) for each in around]
            if any(own) or any(made):
                rules.refresh(room, job, [self.lot], now)
            else:
                room.forget_work(work)
