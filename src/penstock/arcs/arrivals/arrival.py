"""Arrivals: which arrived object belongs to which lot.

An interval closes when its grace period has passed. Its lot then has every object of that time. An
object is late if it appears after that, or changes after a lot took it; the late policy then
decides. This module knows no store and no database.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import Struct

from penstock.arcs.arrivals.key_patterns import KeyPattern
from penstock.catalog.rows import Row
from penstock.clock import SECOND, Micros, parse_time
from penstock.errors import Invalid
from penstock.objects.keys import local_folder
from penstock.schema.arcs import GraceSeconds
from penstock.schema.arrivals import DIGEST_BYTES_MAX, DigestBytes, Late, OnMissing, TimeFrom
from penstock.schema.lot_ids import Interval, IntervalLot, clock_interval, parse_interval

STEP_LOTS_MAX = 100
STEP_OBJECTS_MAX = 10_000
ROUND_LOTS_MAX = 2_000


class Arrival(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The location where the objects of a dataset arrive, and how they become lots.

    With `{lot}` in the pattern there is no interval. A lot then closes when none of its objects was
    modified for the grace time, and `missing` has no effect.
    """

    dataset: str
    namespace: str = "default"
    version: str = "1"
    location: str
    interval: str = ""
    time: TimeFrom = TimeFrom.MODIFIED
    pattern: str = ""
    grace_seconds: GraceSeconds = 60
    late: Late = Late.AMEND
    start: str = ""  # the first time taken; by default the time of the declaration
    missing: OnMissing = OnMissing.MISSING
    digest_bytes_max: DigestBytes = DIGEST_BYTES_MAX  # 0: objects get no digest

    @property
    def cut(self) -> Interval | None:
        """The interval of the lots; None if the keys name them."""
        return Interval(self.interval) if self.interval else None

    @property
    def has_empty_lots(self) -> bool:
        """Whether an interval without objects gets a lot."""
        return self.cut is not None and self.missing is OnMissing.EMPTY


class Placed(StrEnum):
    """How an object was assigned to its lot."""

    ASSIGNED = "assigned"  # in time
    LATE = "late"
    REFUSED = "refused"  # it is in no lot


class ArrivedRow(Row, frozen=True):
    """An object and its lot or, if it was refused, the lot that it would have gone to.

    `mark` is the ETag, or time of change and size, of the content that the lot has. `refused` is
    the mark that was refused last.
    """

    dataset_id: str
    uri: str
    lot: str
    state: Placed
    size: int
    mark: str
    refused: str
    modified: Micros
    at: Micros
    digest: str = ""  # of the content that the lot has; empty if it was not read


class Sighting(Struct, frozen=True, gc=False):
    """An object as a listing shows it."""

    uri: str
    size: int
    mark: str
    modified: Micros


class Candidate(Struct, frozen=True, gc=False):
    """An object whose current content is in no lot.

    `home` is the lot that it belongs to. `row` is its row if a lot has an earlier content of it.
    """

    seen: Sighting
    home: str
    row: ArrivedRow | None
    is_late: bool


class LotChange(Struct, frozen=True):
    """The objects that a lot gains and loses."""

    lot: str
    add: tuple[ArrivedRow, ...] = ()
    drop: frozenset[str] = frozenset()
    is_new: bool = False


class ArrivalStep(Struct, frozen=True):
    """The changes of one transaction; every interval before `open_from` is closed afterwards."""

    lots: tuple[LotChange, ...]
    refused: tuple[ArrivedRow, ...]
    open_from: Micros


class Decision(Struct, frozen=True):
    """The decision about all candidates."""

    lots: Mapping[str, LotChange]
    refused: tuple[ArrivedRow, ...] = ()


_decode = msgspec.json.Decoder(Arrival).decode


def to_text(arrival: Arrival) -> str:
    """Encode a declaration as it is stored."""
    return msgspec.json.encode(arrival).decode()


def from_text(text: str) -> Arrival:
    """Decode a stored declaration."""
    return _decode(text)


def check_arrival(arrival: Arrival) -> Arrival:
    """Return the declaration, or raise Invalid if it cannot work."""
    where = f"the arrivals of {arrival.namespace}/{arrival.dataset}"
    if clock_interval(arrival.dataset) is not None:
        raise Invalid(f"{arrival.dataset} is a clock: its lots turn READY by themselves")
    folder = local_folder(arrival.location)
    if arrival.location.startswith("memory:") or (folder is not None and not folder.is_absolute()):
        raise Invalid(
            f"{where} cannot be at {arrival.location!r}; name a whole path, or a bucket by s3://, "
            "gs:// or az://"
        )
    if folder == Path("/"):
        raise Invalid(f"{where} cannot be the whole machine; name a folder")
    pattern = KeyPattern(arrival.pattern) if arrival.pattern else None
    if pattern is not None and "lot" in pattern.fields:
        _check_named_lots(arrival, where)
        return arrival
    if arrival.interval not in tuple(Interval):
        raise Invalid(
            f"{where} need an interval, one of {', '.join(Interval)}, or {{lot}} in the pattern; "
            f"{arrival.interval!r} is neither"
        )
    if (arrival.time is TimeFrom.EVENT) != (pattern is not None):
        raise Invalid(
            f"{where}: a pattern and time {TimeFrom.EVENT.value!r} go together; name both, or "
            f"none of them for the time {TimeFrom.MODIFIED.value!r}"
        )
    if pattern is not None:
        pattern.check_places(Interval(arrival.interval))
    if arrival.start:
        parse_time(arrival.start)
    return arrival


def _check_named_lots(arrival: Arrival, where: str) -> None:
    if arrival.interval or arrival.time is TimeFrom.EVENT:
        raise Invalid(f"{where} have {{lot}} in the pattern; leave interval and time out")
    if arrival.late is Late.NEXT:
        raise Invalid(f"{where} have lots of any name, so none is next; late is amend or refuse")
    if arrival.start:
        parse_time(arrival.start)


def first_moment(arrival: Arrival, now: Micros) -> Micros:
    """Return the start of the interval from which objects are taken, so that its lot is whole."""
    start = parse_time(arrival.start) if arrival.start else now
    return start - start % arrival.cut.length if arrival.cut is not None else start


def find_closing_end(arrival: Arrival, open_from: Micros, now: Micros) -> Micros:
    """Return the end of the last interval that closes now, limited to one round."""
    if arrival.cut is None:
        return open_from
    length = arrival.cut.length
    over = now - arrival.grace_seconds * SECOND
    until = max(open_from, over - over % length)
    return min(until, open_from + ROUND_LOTS_MAX * length) if arrival.has_empty_lots else until


def is_unchanged(seen: Sighting, row: ArrivedRow) -> bool:
    """Whether nothing is left to decide about an object."""
    return seen.mark in (row.mark, row.refused)


def decide(
    arrival: Arrival,
    dataset_id: str,
    candidates: Iterable[Candidate],
    next_lot: str | None,
    now: Micros,
) -> Decision:
    """Assign each candidate to a lot; `next_lot` is the next one that closes, if any does now."""
    add: dict[str, list[ArrivedRow]] = {}
    drop: dict[str, set[str]] = {}
    refused = []
    for each in candidates:
        held_in = each.row.lot if each.row is not None else None
        if not each.is_late:
            lot, state = each.home, Placed.ASSIGNED
        elif arrival.late is Late.REFUSE:
            refused.append(_refused(each, dataset_id, now))
            continue
        elif arrival.late is Late.AMEND:
            lot, state = held_in or each.home, Placed.LATE
        elif next_lot is None:
            continue
        else:
            lot, state = next_lot, Placed.LATE
        seen = each.seen
        if held_in is not None and held_in != lot:
            drop.setdefault(held_in, set()).add(seen.uri)
        row = ArrivedRow(
            dataset_id, seen.uri, lot, state, seen.size, seen.mark, "", seen.modified, now
        )
        add.setdefault(lot, []).append(row)
    lots = {
        lot: LotChange(
            lot,
            tuple(add.get(lot, ())),
            frozenset(drop.get(lot, ())),
            lot == next_lot or any(row.state is Placed.ASSIGNED for row in add.get(lot, ())),
        )
        for lot in dict.fromkeys([*drop, *add])
    }
    return Decision(lots, tuple(refused))


def _refused(each: Candidate, dataset_id: str, now: Micros) -> ArrivedRow:
    seen = each.seen
    if each.row is not None:
        return msgspec.structs.replace(each.row, refused=seen.mark, at=now)
    return ArrivedRow(
        dataset_id, seen.uri, each.home, Placed.REFUSED, seen.size, seen.mark, seen.mark,
        seen.modified, now,
    )  # fmt: skip


def closing_lots(
    arrival: Arrival, decision: Decision, open_from: Micros, until: Micros, existing: Container[str]
) -> list[LotChange]:
    """Return the new lots in order, with empty intervals if those get lots.

    Lots in `existing` were closed before: the start was moved, or the arrival was declared again.
    """
    new = sorted(lot for lot, change in decision.lots.items() if change.is_new)
    if arrival.cut is not None and arrival.has_empty_lots:
        new = [lot for lot in arrival.cut.lots(open_from, until) if lot not in existing]
    return [decision.lots.get(lot) or LotChange(lot, is_new=True) for lot in new]


def divide_decision(
    arrival: Arrival, decision: Decision, open_from: Micros, until: Micros, existing: Container[str]
) -> Iterator[ArrivalStep]:
    """Divide a decision into transactions.

    Lots that lose objects go first, in one transaction with the first closing lot, which gains
    them. So no reader ever sees an object in two lots or in none.
    """
    old = [change for change in decision.lots.values() if not change.is_new]
    losing = [change for change in old if change.drop]
    gaining = [change for change in old if not change.drop]
    new = closing_lots(arrival, decision, open_from, until, existing)
    together = len(losing) + 1 if losing else 1
    batch: list[LotChange] = []
    refused, objects, reached = decision.refused, 0, open_from
    for change in (*losing, *new, *gaining):
        batch.append(change)
        objects += len(change.add)
        if change.is_new and arrival.cut is not None:
            reached = lot_span(change.lot).end
        is_full = len(batch) >= STEP_LOTS_MAX or objects >= STEP_OBJECTS_MAX
        if is_full and len(batch) >= together:
            yield ArrivalStep(tuple(batch), refused, reached)
            batch, refused, objects, together = [], (), 0, 1
    if batch or refused or until > reached:
        yield ArrivalStep(tuple(batch), refused, max(reached, until))


def lot_span(lot: str) -> IntervalLot:
    """Return the interval of a lot that has one."""
    span = parse_interval(lot)
    assert span is not None, "lots that close in order are intervals"
    return span
