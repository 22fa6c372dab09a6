"""Search for stored objects with missing or truncated files, without reading the files.

Each object costs two requests to its store, a listing and its inventory, and one row of the
database for each version. The listing shows missing files. The sizes of a version's files must add
up to its recorded size. If they do not, the object's storage manifests show the file with another
size.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Final

from penstock.catalog.rows import Row
from penstock.db import Database
from penstock.errors import PenstockError
from penstock.ingest.context import CollectionCache, StorageRegistry
from penstock.schema.ingest import Finding
from penstock.store.write_queue import WriteQueue

_PAGE: Final = 500
_READERS: Final = 8


class ObjectSize(Row, frozen=True):
    """A stored version and the recorded bytes of its files."""

    ark: str
    version: int
    collection: str
    bytes: int


def check(
    collections: CollectionCache,
    storage: StorageRegistry,
    database: WriteQueue | Database,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Finding]:
    """Find objects with missing files or files of another size, a page of objects at a time."""
    after = ""
    with ThreadPoolExecutor(_READERS, thread_name_prefix="lost-files") as pool:
        while not stop():
            with database.read() as tx:
                arks = [ark for ark, _ in tx.fetch("objects_stored_from", after=after, most=_PAGE)]
                rows = tx.rows(ObjectSize, "object_sizes_by_arks", ids=arks)
            if not arks:
                return
            after = arks[-1]
            objects = [list(same) for _, same in groupby(rows, key=lambda row: row.ark)]
            for faults in pool.map(
                lambda versions: _find_faults(collections, storage, versions, stop), objects
            ):
                yield from faults


def _find_faults(
    collections: CollectionCache,
    storage: StorageRegistry,
    versions: Sequence[ObjectSize],
    stop: Callable[[], bool],
) -> list[Finding]:
    newest = versions[-1]
    if stop():
        return []
    target = f"object {newest.ark}"
    try:
        depository = storage.depository(collections.get(newest.collection))
        expected = {version.version: version.bytes for version in versions}
        return [
            Finding(fault, target, repairable=False)
            for fault in depository.lost_files(newest.ark, expected)
        ]
    except PenstockError as error:
        return [Finding(f"cannot be read: {error}", target, repairable=False)]
