"""Verification: reading the bytes of lots, and of the data behind them, and comparing digests."""

import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TypeVar

from msgspec import Struct

from penstock.catalog.rows import replace
from penstock.db import Database
from penstock.errors import Invalid, NotFound, PenstockError
from penstock.lots.manifests import Item, Manifest, PartLine, decode
from penstock.lots.rows import ManifestRow
from penstock.objects import Objects
from penstock.objects.uris import find_object
from penstock.provenance.history import LotName, versions_of
from penstock.provenance.trace import FoundObject, Walk, walk_back
from penstock.schema.lots import UriType
from penstock.schema.provenance import VerifyCounts, VerifyStep, VerifyStepKind
from penstock.schema.shape import Shape
from penstock.states import ManifestState

T = TypeVar("T")
R = TypeVar("R")
TOLD_SECONDS = 0.5
READERS = 4
_PAGE = 200


class Listed(Struct, frozen=True):
    """An item, and the manifest that lists it: the lot's own, or that of a part."""

    item: Item
    manifest: Manifest

    @property
    def part(self) -> str | None:
        """The part that it belongs to."""
        return self.manifest.part or None


class Checked(Struct, frozen=True):
    """The bytes read of an item or a manifest, and its fault, if any."""

    where: str
    size: int
    fault: str | None


def read_manifest(objects: Objects, key: str, digest: str | None) -> Manifest:
    """Read a manifest and compare it with its recorded `digest`."""
    content = objects.get(key)
    actual = hashlib.sha256(content).hexdigest()
    if digest is not None and actual != digest:
        raise Invalid(f"{key} has sha256 {actual}, but {digest} was recorded when it was published")
    return decode(content, f"{objects.url}/{key}")


def list_items(objects: Objects, manifest: Manifest) -> Iterator[Listed]:
    """Yield all items of a manifest and its parts; each part is read when its items are due."""
    yield from (Listed(item, manifest) for item in manifest.uris)
    for line in manifest.parts:
        if line.state is ManifestState.EMPTY:
            continue
        of_part = read_manifest(objects, line.key, None)
        _check_part(line, of_part)
        yield from (Listed(item, of_part) for item in of_part.uris)


def _check_part(line: PartLine, of_part: Manifest) -> None:
    """Compare a part's manifest with the line of the lot's, because it has no recorded digest."""
    expected = f"{line.state}, {line.uris} objects, {line.bytes} bytes"
    actual = f"{of_part.state}, {of_part.count} objects, {of_part.bytes} bytes"
    if expected != actual:
        raise Invalid(f"{line.key} has {actual}, but the manifest of the lot lists {expected}")


def check_item(objects: Objects, entry: Listed) -> Checked:
    """Read an item to its end and compare; of a folder or prefix, only check the existence."""
    item = entry.item
    try:
        store, key = find_object(objects, item.uri)
        if entry.manifest.uri_type is not UriType.IDENTIFIER:
            return Checked(item.uri, 0, None if _is_there(store, key) else "it does not exist")
        size, actual = _digest(store, key, _algorithm(item.digest))
    except NotFound:
        return Checked(item.uri, 0, "it does not exist")
    except PenstockError as error:
        return Checked(item.uri, 0, str(error))
    if item.size is not None and size != item.size:
        return Checked(item.uri, size, f"it has {size} bytes, and should have {item.size}")
    expected = (item.digest or "").rpartition(":")[2].lower()
    if expected and actual != expected:
        return Checked(item.uri, size, f"its digest is {actual}, but should be {item.digest}")
    return Checked(item.uri, size, None)


def _is_there(store: Objects, key: str) -> bool:
    folder = key.rstrip("/")
    return store.exists(folder) or any(
        entry.key.startswith(key) for entry in store.list(folder.rpartition("/")[0])
    )


def _algorithm(digest: str | None) -> str:
    name = (digest or "").rpartition(":")[0].lower().replace("-", "")
    if name and name not in hashlib.algorithms_guaranteed:
        raise Invalid(f"its digest {digest} has an unknown algorithm")
    return name or "sha256"


def _digest(store: Objects, key: str, algorithm: str) -> tuple[int, str]:
    size, digest = 0, hashlib.new(algorithm)
    with store.get_stream(key) as chunks:
        for chunk in chunks:
            size += len(chunk)
            digest.update(chunk)
    return size, digest.hexdigest()


def map_in_order(
    pool: ThreadPoolExecutor, work: Callable[[T], R], items: Iterable[T], most: int
) -> Iterator[R]:
    """Yield the results of work on items in their order, with a few in parallel."""
    under_way: deque[Future[R]] = deque()
    for item in items:
        under_way.append(pool.submit(work, item))
        if len(under_way) >= most:
            yield under_way.popleft().result()
    while under_way:
        yield under_way.popleft().result()


TOLD_SECONDS = 0.5
READERS = 4
_PAGE = 200


class VerificationOrder(Shape, frozen=True):
    """What to verify: a lot or all, current or all versions, with or without inputs."""

    lot: str | None = None
    all_versions: bool = False
    upstream: bool = False


@dataclass
class _Behind:
    """The versions and objects behind one lot."""

    arks: set[str] = field(default_factory=set)
    items: set[tuple[object, ...]] = field(default_factory=set)

    def is_new(self, entry: Listed) -> bool:
        """Whether an item must be read: versions may share it."""
        item = entry.item
        if item.ark is not None:
            self.arks.add(item.ark)
        expected = (item.uri, item.size, item.digest, entry.manifest.uri_type)
        is_new = expected not in self.items
        self.items.add(expected)
        return is_new


@dataclass
class Verification:
    """A running verification; any thread may set `stop` to end it."""

    database: Database
    objects: Objects
    object_faults: Callable[[str, str], Iterable[str]]  # of an ARK and its collection
    dataset: LotName  # its lot is not checked
    order: VerificationOrder
    stop: threading.Event = field(default_factory=threading.Event)
    _done: VerifyCounts = field(default_factory=VerifyCounts)
    _seen: set[str] = field(default_factory=set)  # versions and ARKs
    _told: float = 0.0

    def steps(self) -> Iterator[VerifyStep]:
        """Yield every fault, the progress now and then, and at last the result."""
        with ThreadPoolExecutor(READERS, thread_name_prefix="verify") as pool:
            for lot, current in takewhile(lambda _: not self.stop.is_set(), self._lots()):
                self._add(lots=1)
                yield from self._lot(pool, lot, current)
        if not self.stop.is_set():
            yield VerifyStep(VerifyStepKind.END, self._done)

    def _lots(self) -> Iterator[tuple[str, str | None]]:
        dataset_id, wanted = self.dataset.dataset_id, self.order.lot
        if wanted is not None:
            with self.database.read() as tx:
                row = tx.fetch_one("lot_now", dataset_id=dataset_id, lot=wanted)
            yield wanted, row[0] if row is not None else None
            return
        after = ""
        while True:
            with self.database.read() as tx:
                page = tx.fetch(
                    "lots_of_dataset_from", dataset_id=dataset_id, after=after, most=_PAGE
                )
            if not page:
                return
            after = page[-1][0]
            yield from page

    def _lot(self, pool: ThreadPoolExecutor, lot: str, current: str | None) -> Iterator[VerifyStep]:
        behind = _Behind()
        level = self._roots(lot, current)
        depth = None if self.order.upstream else 0
        while level and not self.stop.is_set():
            with self.database.read() as tx:
                walk = walk_back(tx, level, depth, self._seen)
            self._seen |= walk.nodes.keys() | walk.manifests.keys()
            behind.arks |= _arks(walk)
            for row in _in_order(walk):
                yield from self._version(pool, row, behind)
            level = walk.beyond
        fresh = sorted(behind.arks - self._seen)
        self._seen |= behind.arks
        for start in range(0, len(fresh), _PAGE):
            yield from self._stored(fresh[start : start + _PAGE])

    def _roots(self, lot: str, current: str | None) -> dict[str, str | None]:
        roots = [current] if current is not None else []
        if self.order.all_versions:
            name = replace(self.dataset, lot=lot)
            with self.database.read() as tx:
                roots += versions_of(tx, name)
        return dict.fromkeys(roots, lot)

    def _stored(self, arks: list[str]) -> Iterator[VerifyStep]:
        """Read the objects of deposits, each once, in all its versions."""
        with self.database.read() as tx:
            stored = tx.rows(FoundObject, "objects_by_arks", arks=arks)
        for ark, collection in {each.ark: each.collection for each in stored}.items():
            if self.stop.is_set():
                return
            self._add(objects=1)
            for fault in self.object_faults(ark, collection):
                yield self._fault(ark, fault)
            if time.monotonic() - self._told > TOLD_SECONDS:
                yield self._progress()

    def _version(
        self, pool: ThreadPoolExecutor, row: ManifestRow, behind: _Behind
    ) -> Iterator[VerifyStep]:
        if row.state == ManifestState.REMOVED:
            self._add(removed=1)
            return
        self._add(versions=1)

        def check(entry: Listed) -> Checked:
            return check_item(self.objects, entry)

        manifest = None
        try:
            manifest = read_manifest(self.objects, row.key, row.digest)
            entries = takewhile(
                lambda _: not self.stop.is_set(), list_items(self.objects, manifest)
            )
            for checked in map_in_order(pool, check, filter(behind.is_new, entries), 2 * READERS):
                self._add(files=1, bytes=checked.size)
                if checked.fault is not None:
                    yield self._fault(checked.where, checked.fault, row)
                elif time.monotonic() - self._told > TOLD_SECONDS:
                    yield self._progress()
        except PenstockError as error:
            is_lost = manifest is None and isinstance(error, NotFound)  # or it is one of a part
            what = "the manifest is not in the store" if is_lost else str(error)
            yield self._fault(row.key, what, row)

    def _fault(self, where: str, what: str, row: ManifestRow | None = None) -> VerifyStep:
        self._add(faults=1)
        lot, version = (row.lot, row.version_id) if row is not None else (None, None)
        return VerifyStep(VerifyStepKind.FAULT, self._done, where, what, lot, version)

    def _progress(self) -> VerifyStep:
        self._told = time.monotonic()
        return VerifyStep(VerifyStepKind.PROGRESS, self._done)

    def _add(self, **more: int) -> None:
        grown = {name: getattr(self._done, name) + count for name, count in more.items()}
        self._done = replace(self._done, **grown)


def _in_order(walk: Walk) -> list[ManifestRow]:
    depths = {version_id: node.depth for version_id, node in walk.nodes.items()}
    return sorted(walk.manifests.values(), key=lambda row: (depths.get(row.version_id, 0), row.at))


def _arks(walk: Walk) -> set[str]:
    deposits = [node.run.deposit for node in walk.nodes.values() if node.run is not None]
    return {each.ark for each in deposits if each is not None and each.ark is not None}
