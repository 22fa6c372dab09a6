"""Manifests as files in the object store: under the attempt that wrote them, and where all look."""

import hashlib

from penstock.catalog.events.known_facets import DatasetName
from penstock.lots.manifests import DatasetRef, Manifest, ManifestNote, encode, manifest_key, note
from penstock.lots.rows import ManifestRow
from penstock.objects import Objects
from penstock.states import ManifestState

_SHOWN = (ManifestState.COMPLETE, ManifestState.PARTIAL, ManifestState.EMPTY)


def put_manifest(store: Objects, manifest: Manifest) -> tuple[DatasetName, ManifestNote]:
    """Write a manifest where nobody reads yet: under the attempt."""
    ref = manifest.dataset
    key = manifest_key(ref, manifest.lot, manifest.state, manifest.attempt, manifest.part)
    content = encode(manifest)
    store.put(key, content)
    return DatasetName(ref.namespace, ref.name), note(manifest, key, content)


def follow_manifest(objects: Objects, lot: str, ref: DatasetRef, row: ManifestRow) -> bool:
    """Let the well-known key hold the manifest that was published last; whether it did not."""
    if is_shown(objects, lot, ref, row):
        return False
    if row.state == ManifestState.REMOVED:
        for state in _SHOWN:
            objects.delete(manifest_key(ref, lot, state))
        return True
    note = ManifestNote(
        ManifestState(row.state), row.key, row.uris, row.bytes, row.digest, row.attempt
    )
    show_manifest(objects, lot, ref, note)
    return True


def is_shown(objects: Objects, lot: str, ref: DatasetRef, row: ManifestRow) -> bool:
    """Whether the well-known key holds the manifest that was published last, and no other does."""
    known = {state: key for state in _SHOWN if objects.exists(key := manifest_key(ref, lot, state))}
    if row.state == ManifestState.REMOVED:
        return not known
    if list(known) != [row.state]:
        return False
    content = objects.get(known[ManifestState(row.state)])
    return hashlib.sha256(content).hexdigest() == row.digest


def show_manifest(objects: Objects, lot: str, ref: DatasetRef, note: ManifestNote) -> None:
    """Let the well-known key of a lot hold the manifest that was published last."""
    objects.put(manifest_key(ref, lot, note.state), objects.get(note.key))
    for state in ManifestState:
        if state is not note.state:
            objects.delete(manifest_key(ref, lot, state))
