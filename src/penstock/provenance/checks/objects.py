"""Invariants of public keys, and of data that attempts leave in the object store."""

from collections.abc import Iterator
from typing import Final

from penstock.arcs.arrivals.rows import all_arrivals
from penstock.arcs.outputs.orphans import OrphanSearch
from penstock.arcs.outputs.state_keys import Sync
from penstock.arcs.queries import all_arcs, manifest_rows
from penstock.errors import NotFound
from penstock.locks.rows import StatusRow, WorkRow
from penstock.lots.manifest_files import is_shown
from penstock.lots.manifests import DatasetRef, manifest_key
from penstock.provenance.checks.invariant import PAGE, Grounds, Invariant
from penstock.states import ManifestState


def stale_keys(grounds: Grounds) -> Iterator[str]:
    """Yield state keys and well-known manifests of arcs that do not follow the database."""
    if not grounds.deep:
        return
    objects = grounds.objects()
    with grounds.database.read() as tx:
        arcs = all_arcs(tx)
    for arc in arcs:
        sync = Sync(grounds.database, objects, arc.namespace, arc.name)
        after = ""
        while not grounds.stop.is_set():
            which = {"job_id": arc.job_id, "after": after, "most": PAGE}
            with grounds.database.read() as tx:
                lots = [row.lot for row in tx.rows(WorkRow, "arc_lots_after", **which)]
            if not lots:
                break
            odd = dict.fromkeys(lot for lot, _ in sync.differences(lots))
            # An engine may have written them meanwhile, so look again.
            for lot, fault in sync.differences(list(odd)) if odd else ():
                yield f"lot {lot} of arc {arc.namespace}/{arc.name}: {fault}"
            after = lots[-1]


def stale_arrivals(grounds: Grounds) -> Iterator[str]:
    """Yield well-known manifests of arrived lots that are not the last published ones."""
    if not grounds.deep:
        return
    with grounds.database.read() as tx:
        arrivals = all_arrivals(tx)
    for row in arrivals:
        ref = DatasetRef(row.namespace, row.name, row.arrival.version)
        after = ""
        while not grounds.stop.is_set():
            which = {"dataset_id": row.dataset_id, "after": after, "most": PAGE}
            with grounds.database.read() as tx:
                lots = [lot for (lot,) in tx.fetch("ready_lots_of_dataset", **which)]
            if not lots:
                break
            for lot in lots:
                if not _is_arrived_shown(grounds, row.dataset_id, ref, lot):
                    key = manifest_key(ref, lot, ManifestState.COMPLETE)
                    yield (
                        f"lot {lot} of {row.namespace}/{row.name}: the last "
                        f"published manifest is not at its well-known key, such as {key}"
                    )
            after = lots[-1]


def _is_arrived_shown(grounds: Grounds, dataset_id: str, ref: DatasetRef, lot: str) -> bool:
    """Whether the well-known key follows the database; a watcher may be writing it."""
    for _ in range(2):
        with grounds.database.read() as tx:
            status_rows = tx.rows(StatusRow, "lot_outputs", dataset_id=dataset_id, lots=[lot])
            versions = [row.version_id for row in status_rows if row.version_id is not None]
            manifests = manifest_rows(tx, versions).values()
        try:
            if all(is_shown(grounds.objects(), lot, ref, row) for row in manifests):
                return True
        except NotFound:
            continue
    return False


def orphans(grounds: Grounds) -> Iterator[str]:
    """Yield objects of ended attempts that no manifest lists."""
    if not grounds.deep:
        return
    for page in OrphanSearch(grounds.database, grounds.objects()).pages():
        if grounds.stop.is_set():
            return
        for one in page:
            yield (
                f"{one.key}, which attempt {one.attempt} left, is not listed; "
                "`penstock objects sweep` removes it"
            )


INVARIANTS: Final[tuple[Invariant, ...]] = (
    Invariant(
        "state-keys",
        "state keys and well-known manifests of arcs follow the database (--deep)",
        stale_keys,
    ),
    Invariant(
        "arrival-keys",
        "well-known manifests of arrived lots are the last published ones (--deep)",
        stale_arrivals,
    ),
    Invariant(
        "orphans",
        "a manifest or a list of leftovers lists all data of ended attempts (--deep)",
        orphans,
    ),
)
