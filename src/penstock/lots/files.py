"""Manifests as files in the object store: under the attempt that wrote them, and where all look."""

from penstock.catalog.known_facets import DatasetName
from penstock.lots.manifests import DatasetRef, Manifest, ManifestNote, encode, manifest_key, note
from penstock.objects import Objects
from penstock.states import ManifestState


def put_manifest(store: Objects, manifest: Manifest) -> tuple[DatasetName, ManifestNote]:
    """Write a manifest where nobody reads yet: under the attempt."""
    ref = manifest.dataset
    key = manifest_key(ref, manifest.lot, manifest.state, manifest.attempt, manifest.part)
    content = encode(manifest)
    store.put(key, content)
    return DatasetName(ref.namespace, ref.name), note(manifest, key, content)


def show_manifest(objects: Objects, lot: str, ref: DatasetRef, note: ManifestNote) -> None:
    """Let the well-known key of a lot hold the manifest that was published last."""
    objects.put(manifest_key(ref, lot, note.state), objects.get(note.key))
    for state in ManifestState:
        if state is not note.state:
            objects.delete(manifest_key(ref, lot, state))
