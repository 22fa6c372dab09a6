"""Manifests in the object store: under the attempt that wrote them, and at the well-known key."""

import hashlib

from penstock.catalog.events.known_facets import DatasetName
from penstock.lots.manifests import DatasetRef, Manifest, ManifestNote, encode, manifest_key, note
from penstock.lots.rows import ManifestRow
from penstock.objects import Objects
from penstock.states import ManifestState

_SHOWN = (ManifestState.COMPLETE, ManifestState.PARTIAL, ManifestState.EMPTY)


def put_manifest(store: Objects, manifest: Manifest) -> tuple[DatasetName, ManifestNote]:
    """Write a manifest under its attempt, where no reader looks yet."""
    ref = manifest.dataset
    key = manifest_key(ref, manifest.lot, manifest.state, manifest.attempt, manifest.part)
    content = encode(manifest)
    store.put(key, content)
    return DatasetName(ref.namespace, ref.name), note(manifest, key, content)


def follow_manifest(objects: Objects, lot: str, ref: DatasetRef, row: ManifestRow) -> bool:
    """Copy the last published manifest to the well-known key; return whether it changed."""
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
    """Whether only the well-known key of the last published manifest exists, with its content."""
    keys = {state: key for state in _SHOWN if objects.exists(key := manifest_key(ref, lot, state))}
    if row.state == ManifestState.REMOVED:
        return not keys
    if list(keys) != [row.state]:
        return False
    content = objects.get(keys[ManifestState(row.state)])
    return hashlib.sha256(content).hexdigest() == row.digest


def show_manifest(objects: Objects, lot: str, ref: DatasetRef, note: ManifestNote) -> None:
    """Copy a manifest to the well-known key of its lot, and delete those of other states."""
    objects.put(manifest_key(ref, lot, note.state), objects.get(note.key))
    for state in ManifestState:
        if state is not note.state:
            objects.delete(manifest_key(ref, lot, state))
