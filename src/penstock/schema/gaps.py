"""Wire types of gaps: lots that are not there, and the causes."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from penstock.schema.catalog import EntityId
from penstock.schema.locks import Why
from penstock.schema.lot_ids import Interval
from penstock.schema.shape import Shape


class GapKind(StrEnum):
    """How a lot can be something else than simply there."""

    MISSING = "missing"  # nobody knows of it
    WAITING = "waiting"  # known to who makes it, and not there yet
    RUNNING = "running"  # being made
    PARTIAL = "partial"  # tried and failed, or published with a part of it missing
    HELD = "held"  # waits for a person
    EMPTY = "empty"  # there, and rightly without data
    REMOVED = "removed"  # it was there, and its data was cleaned away


class GapRoot(Shape, frozen=True):
    """The lot upstream that has to come first; without a job, nobody here makes it."""

    namespace: str
    dataset: str
    lot: str
    job: EntityId | None
    sentence: str


class Cause(Shape, frozen=True):
    """Why a lot is not there, in words; the same as data, if a job makes it; and the roots."""

    sentence: str
    why: Why | None
    roots: Sequence[GapRoot]


class Gap(Shape, frozen=True):
    """Lots in a row that are of one kind, and have one cause, told of the first of them.

    Where they are not known to be alike, more lots are upstream than are looked at for one answer:
    lots after the first may have other causes.
    """

    first: str
    last: str
    count: int
    kind: GapKind
    cause: Cause | None
    is_alike: bool


class Gaps(Shape, frozen=True):
    """What is there of a dataset between two lots, and what is not.

    `totals` are of all lots. Of ranges there are RANGES_MAX at most: `is_cut` says that there are
    more of them, after the last one here.
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
        """Whether nothing is amiss: what is empty is rightly so."""
        return self.there + self.totals.get(GapKind.EMPTY, 0) == self.count
