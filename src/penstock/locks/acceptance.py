"""Acceptance of a lot whose checks failed, with a complete manifest."""

import msgspec

from penstock.errors import NotFound
from penstock.locks.commands.admin import AcceptLot
from penstock.locks.queries.claims import find_dataset
from penstock.locks.rows import StatusRow
from penstock.lots.manifest_files import put_manifest, show_manifest
from penstock.lots.manifests import decode
from penstock.lots.rows import ManifestRow
from penstock.objects import Objects
from penstock.states import ManifestState
from penstock.store.write_queue import WriteQueue

# The comment names no person: two people who accept at once must write the same manifest.
ACCEPTED = "accepted although checks failed; the log of the lot says by whom, and why"


def accept(
    catalog: WriteQueue,
    objects: Objects,
    namespace: str,
    dataset: str,
    lot: str,
    *,
    who: str,
    why: str,
) -> None:
    """Accept a lot although checks of it failed."""
    with catalog.read() as tx:
        named = find_dataset(tx, namespace, dataset)
        rows = tx.rows(StatusRow, "lot_outputs", dataset_id=named, lots=[lot])
        version = rows[0].version_id if rows else None
        if version is None:
            raise NotFound(f"there is no lot {lot} of {namespace}/{dataset}")
        noted = tx.rows(ManifestRow, "lot_manifests_by_versions", ids=[version])
    if not noted or noted[0].state != ManifestState.PARTIAL:
        catalog.submit(AcceptLot(who, why, namespace, dataset, lot, version)).result()
        return
    partial = decode(objects.get(noted[0].key), noted[0].key)
    state = ManifestState.COMPLETE if partial.count else ManifestState.EMPTY
    whole = msgspec.structs.replace(partial, state=state, comment=ACCEPTED)
    _, note = put_manifest(objects, whole)
    catalog.submit(AcceptLot(who, why, namespace, dataset, lot, version, note)).result()
    show_manifest(objects, lot, whole.dataset, note)
