"""Keys whose names tell where arcs and lots stand, for tools that only list the object store.

They follow the database and are never read by us: `penstock arcs sync` makes them anew.
"""

from collections.abc import Sequence

from penstock.arcs.declaration import Arc
from penstock.lots.files import show_manifest
from penstock.lots.manifests import (
    DatasetRef,
    ManifestNote,
    arc_folder,
    arc_key,
)
from penstock.objects import Objects
from penstock.states import ArcState


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
