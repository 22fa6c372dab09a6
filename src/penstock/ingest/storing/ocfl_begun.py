"""What deposits have put into a version of an OCFL object that may not be decided yet."""

from collections.abc import Iterable

from penstock.ingest.storing.ocfl_inventory import Inventory, folder_start
from penstock.objects import Entry, Objects


def mark_of(place: str, key: str) -> str:
    """What lies in a version while the content of a deposit that was given up is removed."""
    return f"{place}/content/{folder_start(key)}given-up"


def begun(objects: Objects, place: str, key: str) -> list[str]:
    """The content that a deposit has put into a version, and the mark if it was given up."""
    folder = f"{place}/content"
    start = f"{folder}/{folder_start(key)}"
    return [entry.key for entry in objects.list(folder) if entry.key.startswith(start)]


def remove_begun(objects: Objects, place: str, key: str) -> None:
    """Remove the content that a deposit has put into a version; the mark stays."""
    for content in begun(objects, place, key):
        if content != mark_of(place, key):
            objects.delete(content)


def is_whole(objects: Objects, root: str, inventory: Inventory, entries: Iterable[Entry]) -> bool:
    """Whether the content of the newest version is there.

    A listing may miss what is written again meanwhile: whatever it lacks is looked for by name.
    """
    listed = {entry.key for entry in entries}
    named = (f"{root}/{path}" for paths in inventory.manifest.values() for path in paths)
    newest = {key for key in named if key.startswith(f"{root}/{inventory.head}/")}
    return all(objects.exists(key) for key in newest - listed)
