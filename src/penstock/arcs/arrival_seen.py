"""What a look at the place where objects arrive has met, and what came of it."""

from msgspec import Struct

from penstock.objects import Objects
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


class Landing(Struct, frozen=True):
    """Where objects arrive, and after which key it is looked at."""

    store: Objects
    place: Place
    after: str = ""
