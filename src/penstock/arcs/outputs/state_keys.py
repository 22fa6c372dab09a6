"""Keys whose names tell where arcs and lots stand, for tools that only list the object store.

They follow the database and are never read by us: `penstock arcs sync` makes them anew.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple
from urllib.parse import unquote

from penstock.arcs.arrivals.rows import ArrivalRow
from penstock.arcs.commands import SettleKeys
from penstock.arcs.outputs.leftovers import clean, note_the_dead
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


class StateKeys:
    """The state keys of one arc."""

    def __init__(self, objects: Objects, arc: Arc) -> None:
        self._objects = objects
        self._arc = arc.ref

    def begin(self, lot: str, *, is_first: bool) -> None:
        """Tell that a lot is running; what is worked on for the first time has no other key."""
        if is_first:
            self._objects.put(arc_key(self._arc, lot, ArcState.RUNNING), b"{}")
        else:
            self.show(lot, ArcState.RUNNING)

    def show(self, lot: str, state: ArcState | None) -> None:
        """Let the one key of a lot tell this state."""
        wanted = arc_key(self._arc, lot, state) if state else ""
        if wanted:
            self._objects.put(wanted, b"{}")
        for entry in list(self._objects.list(arc_folder(self._arc, lot))):
            if entry.key != wanted:
                self._objects.delete(entry.key)

    def show_manifests(
        self, lot: str, refs: Sequence[DatasetRef], notes: Sequence[ManifestNote]
    ) -> None:
        """Let the well-known key of each output hold the manifest that was published last."""
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
    """Brings the keys of one arc into line with the database, some lots at a time."""

    def __init__(
        self, catalog: WriteQueue | Database, objects: Objects, namespace: str, name: str
    ) -> None:
        self._catalog = catalog
        self._objects = objects
        with catalog.read() as tx:
            self._row: ArcRow = find_arc(tx, namespace, name)
        self._arc = self._row.arc

    def run(self, after: str = "", most: int = LOTS_AT_ONCE) -> Synced:
        """Go over the lots after one; when none is left, keys of lots that nobody knows go."""
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
        """Change keys until they tell what the database does: meanwhile engines go on."""
        changed: set[str] = set()
        lost: set[_Place] = set()
        for _ in range(_PASSES_MAX):
            with self._catalog.read() as tx:
                states = self._states(tx, lots)
                places = self._places(tx, lots)
            fixed = {lot for lot, state in states.items() if self._show(lot, state)}
            for place in places:
                try:
                    is_new = follow_manifest(self._objects, place.lot, place.ref, place.row)
                    fixed |= {place.lot} if is_new else set()
                except NotFound:
                    lost.add(place)
            changed |= fixed
            if not fixed:
                break
            lots = sorted(fixed)  # only what was written here can have covered something newer
        return len(changed), len(lost)

    def differences(self, lots: Sequence[str]) -> Iterator[tuple[str, str]]:
        """The lots whose keys do not follow the database, each with what is wrong.

        An engine is about to write those of lots that are running, or that are to be made again.
        A lot that is complete without a manifest was made before its job was an arc: it has no key.
        """
        with self._catalog.read() as tx:
            states = self._states(tx, lots)
            places = self._places(tx, lots)
        settled = {lot for lot, state in states.items() if state not in (None, ArcState.RUNNING)}
        described = {place.lot for place in places}
        arc = self._arc.ref
        for lot, state in states.items():
            if lot not in settled or state is None:
                continue
            if state is ArcState.COMPLETE and lot not in described:
                continue
            wanted = {arc_key(arc, lot, state)}
            there = {entry.key for entry in self._objects.list(arc_folder(arc, lot))}
            yield from ((lot, f"the key {key} is stale") for key in sorted(there - wanted))
            yield from ((lot, f"the key {key} is missing") for key in sorted(wanted - there))
        for place in places:
            if place.lot in settled and not is_shown(
                self._objects, place.lot, place.ref, place.row
            ):
                key = manifest_key(place.ref, place.lot, ManifestState(place.row.state))
                yield place.lot, f"{key} is not the manifest that was published last"

    def _states(self, tx: Transaction, lots: Sequence[str]) -> dict[str, ArcState | None]:
        job = get_lot_job(tx, self._arc.namespace, self._arc.name)
        works = tx.rows(WorkRow, "lot_work_by_lots", job_id=job.job_id, lots=list(lots))
        return arc_states(tx, job, works)

    def _places(self, tx: Transaction, lots: Sequence[str]) -> list[_Place]:
        """The manifests that were published last, of all outputs of these lots.

        Its job may have been wired otherwise since: what it does not write now is not its own.
        """
        job = get_lot_job(tx, self._arc.namespace, self._arc.name)
        named = {find_dataset(tx, r.namespace, r.name): r for r in output_refs(self._arc)}
        made: dict[str, tuple[DatasetRef, str]] = {}
        for dataset_id, ref in named.items():
            if dataset_id not in job.output_ids:
                continue
            rows = tx.rows(StatusRow, "lot_outputs", dataset_id=dataset_id, lots=list(lots))
            made |= {row.version_id: (ref, row.lot) for row in rows if row.version_id is not None}
        found = manifest_rows(tx, list(made))
        return [_Place(*made[version], row) for version, row in found.items()]

    def _show(self, lot: str, state: ArcState | None) -> bool:
        """Let the one key of a lot tell its state; whether it did not."""
        arc = self._arc.ref
        wanted = {arc_key(arc, lot, state)} if state else set()
        there = {entry.key for entry in self._objects.list(arc_folder(arc, lot))}
        for key in wanted - there:
            self._objects.put(key, b"{}")
        for key in there - wanted:
            self._objects.delete(key)
        return there != wanted

    def _remove_strays(self) -> int:
        """Remove the keys of lots that the arc does not know, as the listing comes to them."""
        folder = arc_folder(self._arc.ref)
        keys = (entry.key for entry in self._objects.list(folder))
        removed = 0
        while some := {key: _lot_of(key, folder) for key in islice(keys, LOTS_AT_ONCE)}:
            lots = sorted(set(some.values()))
            with self._catalog.read() as tx:
                rows = tx.rows(WorkRow, "lot_work_by_lots", job_id=self._row.job_id, lots=lots)
            known = {row.lot for row in rows}
            for key, lot in some.items():
                if lot not in known:
                    self._objects.delete(key)
                    removed += 1
        return removed

    def _remove_former(self) -> int:
        """Remove the keys that name a former project or version of the arc, or no namespace."""
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
    """Bring the keys of a lot into line for the arc that has made it, if an arc has."""
    with catalog.read() as tx:
        of_lot = {"dataset_id": find_dataset(tx, namespace, dataset), "lots": [lot]}
        makers = [row.job_id for row in tx.rows(StatusRow, "lot_outputs", **of_lot)]
        arcs = tx.rows(ArcRow, "arcs_by_ids", ids=makers)
    for arc in arcs:
        Sync(catalog, objects, arc.namespace, arc.name).follow([lot])


def _lot_of(key: str, folder: str) -> str:
    return unquote(key.removeprefix(f"{folder}/").partition("/")[0].removeprefix("lot="))


log = logging.getLogger(__name__)

_AT_ONCE = 100
_NO_ID = "00000000-0000-0000-0000-000000000000"  # before every id


class KeyRepair:
    """Brings the keys of lots into line that were noted, and never settled."""

    def __init__(self, catalog: WriteQueue, objects: Objects) -> None:
        self._catalog = catalog
        self._objects = objects

    def run(self, is_stopped: Callable[[], bool] = lambda: False) -> int:
        """Repair the noted lots that no engine works on, and return how many they were."""
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
        """Repair the keys of one lot; what cannot be repaired here is reported by `check`."""
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
        note_the_dead(catalog, objects, refs, row.owner_id, row.lot)
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
            held = tx.rows(StatusRow, "lot_outputs", **which)
            versions = [row.version_id for row in held if row.version_id is not None]
            manifests = manifest_rows(tx, versions).values()
        ref = DatasetRef(arrival.namespace, arrival.name, arrival.arrival.version)
        for row in manifests:
            follow_manifest(self._objects, lot, ref, row)
        log.info("the keys of lot %s of %s were repaired", lot, arrival.name)
