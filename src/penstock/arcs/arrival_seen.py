"""What a look at the place where objects arrive has met, and what came of it."""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct, field

from penstock.clock import Micros
from penstock.objects import Entry, Objects
from penstock.objects.keys import refusal
from penstock.objects.uris import Place


class Seen(Struct, frozen=True, kw_only=True):
    """What came of a round.

    `skipped` are objects without a place: their keys do not fit the pattern, or their time is
    before the start. `has_more` asks for another round at once; `failed` are arrivals that could
    not be looked at.
    """

    assigned: int = 0
    closed: int = 0
    empty: int = 0
    late: int = 0
    refused: int = 0
    skipped: int = 0
    failed: int = 0
    has_more: bool = False

    def __add__(self, other: "Seen") -> "Seen":
        return Seen(
            assigned=self.assigned + other.assigned,
            closed=self.closed + other.closed,
            empty=self.empty + other.empty,
            late=self.late + other.late,
            refused=self.refused + other.refused,
            skipped=self.skipped + other.skipped,
            failed=self.failed + other.failed,
            has_more=self.has_more or other.has_more,
        )


class Untaken(Struct, frozen=True):
    """Objects that cannot be taken into lots: how many, one of them, and why not."""

    count: int = 0
    example: str = ""
    reason: str = ""

    def __add__(self, other: "Untaken") -> "Untaken":
        first = self if self.count else other
        return Untaken(self.count + other.count, first.example, first.reason)


class Readable(NamedTuple):
    """The objects of a listing that can be read by their keys, and those that cannot."""

    entries: list[Entry]
    untaken: Untaken


class Marks:
    """What listings show that is not there under its key: marks of folders, and keys with a `/`
    in front. Each is asked for once.

    A mark is an empty object whose key ends in `/`; a listing gives it without.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, Micros], bool] = {}
        self._gone: set[tuple[str, Micros]] = set()

    def note_gone(self, uri: str, modified: Micros) -> None:
        """Keep that an object was listed, and could not be read under its key."""
        self._gone.add((uri, modified))

    def is_gone(self, uri: str, modified: Micros) -> bool:
        """Whether an object was not there to be read, as it is listed now."""
        return (uri, modified) in self._gone

    def pass_over(self, store: Objects, entries: Iterable[Entry]) -> Readable:
        """Leave out marks without a word, and tell of keys that cannot be read."""
        found, untaken = list[Entry](), Untaken()
        for entry in entries:
            if reason := refusal(entry.key):
                untaken += Untaken(1, entry.key, reason)
            elif entry.size or not self._is_mark(store, entry):
                found.append(entry)
        return Readable(found, untaken)

    def _is_mark(self, store: Objects, entry: Entry) -> bool:
        key = (entry.key, entry.modified)
        if key not in self._known:
            is_bucket = store.path(entry.key) is None
            self._known[key] = is_bucket and not store.exists(entry.key)
        return self._known[key]


class Landing(Struct, frozen=True):
    """Where objects arrive, and after which key it is looked at."""

    store: Objects
    place: Place
    after: str = ""
    marks: Marks = field(default_factory=Marks)
