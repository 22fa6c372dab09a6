"""A cache of rows of one table, with the changes of the current batch."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Generic, TypeVar

from msgspec import Struct

R = TypeVar("R")
P = TypeVar("P", bound=Struct)

Rows = Iterable[tuple[Any, ...]]

_ABSENT: Any = object()


class UndoLog(list[tuple["TableCache[Any]", Any, Any, bool]]):
    """Undo records of the current command: table, key, former row, whether first changed."""

    def begin(self) -> None:
        """Start a new command."""
        self.clear()

    def undo(self) -> None:
        """Restore every row as of `begin`."""
        for table, key, row, first in reversed(self):
            table.put_back(key, row, first)
        self.clear()


class TableCache(Generic[R]):
    """A cache of rows that records which rows changed.

    A cached `None` means that the row does not exist. A key that is not cached is fetched on
    demand; filling the cache beforehand saves the round trip.
    """

    def __init__(self, fetch: Callable[[list[Any]], dict[Any, R]], undo: UndoLog) -> None:
        self._fetch = fetch
        self._undo = undo
        self._rows: dict[Any, R | None] = {}
        self.before: dict[Any, R | None] = {}  # rows of changed keys as of the start of the batch
        # Keys changed by the two batches before this one; neither may be committed yet.
        self._recent: tuple[set[Any], set[Any]] = set(), set()

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: Any) -> R | None:
        """Return the row, or None if it does not exist."""
        try:
            return self._rows[key]
        except KeyError:
            row = self._fetch([key]).get(key)
            self._rows[key] = row
            return row

    def put(self, key: Any, row: R | None) -> None:
        """Set a row; the flush of the batch writes it."""
        rows = self._rows
        former = rows.get(key, _ABSENT)
        first = key not in self.before
        self._undo.append((self, key, former, first))
        if first:
            self.before[key] = None if former is _ABSENT else former
        rows[key] = row

    def put_back(self, key: Any, row: Any, first_change: bool) -> None:
        """Undo one `put`."""
        if row is _ABSENT:
            self._rows.pop(key, None)
        else:
            self._rows[key] = row
        if first_change:
            del self.before[key]

    def missing(self, keys: Iterable[Any]) -> list[Any]:
        """Return the keys that are not cached."""
        rows = self._rows
        return [key for key in dict.fromkeys(keys) if key not in rows]

    def fill(self, keys: Iterable[Any], rows: dict[Any, R]) -> None:
        """Add fetched rows; keys without a row are recorded as absent."""
        for key in keys:
            self._rows.setdefault(key, rows.get(key))

    def prefetch(self, keys: Iterable[Any]) -> None:
        """Fetch the missing rows in one round trip."""
        if missing := self.missing(keys):
            self.fill(missing, self._fetch(missing))

    def learn(self, key: Any, row: R) -> None:
        """Add a row fetched along with others; a cached row is newer."""
        self._rows.setdefault(key, row)

    def changed(self) -> list[R]:
        """Return the rows to write."""
        rows = self._rows
        return [row for key in self.before if (row := rows[key]) is not None]

    def gone(self) -> list[Any]:
        """Return the keys of rows to delete."""
        rows = self._rows
        return [key for key, before in self.before.items() if before is not None and not rows[key]]

    def moved(self, *fields: str) -> list[R]:
        """Return the rows to write in which one of these fields changed."""
        pick = attrgetter(*fields)
        pairs = ((before, self._rows[key]) for key, before in self.before.items())
        return [row for was, row in pairs if was is not None and row and pick(was) != pick(row)]

    def parted(self, part: type[P]) -> tuple[list[R], list[P]]:
        """Return rows to write whole, and parts of rows in which only the part changed."""
        whole: list[R] = []
        parts: list[P] = []
        rows = self._rows
        for key, before in self.before.items():
            row = rows[key]
            if row is None:
                continue
            shape: Any = type(row)
            take, leave = _pickers(shape, part)
            if before is not None and leave(before) == leave(row):
                parts.append(part(*take(row)))
            else:
                whole.append(row)
        return whole, parts

    def unstored(self) -> list[R]:
        """Return rows that a query may not see yet, because their batch is not committed."""
        rows = self._rows
        keys = self.uncommitted_keys() | self._recent[0]
        return [row for key in keys if (row := rows.get(key)) is not None]

    def uncommitted_keys(self) -> set[Any]:
        """Return the keys changed by this batch or by the one before it."""
        return self.before.keys() | self._recent[1]

    def mark_sent(self) -> None:
        """Record that the changes were sent; those of the batch before may be uncommitted too."""
        self._recent = self._recent[1], set(self.before)
        self.before.clear()

    def drop(self, keys: Iterable[Any]) -> None:
        """Drop rows that equal the database's."""
        for key in keys:
            self._rows.pop(key, None)

    def clear(self) -> None:
        """Drop everything."""
        self._recent = set(), set()
        self._rows.clear()
        self.before.clear()


def write_only(keys: list[Any]) -> dict[Any, Any]:
    """Fetch nothing: the fetch function of an append-only table."""
    return {}


def filling(
    table: TableCache[Any], keys: Sequence[str], shape: type[Any]
) -> Callable[[Rows], None]:
    """Return a function that adds the rows of these keys; the first column is the key."""

    def take(rows: Rows) -> None:
        table.fill(keys, {row[0]: shape(*row) for row in rows})

    return take


def learning(table: TableCache[Any], shape: type[Any]) -> Callable[[Rows], None]:
    """Return a function that adds rows fetched along with others."""

    def take(rows: Rows) -> None:
        for row in rows:
            table.learn(row[0], shape(*row))

    return take


@lru_cache(maxsize=64)
def _pickers(shape: type[Any], part: type[Struct]) -> tuple[Any, Any]:
    """Return getters of a part's fields and of all other fields."""
    others = [name for name in shape.__struct_fields__ if name not in part.__struct_fields__]
    return attrgetter(*part.__struct_fields__), attrgetter(*others)
