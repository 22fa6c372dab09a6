"""Rows of one table as a batch of writes sees them."""

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
    """How to take back what the command at hand has put on any shelf: where, key, row, first."""

    def begin(self) -> None:
        """From here on, `undo` takes back."""
        self.clear()

    def undo(self) -> None:
        """Put everything back as it was at `begin`."""
        for shelf, key, row, first in reversed(self):
            shelf.put_back(key, row, first)
        self.clear()


class TableCache(Generic[R]):
    """A cache of rows that knows which of them have changed.

    `None` on the shelf means that the row is known not to exist. A key that is not on the
    shelf is fetched when it is asked for; filling the shelf beforehand only saves the trip.
    """

    def __init__(self, fetch: Callable[[list[Any]], dict[Any, R]], undo: UndoLog) -> None:
        self._fetch = fetch
        self._undo = undo
        self._rows: dict[Any, R | None] = {}
        self.before: dict[Any, R | None] = {}  # what changed keys held when the batch began
        # What the two batches before this one changed, which may both be on their way.
        self._recent: tuple[set[Any], set[Any]] = set(), set()

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: Any) -> R | None:
        """The row, or None when there is none."""
        try:
            return self._rows[key]
        except KeyError:
            row = self._fetch([key]).get(key)
            self._rows[key] = row
            return row

    def put(self, key: Any, row: R | None) -> None:
        """Change a row; it is written when the batch is flushed."""
        rows = self._rows
        held = rows.get(key, _ABSENT)
        first = key not in self.before
        self._undo.append((self, key, held, first))
        if first:
            self.before[key] = None if held is _ABSENT else held
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
        """Which of these keys are not on the shelf."""
        rows = self._rows
        return [key for key in dict.fromkeys(keys) if key not in rows]

    def fill(self, keys: Iterable[Any], found: dict[Any, R]) -> None:
        """Take in fetched rows; keys without a row are known to be absent."""
        for key in keys:
            self._rows.setdefault(key, found.get(key))

    def prefetch(self, keys: Iterable[Any]) -> None:
        """Fetch what is missing of these, in one trip."""
        if missing := self.missing(keys):
            self.fill(missing, self._fetch(missing))

    def learn(self, key: Any, row: R) -> None:
        """Take in a row that came along with others; a row already here is newer."""
        self._rows.setdefault(key, row)

    def changed(self) -> list[R]:
        """The rows to write."""
        rows = self._rows
        return [row for key in self.before if (row := rows[key]) is not None]

    def gone(self) -> list[Any]:
        """The keys of rows to delete."""
        rows = self._rows
        return [key for key, before in self.before.items() if before is not None and not rows[key]]

    def moved(self, *fields: str) -> list[R]:
        """The rows to write of which one of these fields is not what it was."""
        pick = attrgetter(*fields)
        pairs = ((before, self._rows[key]) for key, before in self.before.items())
        return [row for was, row in pairs if was is not None and row and pick(was) != pick(row)]

    def parted(self, part: type[P]) -> tuple[list[R], list[P]]:
        """The rows to write whole; and of those in which nothing else changed, this part."""
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
        """The rows that a query may not see yet as they are, because they are on their way."""
        rows = self._rows
        keys = self.on_their_way() | self._recent[0]
        return [row for key in keys if (row := rows.get(key)) is not None]

    def on_their_way(self) -> set[Any]:
        """The keys changed by this batch or by the one before it."""
        return self.before.keys() | self._recent[1]

    def settle(self) -> None:
        """The changes are on their way, and perhaps those of the batch before them."""
        self._recent = self._recent[1], set(self.before)
        self.before.clear()

    def drop(self, keys: Iterable[Any]) -> None:
        """Forget these rows, which are as the database has them."""
        for key in keys:
            self._rows.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        self._recent = set(), set()
        self._rows.clear()
        self.before.clear()


def write_only(keys: list[Any]) -> dict[Any, Any]:
    """What fetches the rows of a shelf that is only written: it has none to begin with."""
    return {}


def filling(
    shelf: TableCache[Any], keys: Sequence[str], shape: type[Any]
) -> Callable[[Rows], None]:
    """What takes in the rows that were found of these keys; the first column is the key."""

    def take(rows: Rows) -> None:
        shelf.fill(keys, {row[0]: shape(*row) for row in rows})

    return take


def learning(shelf: TableCache[Any], shape: type[Any]) -> Callable[[Rows], None]:
    """What takes in rows that came along with others."""

    def take(rows: Rows) -> None:
        for row in rows:
            shelf.learn(row[0], shape(*row))

    return take


@lru_cache(maxsize=64)
def _pickers(shape: type[Any], part: type[Struct]) -> tuple[Any, Any]:
    """What takes a part's fields out of a row, and what takes all others."""
    others = [name for name in shape.__struct_fields__ if name not in part.__struct_fields__]
    return attrgetter(*part.__struct_fields__), attrgetter(*others)
