"""Wire types of gaps: lots that are not there, and the causes."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from penstock.schema.catalog import EntityId
from penstock.schema.locks import Why
from penstock.schema.lot_ids import Interval
from penstock.schema.shape import Shape


class GapKind(StrEnum):
    """The reasons for a gap: the states of a lot other than published."""

    MISSING = "missing"  # the server does not know the lot
    WAITING = "waiting"  # its job knows it and has not made it yet
    RUNNING = "running"  # being made
    PARTIAL = "partial"  # its attempt failed, or it was published with a part missing
    HELD = "held"  # waits for a person
    EMPTY = "empty"  # published, and without data on purpose
    REMOVED = "removed"  # it was published, and its data was removed


class GapRoot(Shape, frozen=True):
    """The lot upstream that must come first. Without `job`, it comes from outside."""

    namespace: str
    dataset: str
    lot: str
    job: EntityId | None
    sentence: str


class Cause(Shape, frozen=True):
    """The cause of a gap: a sentence, the same as data if a job makes the lot, and the roots."""

    sentence: str
    why: Why | None
    roots: Sequence[GapRoot]


class Gap(Shape, frozen=True):
    """Consecutive lots of one kind with one cause, which is that of the first.

    If `is_alike` is false, one answer could not check all lots upstream, and
    lots after the first may have other causes.
    """

    first: str
    last: str
    count: int
    kind: GapKind
    cause: Cause | None
    is_alike: bool


class Gaps(Shape, frozen=True):
    """The gaps of a dataset between two lots.

    `totals` count all lots. An answer has at most RANGES_MAX ranges; with `is_cut`,
    more ranges follow the last one.
    """

    namespace: str
    dataset: str
    interval: Interval
    first: str
    last: str
    count: int
    there: int
    totals: Mapping[GapKind, int]
    ranges: Sequence[Gap]
    is_cut: bool

    @property
    def is_whole(self) -> bool:
        """Whether the dataset has no gap. Lots that are empty on purpose are no gap."""
        return self.there + self.totals.get(GapKind.EMPTY, 0) == self.count
