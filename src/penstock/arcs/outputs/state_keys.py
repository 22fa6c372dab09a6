"""State keys: object names that show the states of arcs and lots to tools that list a store.

They follow the database, and Penstock never reads them. `penstock arcs sync` writes them again.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple
from urllib.parse import unquote

from penstock.arcs.arrivals.rows import ArrivalRow
from penstock.arcs.commands import SettleKeys
from penstock.arcs.outputs.leftovers import clean, list_dead_attempts
from penstock.arcs.queries import arc_states, find_arc, manifest_rows, output_refs
from penstock.arcs.rows import ArcRow, UnsettledRow
from penstock.arcs.spec import Arc
from penstock.db import Database, Transaction
from penstock.errors import NotFound, PenstockError, Unavailable
from penstock.locks.queries.claims import find_dataset, get_lot_job
from penstock.locks.rows import StatusRow, WorkRow
from penstock.lots.manifest_files import follow_manifest, is_shown, show_manifest
from penstock.lots.manifests import (
    ARCS,
    DatasetRef,
    ManifestNote,
    arc_folder,
    arc_key,
    arc_segment,
    arcs_folder,
    manifest_key,
)
from penstock.lots.rows import ManifestRow
from penstock.objects import Objects
from penstock.schema.arcs import Synced
from penstock.states import ArcState, ManifestState
from penstock.store.write_queue import WriteQueue
from penstock.telemetry import logs

log = logging.getLogger(__name__)

LOTS_AT_ONCE = 500
_PASSES_MAX = 5
_AT_ONCE = 100
_NO_ID = "00000000-0000-0000-0000-000000000000"  # before every id


class StateKeys:
    """The state keys of one arc."""

    def __init__(self, objects: Objects, arc: Arc) -> None:
        self._objects = objects
        self._arc = arc.ref

    def begin(self, lot: str, *, is_first: bool) -> None:
        """Show that a lot is running. On the first attempt, it has no other key."""
        if is_first:
            self._objects.put(arc_key(self._arc, lot, ArcState.RUNNING), b"{}")
        else:
            self.show(lot, ArcState.RUNNING)

    def show(self, lot: str, state: ArcState | None) -> None:
        """Replace the key of a lot by one for this state."""
        wanted = arc_key(self._arc, lot, state) if state else ""
        if wanted:
            self._objects.put(wanted, b"{}")
        for entry in list(self._objects.list(arc_folder(self._arc, lot))):
            if entry.key != wanted:
                self._objects.delete(entry.key)

    def show_manifests(
        self, lot: str, refs: Sequence[DatasetRef], notes: Sequence[ManifestNote]
    ) -> None:
        """Store the last published manifest under the well-known key of each output."""
        for ref, note in zip(refs, notes, strict=True):
            show_manifest(self._objects, lot, ref, note)


LOTS_AT_ONCE = 500
_PASSES_MAX = 5


class _Place(NamedTuple):
    """A lot of an output, and the manifest that was published last."""

    ref: DatasetRef
    lot: str
    row: ManifestRow


class Sync:
    """A sync of the state keys of one arc with the database, in batches of lots."""

    def __init__(
        self, catalog: WriteQueue | Database, objects: Objects, namespace: str, name: str
    ) -> None:
        self._catalog = catalog
        self._objects = objects
        with catalog.read() as tx:
            self._row: ArcRow = find_arc(tx, namespace, name)
        self._arc = self._row.arc

    def run(self, after: str = "", most: int = LOTS_AT_ONCE) -> Synced:
        """Sync the lots after one. After the last, remove keys of unknown lots."""
        with self._catalog.read() as tx:
            rows = tx.rows(
                WorkRow, "arc_lots_after", job_id=self._row.job_id, after=after, most=most
            )
        lots = [row.lot for row in rows]
        changed, lost = self.follow(lots) if lots else (0, 0)
        if len(lots) == most:
            return Synced(len(lots), changed, 0, lost, lots[-1])
        removed = self._remove_strays() + self._remove_former()
        return Synced(len(lots), changed, removed, lost, None)

    def follow(self, lots: Sequence[str]) -> tuple[int, int]:
        """Change keys until they follow the database, which engines change meanwhile."""
        changed: set[str] = set()
        lost: set[_Place] = set()
        for _ in range(_PASSES_MAX):
            with self._catalog.read() as tx:
                states = self._states(tx, lots)
                manifests = self._places(tx, lots)
            fixed = {lot for lot, state in states.items() if self._show(lot, state)}
            for each in manifests:
                try:
                    is_new = follow_manifest(self._objects, each.lot, each.ref, each.row)
                    fixed |= {each.lot} if is_new else set()
                except NotFound:
                    lost.add(each)
            changed |= fixed
            if not fixed:
                break
            lots = sorted(fixed)  # only keys written here can have replaced newer ones
        return len(changed), len(lost)

    def differences(self, lots: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield the lots whose keys do not follow the database, each with the difference.

        Running lots, and lots to be made again, are left out: an engine is about to write their
        keys. A complete lot without a manifest has no key: its job was no arc when it was made.
        """
        with self._catalog.read() as tx:
            states = self._states(tx, lots)
            manifests = self._places(tx, lots)
        settled = {lot for lot, state in states.items() if state not in (None, ArcState.RUNNING)}
        described = {each.lot for each in manifests}
        arc = self._arc.ref
        for lot, state in states.items():
            if lot not in settled or state is None:
                continue
            if state is ArcState.COMPLETE and lot not in described:
                continue
            wanted = {arc_key(arc, lot, state)}
            current = {entry.key for entry in self._objects.list(arc_folder(arc, lot))}
            yield from ((lot, f"the key {key} is stale") for key in sorted(current - wanted))
            yield from ((lot, f"the key {key} is missing") for key in sorted(wanted - current))
        for each in manifests:
            if each.lot in settled and not is_shown(self._objects, each.lot, each.ref, each.row):
                key = manifest_key(each.ref, each.lot, ManifestState(each.row.state))
                yield each.lot, f"{key} is not the manifest that was published last"

    def _states(self, tx: Transaction, lots: Sequence[str]) -> dict[str, ArcState | None]:
        job = get_lot_job(tx, self._arc.namespace, self._arc.name)
        works = tx.rows(WorkRow, "lot_work_by_lots", job_id=job.job_id, lots=list(lots))
        return arc_states(tx, job, works)

    def _places(self, tx: Transaction, lots: Sequence[str]) -> list[_Place]:
        """Return the last published manifests of all outputs of these lots.

        The wiring may have changed since: outputs that the job no longer writes are not its own.
        """
        job = get_lot_job(tx, self._arc.namespace, self._arc.name)
        refs = {find_dataset(tx, r.namespace, r.name): r for r in output_refs(self._arc)}
        lot_by_version: dict[str, tuple[DatasetRef, str]] = {}
        for dataset_id, ref in refs.items():
            if dataset_id not in job.output_ids:
                continue
            rows = tx.rows(StatusRow, "lot_outputs", dataset_id=dataset_id, lots=list(lots))
            lot_by_version |= {
                row.version_id: (ref, row.lot) for row in rows if row.version_id is not None
            }
        manifests = manifest_rows(tx, list(lot_by_version))
        return [_Place(*lot_by_version[version], row) for version, row in manifests.items()]

    def _show(self, lot: str, state: ArcState | None) -> bool:
        """Replace the key of a lot by one for its state; return whether it differed."""
        arc = self._arc.ref
        wanted = {arc_key(arc, lot, state)} if state else set()
        current = {entry.key for entry in self._objects.list(arc_folder(arc, lot))}
        for key in wanted - current:
            self._objects.put(key, b"{}")
        for key in current - wanted:
            self._objects.delete(key)
        return current != wanted

    def _remove_strays(self) -> int:
        folder = arc_folder(self._arc.ref)
        keys = (entry.key for entry in self._objects.list(folder))
        removed = 0
        while batch := {key: _lot_of(key, folder) for key in islice(keys, LOTS_AT_ONCE)}:
            lots = sorted(set(batch.values()))
            with self._catalog.read() as tx:
                rows = tx.rows(WorkRow, "lot_work_by_lots", job_id=self._row.job_id, lots=lots)
            rows_lots = {row.lot for row in rows}
            for key, lot in batch.items():
                if lot not in rows_lots:
                    self._objects.delete(key)
                    removed += 1
        return removed

    def _remove_former(self) -> int:
        """Remove keys of a former project or version of the arc, or without a namespace."""
        arc, removed = self._arc.ref, 0
        for top in (ARCS, arcs_folder(arc.namespace)):
            projects = (name for name in self._objects.folders(top) if name.startswith("project="))
            for project in (f"{top}/{name}" for name in projects):
                for version in self._objects.folders(project):
                    folder = f"{project}/{version}/{arc_segment(arc.name)}"
                    if folder == arc_folder(arc):
                        continue
                    for entry in list(self._objects.list(folder)):
                        self._objects.delete(entry.key)
                        removed += 1
        return removed


def follow_maker(
    catalog: WriteQueue, objects: Objects, namespace: str, dataset: str, lot: str
) -> None:
    """Sync the keys of a lot for the arc that wrote it, if an arc did."""
    with catalog.read() as tx:
        of_lot = {"dataset_id": find_dataset(tx, namespace, dataset), "lots": [lot]}
        makers = [row.job_id for row in tx.rows(StatusRow, "lot_outputs", **of_lot)]
        arcs = tx.rows(ArcRow, "arcs_by_ids", ids=makers)
    for arc in arcs:
        Sync(catalog, objects, arc.namespace, arc.name).follow([lot])


def _lot_of(key: str, folder: str) -> str:
    return unquote(key.removeprefix(f"{folder}/").partition("/")[0].removeprefix("lot="))


class KeyRepair:
    """A repair of state keys that engines were about to write when they died."""

    def __init__(self, catalog: WriteQueue, objects: Objects) -> None:
        self._catalog = catalog
        self._objects = objects

    def run(self, is_stopped: Callable[[], bool] = lambda: False) -> int:
        """Repair the marked lots that no engine is running; return how many."""
        owner_id, lot, repaired = _NO_ID, "", 0
        while not is_stopped():
            with self._catalog.read() as tx:
                rows = tx.rows(
                    UnsettledRow, "unsettled_keys_after", owner_id=owner_id, lot=lot, most=_AT_ONCE
                )
            for row in rows:
                if is_stopped():
                    return repaired
                self._settle(row)
                repaired += 1
            if len(rows) < _AT_ONCE:
                return repaired
            owner_id, lot = rows[-1].owner_id, rows[-1].lot
        return repaired

    def _settle(self, row: UnsettledRow) -> None:
        """Repair the keys of one lot. If that fails, `penstock check` reports the difference."""
        with logs.about(lot=row.lot, run=row.attempt):
            try:
                self._repair(row)
            except Unavailable:
                raise
            except PenstockError as error:
                log.warning("the keys of lot %s cannot be repaired: %s", row.lot, error)
            self._catalog.submit(SettleKeys((row,))).result()

    def _repair(self, row: UnsettledRow) -> None:
        with self._catalog.read() as tx:
            arcs = tx.rows(ArcRow, "arcs_by_ids", ids=[row.owner_id])
            arrivals = tx.rows(ArrivalRow, "arrivals_by_ids", ids=[row.owner_id])
        for arc in arcs:
            self._repair_arc(arc, row)
        for arrival in arrivals:
            self._repair_arrival(arrival, row.lot)

    def _repair_arc(self, arc: ArcRow, row: UnsettledRow) -> None:
        catalog, objects = self._catalog, self._objects
        refs = output_refs(arc.arc)
        list_dead_attempts(catalog, objects, refs, row.owner_id, row.lot)
        Sync(catalog, objects, arc.namespace, arc.name).follow([row.lot])
        with catalog.read() as tx:
            job = get_lot_job(tx, arc.namespace, arc.name)
            works = tx.rows(WorkRow, "lot_work_by_lots", job_id=job.job_id, lots=[row.lot])
            state = arc_states(tx, job, works).get(row.lot)
        if state is ArcState.COMPLETE:
            clean(catalog, objects, refs, row.owner_id, row.lot, (row.attempt,))
        log.info("the keys of lot %s of %s were repaired: %s", row.lot, arc.name, state)

    def _repair_arrival(self, arrival: ArrivalRow, lot: str) -> None:
        which = {"dataset_id": arrival.dataset_id, "lots": [lot]}
        with self._catalog.read() as tx:
            status_rows = tx.rows(StatusRow, "lot_outputs", **which)
            versions = [row.version_id for row in status_rows if row.version_id is not None]
            manifests = manifest_rows(tx, versions).values()
        ref = DatasetRef(arrival.namespace, arrival.name, arrival.arrival.version)
        for row in manifests:
            follow_manifest(self._objects, lot, ref, row)
        log.info("the keys of lot %s of %s were repaired", lot, arrival.name)
