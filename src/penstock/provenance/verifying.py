"""Reading the bytes of lots again, with what stands behind them, and comparing."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import takewhile

from penstock.catalog.rows import replace
from penstock.catalog.shapes import Shape
from penstock.db import Database
from penstock.errors import NotFound, PenstockError
from penstock.lots.rows import ManifestRow
from penstock.objects import Objects
from penstock.provenance.contents import (
    Checked,
    Listed,
    check_item,
    listed,
    read_manifest,
    side_by_side,
)
from penstock.provenance.history import LotName
from penstock.provenance.rows import FoundObject
from penstock.provenance.walking import Walk, walk_back
from penstock.states import ManifestState

TOLD_SECONDS = 0.5
READERS = 4
_PAGE = 200


class StepKind(StrEnum):
    """What a step of a verification tells."""

    PROGRESS = "progress"
    FAULT = "fault"
    END = "end"


class Counts(Shape, frozen=True):
    """How much was read so far; objects are those that deposits have stored."""

    lots: int = 0
    versions: int = 0
    files: int = 0
    bytes: int = 0
    objects: int = 0
    faults: int = 0


class Step(Shape, frozen=True):
    """How far it is and, if it is a fault, what is wrong where."""

    kind: StepKind
    done: Counts
    where: str | None = None
    what: str | None = None
    lot: str | None = None
    version: str | None = None


class Order(Shape, frozen=True):
    """What to verify: a lot or all, as it is now or ever was, with what it was made from."""

    lot: str | None = None
    all_versions: bool = False
    upstream: bool = False


@dataclass
class Verification:
    """One verification under way; `stop` may be set by anybody, and ends it."""

    database: Database
    objects: Objects
    object_faults: Callable[[str, str], Iterable[str]]  # of an ARK and its collection
    dataset: LotName  # its lot is not looked at
    order: Order
    stop: threading.Event = field(default_factory=threading.Event)
    _done: Counts = field(default_factory=Counts)
    _seen: set[str] = field(default_factory=set)  # versions and ARKs
    _told: float = 0.0

    def steps(self) -> Iterator[Step]:
        """Every fault, how far it is now and then, and at last what it came to."""
        with ThreadPoolExecutor(READERS, thread_name_prefix="verify") as pool:
            for lot, current in takewhile(lambda _: not self.stop.is_set(), self._lots()):
                self._add(lots=1)
                yield from self._lot(pool, lot, current)
        if not self.stop.is_set():
            yield Step(StepKind.END, self._done)

    def _lots(self) -> Iterator[tuple[str, str | None]]:
        """The lots in question, each with the version that it has now."""
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

    def _lot(self, pool: ThreadPoolExecutor, lot: str, current: str | None) -> Iterator[Step]:
        rows, arks = self._behind(lot, current)
        for row in rows:
            if row.version_id not in self._seen:
                self._seen.add(row.version_id)
                self._add(versions=1)
                yield from self._version(pool, row, arks)
        fresh = sorted(arks - self._seen)
        self._seen |= arks
        for start in range(0, len(fresh), _PAGE):
            yield from self._stored(fresh[start : start + _PAGE])

    def _behind(self, lot: str, current: str | None) -> tuple[list[ManifestRow], set[str]]:
        """The manifests that are to be read for a lot, and ARKs of deposits behind them."""
        dataset_id = self.dataset.dataset_id
        with self.database.read() as tx:
            rows = tx.rows(ManifestRow, "manifests_of_lots", dataset_id=dataset_id, lots=[lot])
            if not self.order.all_versions:
                rows = [row for row in rows if row.version_id == current]
            if current is None:
                return rows, set()
            name = LotName(dataset_id, self.dataset.namespace, self.dataset.dataset, lot)
            walk = walk_back(tx, name, None, None if self.order.upstream else 0)
        there = (row for row in walk.manifests.values() if row.state != ManifestState.REMOVED)
        known = {row.version_id for row in rows}
        return rows + [row for row in there if row.version_id not in known], _arks(walk)

    def _stored(self, arks: list[str]) -> Iterator[Step]:
        """Read the objects that deposits have stored, each once, in all its versions."""
        with self.database.read() as tx:
            found = tx.rows(FoundObject, "objects_by_arks", arks=arks)
        for ark, collection in {each.ark: each.collection for each in found}.items():
            if self.stop.is_set():
                return
            self._add(objects=1)
            for fault in self.object_faults(ark, collection):
                yield self._fault(ark, fault)
            if time.monotonic() - self._told > TOLD_SECONDS:
                yield self._progress()

    def _version(
        self, pool: ThreadPoolExecutor, row: ManifestRow, arks: set[str]
    ) -> Iterator[Step]:
        def check(entry: Listed) -> Checked:
            if entry.item.ark is not None:
                arks.add(entry.item.ark)
            return check_item(self.objects, entry)

        try:
            manifest = read_manifest(self.objects, row.key, row.digest)
            entries = takewhile(lambda _: not self.stop.is_set(), listed(self.objects, manifest))
            for checked in side_by_side(pool, check, entries, 2 * READERS):
                self._add(files=1, bytes=checked.size)
                if checked.fault is not None:
                    yield self._fault(checked.where, checked.fault, row)
                elif time.monotonic() - self._told > TOLD_SECONDS:
                    yield self._progress()
        except NotFound:
            yield self._fault(row.key, "the manifest is not in the store", row)
        except PenstockError as error:
            yield self._fault(row.key, str(error), row)

    def _fault(self, where: str, what: str, row: ManifestRow | None = None) -> Step:
        self._add(faults=1)
        lot, version = (row.lot, row.version_id) if row is not None else (None, None)
        return Step(StepKind.FAULT, self._done, where, what, lot, version)

    def _progress(self) -> Step:
        self._told = time.monotonic()
        return Step(StepKind.PROGRESS, self._done)

    def _add(self, **more: int) -> None:
        grown = {name: getattr(self._done, name) + count for name, count in more.items()}
        self._done = replace(self._done, **grown)


def _arks(walk: Walk) -> set[str]:
    """The objects of the deposits that runs on the way were."""
    deposits = [node.run.deposit for node in walk.nodes.values() if node.run is not None]
    return {each.ark for each in deposits if each is not None and each.ark is not None}
