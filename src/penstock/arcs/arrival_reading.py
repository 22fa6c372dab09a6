"""Reading objects when they become part of a lot, for the digest that its manifest tells."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from penstock.arcs.arrival_seen import Landing
from penstock.arcs.arrivals import ArrivedRow, Step
from penstock.catalog.rows import replace
from penstock.errors import NotFound

T = TypeVar("T")
U = TypeVar("U")

_AT_ONCE_MAX = 8


class Stopped(Exception):
    """The watcher is to end, and reads no further; what it has not published it has not begun."""


class Reader:
    """Reads what arrives, as streams, up to a size; what is larger keeps no digest."""

    def __init__(
        self,
        landing: Landing,
        bytes_max: int,
        is_stopped: Callable[[], bool],
        *,
        has_empty_lots: bool = False,
    ) -> None:
        self._landing = landing
        self._bytes_max = bytes_max
        self._is_stopped = is_stopped
        self._has_empty_lots = has_empty_lots

    def read(self, step: Step) -> Step:
        """The step with the digests of what its lots gain, but for what is not there to be read.

        A change that is left with nothing is dropped, unless intervals without objects have lots.
        """
        fresh = [row for change in step.lots for row in change.add]
        found = iter(at_once(self._digested, fresh))
        lots = []
        for change in step.lots:
            rows = [next(found) for _ in change.add]
            there = tuple(row for row in rows if row is not None)
            if there or change.drop or (change.is_new and self._has_empty_lots):
                lots.append(replace(change, add=there))
        return replace(step, lots=tuple(lots))

    def _digested(self, row: ArrivedRow) -> ArrivedRow | None:
        key = self._landing.place.key(row.uri)
        assert key is not None, "what a listing has shown is at the place"
        if row.size > self._bytes_max or not self._bytes_max:
            return row
        size, digest = 0, hashlib.sha256()
        try:
            with self._landing.store.get_stream(key) as chunks:
                for chunk in chunks:
                    if self._is_stopped():
                        raise Stopped
                    size += len(chunk)
                    digest.update(chunk)
        except NotFound:
            self._landing.marks.note_gone(row.uri, row.modified)
            return None
        if size != row.size:
            return row  # it was changed since it was listed: it is late then, and read again
        return replace(row, digest=f"sha-256:{digest.hexdigest()}")


def at_once(work: Callable[[T], U], items: Sequence[T]) -> list[U]:
    """Do the same with every item: a store takes its time over each, and can do several."""
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(_AT_ONCE_MAX, len(items)), "arrivals") as threads:
        return list(threads.map(work, items))
