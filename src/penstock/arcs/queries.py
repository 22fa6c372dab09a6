"""Reading arcs, the contents of their lots, and their states."""

from collections.abc import Sequence

from penstock import ids
from penstock.arcs.rows import ArcRow, AttemptRow, PartRow
from penstock.arcs.spec import Arc
from penstock.arcs.workload.task import InputLot
from penstock.db import Transaction
from penstock.errors import NotFound
from penstock.locks.commands.claims import ClaimedLot
from penstock.locks.rows import LotJobRow, WorkRow
from penstock.lots.manifests import DatasetRef, Item, Manifest, decode
from penstock.lots.rows import ManifestRow
from penstock.objects import Objects
from penstock.states import ArcState, ManifestState, RunState, WorkState
from penstock.store.write_queue import WriteQueue


def all_arcs(tx: Transaction) -> list[ArcRow]:
    """Return every arc whose job was not deleted, by name."""
    return tx.rows(ArcRow, "all_arcs")


def find_arc(tx: Transaction, namespace: str, name: str) -> ArcRow:
    """Return an arc, or raise NotFound."""
    rows = tx.rows(ArcRow, "arcs_by_ids", ids=[ids.job_id(namespace, name)])
    if not rows:
        raise NotFound(f"there is no arc {namespace}/{name}; `penstock arcs list` lists them")
    return rows[0]


def output_refs(arc: Arc) -> tuple[DatasetRef, ...]:
    """Return the datasets that an arc writes, as manifests name them."""
    pairs = zip(arc.output_names, arc.outputs, strict=True)
    return tuple(DatasetRef(name.namespace, name.name, out.version) for name, out in pairs)


def parts_of(tx: Transaction, job_id: str, lot: str) -> dict[str, PartRow]:
    """Return the parts of an unpublished lot that were ever run, by name."""
    rows = tx.rows(PartRow, "arc_parts_of_lots", job_id=job_id, lots=[lot])
    return {row.part: row for row in rows}


def attempts_of(tx: Transaction, job_id: str, lot: str) -> list[AttemptRow]:
    """Return the failed attempts of an arc on a lot."""
    return tx.rows(AttemptRow, "arc_attempts_of_lot", job_id=job_id, lot=lot)


def manifest_rows(tx: Transaction, versions: Sequence[str]) -> dict[str, ManifestRow]:
    """Return the manifests of versions, by version id."""
    rows = tx.rows(ManifestRow, "lot_manifests_by_versions", ids=list(versions))
    return {row.version_id: row for row in rows}


def input_lots(catalog: WriteQueue, claim: ClaimedLot, objects: Objects) -> tuple[InputLot, ...]:
    """Return the lots that a claim reads: for each input its pinned version and contents."""
    versions = [pinned.version for pinned in claim.inputs if pinned.version is not None]
    with catalog.read() as tx:
        rows = manifest_rows(tx, versions)
    # The database connection is returned first, because the store may be slow.
    lots = []
    for pinned in claim.inputs:
        row = rows.get(pinned.version or "")
        items = read_items(objects, row) if row is not None else ()
        state = ManifestState(row.state) if row is not None else ManifestState.COMPLETE
        lots.append(InputLot(pinned.namespace, pinned.name, pinned.version or "", state, items))
    return tuple(lots)


def read_manifest(objects: Objects, key: str) -> Manifest:
    """Read a manifest in the object store."""
    return decode(objects.get(key), f"{objects.url}/{key}")


def read_items(objects: Objects, row: ManifestRow) -> tuple[Item, ...]:
    """Return all items of a version of a lot, with those of its parts."""
    if row.state in (ManifestState.EMPTY, ManifestState.REMOVED):
        return ()
    manifest = read_manifest(objects, row.key)
    items = list(manifest.uris)
    for line in manifest.parts:
        if line.state is not ManifestState.EMPTY:
            items += read_manifest(objects, line.key).uris
    return tuple(items)


def arc_states(
    tx: Transaction, job: LotJobRow, rows: Sequence[WorkRow]
) -> dict[str, ArcState | None]:
    """Return the states of an arc with lots, derived from their rows and manifests."""
    if not rows:
        return {}
    lots = [row.lot for row in rows]
    which = {"job_id": job.job_id, "lots": lots}
    attempts: dict[str, list[AttemptRow]] = {}
    for each in tx.rows(AttemptRow, "attempts_on_lots", **which):
        attempts.setdefault(each.lot, []).append(each)
    gated_rows = tx.fetch("gated_lots", **which, outputs=list(job.output_ids))
    gated, completed = {lot for (lot,) in gated_rows}, _completed(tx, rows)
    return {
        row.lot: _state(row, attempts.get(row.lot, ()), row.lot in completed, row.lot in gated)
        for row in rows
    }


def _completed(tx: Transaction, rows: Sequence[WorkRow]) -> set[str]:
    """Return the lots whose last attempt was completed, also if they are on hold now."""
    done = {row.lot for row in rows if row.state == WorkState.DONE}
    tried = {row.run_id: row.lot for row in rows if row.tries and row.lot not in done}
    states = tx.fetch("run_states", ids=[run for run in tried if run]) if tried else ()
    return done | {tried[run] for run, state in states if state == RunState.COMPLETED}


def _state(
    work: WorkRow, attempts: Sequence[AttemptRow], is_made: bool, is_gated: bool
) -> ArcState | None:
    if work.state == WorkState.RUNNING:
        return ArcState.RUNNING
    if work.state == WorkState.DONE and work.unmade:
        return ArcState.MISSING
    if is_made:
        return ArcState.PARTIAL if is_gated else ArcState.COMPLETE
    if not work.tries:  # no attempt since it was resubmitted
        return None
    gone = all(attempt.state == ManifestState.REMOVED for attempt in attempts)
    return ArcState.MISSING if attempts and gone else ArcState.PARTIAL
