"""Rows of one table as a batch of writes sees them."""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

R = TypeVar("R")

_ABSENT: Any = object()


class UndoLog:
    """How to take back what the command at hand has put on any shelf."""

    def __init__(self) -> None:
        self._steps: list[tuple[Shelf[Any], Any, Any, Any]] = []

    def begin(self) -> None:
        """From here on, `undo` takes back."""
        self._steps.clear()

    def note(self, shelf: "Shelf[Any]", key: Any, row: Any, change: Any) -> None:
        """Remember what a key held before."""
        self._steps.append((shelf, key, row, change))

    def undo(self) -> None:
        """Put everything back as it was at `begin`."""
        for shelf, key, row, change in reversed(self._steps):
            shelf.put_back(key, row, change)
        self._steps.clear()


class Shelf(Generic[R]):
    """A cache of rows that knows which of them have changed.

    `None` on the shelf means that the row is known not to exist. A key that is not on the
    shelf is fetched when it is asked for; filling the shelf beforehand only saves the trip.
    """

    def __init__(self, fetch: Callable[[list[Any]], dict[Any, R]], undo: UndoLog) -> None:
        self._fetch = fetch
        self._undo = undo
        self._rows: dict[Any, R | None] = {}
        self.before: dict[Any, R | None] = {}  # what changed keys held when the batch began

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
        before = self._rows.get(key, _ABSENT)
        if key in self.before:
            self._undo.note(self, key, before, False)
        else:
            self._undo.note(self, key, before, True)
            self.before[key] = None if before is _ABSENT else before
        self._rows[key] = row

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

    def learn(self, key: Any, row: R) -> None:
        """Take in a row that came along with others; a row already here is newer."""
        self._rows.setdefault(key, row)

    def changed(self) -> list[R]:
        """The rows to write."""
        rows = self._rows
        return [row for key in self.before if (row := rows[key]) is not None]

    def kept(self) -> list[R]:
        """Every row on the shelf."""
        return [row for row in self._rows.values() if row is not None]

    def settle(self) -> None:
        """The changes are committed."""
        self.before.clear()

    def drop(self, keys: Iterable[Any]) -> None:
        """Forget these rows, which are as the database has them."""
        for key in keys:
            self._rows.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        self._rows.clear()
        self.before.clear()
