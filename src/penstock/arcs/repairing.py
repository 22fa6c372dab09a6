"""Repairing the keys of lots whose engine, or watcher, died before it had written them.

The database notes each lot whose keys are to be written, until they are. What is noted of a lot
that nobody works on any more is repaired: twice, if need be, for the database is right in any case.
"""

import logging
from collections.abc import Callable

from penstock import logs
from penstock.arcs.arrival_rows import ArrivalRow
from penstock.arcs.commands import SettleKeys
from penstock.arcs.leftovers import clean, note_the_dead
from penstock.arcs.reading import arc_states, manifest_rows, output_refs
from penstock.arcs.rows import ArcRow, UnsettledRow
from penstock.arcs.syncing import Sync
from penstock.catalog.catalog import Catalog
from penstock.errors import PenstockError, Unavailable
from penstock.locks.reading import get_lot_job
from penstock.locks.rows import StatusRow, WorkRow
from penstock.lots.files import follow_manifest
from penstock.lots.manifests import DatasetRef
from penstock.objects import Objects
from penstock.states import ArcState

log = logging.getLogger(__name__)

_AT_ONCE = 100
_NO_ID = "00000000-0000-0000-0000-000000000000"  # before every id


class KeyRepair:
    """Brings the keys of lots into line that were noted, and never settled."""

    def __init__(self, catalog: Catalog, objects: Objects) -> None:
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
