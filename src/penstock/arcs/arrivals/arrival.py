"""Arrivals: which objects that appear under a location belong to which lot.

An interval closes a grace time after its end, and its lot then has every object of its time. What
is found later, or was changed after it was given to a lot, is late, and goes by the late policy.
Nothing here knows a store or a database.
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
    """Where the objects of a dataset arrive, and how they become lots.

    With `{lot}` in the pattern there is no interval: a lot is closed when none of its objects was
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
    start: str = ""  # from when on; without it, from when it is declared
    missing: OnMissing = OnMissing.MISSING
    digest_bytes_max: DigestBytes = DIGEST_BYTES_MAX  # larger objects are not read; 0: none is

    @property
    def cut(self) -> Interval | None:
        """The interval of its lots; None if keys name them."""
        return Interval(self.interval) if self.interval else None

    @property
    def has_empty_lots(self) -> bool:
        """Whether an interval without objects has a lot."""
        return self.cut is not None and self.missing is OnMissing.EMPTY


class Placed(StrEnum):
    """How an object came to its lot."""

    ASSIGNED = "assigned"  # in time
    LATE = "late"
    REFUSED = "refused"  # it is in no lot


class ArrivedRow(Row, frozen=True):
    """An object, and the lot it is in or, if it is refused, would have been in.

    `mark` tells by the ETag, or by time of change and size, what the lot was made of; `refused`
    is the mark that was refused last.
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
    digest: str = ""  # of what the lot was made of; nothing if it was not read


class Sighting(Struct, frozen=True, gc=False):
    """An object as a listing shows it."""

    uri: str
    size: int
    mark: str
    modified: Micros


class Candidate(Struct, frozen=True, gc=False):
    """An object that no lot has as it is now.

    `home` is the lot that it belongs to, and `known` tells of the lot that has it as it was.
    """

    seen: Sighting
    home: str
    known: ArrivedRow | None
    is_late: bool


class LotChange(Struct, frozen=True):
    """What a lot is to gain, and to lose."""

    lot: str
    add: tuple[ArrivedRow, ...] = ()
    drop: frozenset[str] = frozenset()
    is_new: bool = False


class Step(Struct, frozen=True):
    """What is decided in one transaction; every interval before `open_from` is closed then."""

    lots: tuple[LotChange, ...]
    noted: tuple[ArrivedRow, ...]
    open_from: Micros


class Decision(Struct, frozen=True):
    """What is to become of the candidates."""

    lots: Mapping[str, LotChange]
    noted: tuple[ArrivedRow, ...] = ()


_decode = msgspec.json.Decoder(Arrival).decode


def to_text(arrival: Arrival) -> str:
    """The declaration as it is kept."""
    return msgspec.json.encode(arrival).decode()


def from_text(text: str) -> Arrival:
    """A declaration as it was kept."""
    return _decode(text)


def checked(arrival: Arrival) -> Arrival:
    """The declaration, if it can work."""
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
    """From when on objects are taken: the beginning of an interval, so that its lot is whole."""
    start = parse_time(arrival.start) if arrival.start else now
    return start - start % arrival.cut.length if arrival.cut is not None else start


def closing_until(arrival: Arrival, open_from: Micros, now: Micros) -> Micros:
    """The end of the last interval that can close now, or as many as one round takes."""
    if arrival.cut is None:
        return open_from
    length = arrival.cut.length
    over = now - arrival.grace_seconds * SECOND
    until = max(open_from, over - over % length)
    return min(until, open_from + ROUND_LOTS_MAX * length) if arrival.has_empty_lots else until


def is_unchanged(seen: Sighting, known: ArrivedRow) -> bool:
    """Whether there is nothing to decide about an object any more."""
    return seen.mark in (known.mark, known.refused)


def decide(
    arrival: Arrival,
    dataset_id: str,
    candidates: Iterable[Candidate],
    next_lot: str | None,
    now: Micros,
) -> Decision:
    """Give each candidate its lot; `next_lot` is the one that closes next, if one does now."""
    add: dict[str, list[ArrivedRow]] = {}
    drop: dict[str, set[str]] = {}
    noted = []
    for each in candidates:
        held_in = each.known.lot if each.known is not None else None
        if not each.is_late:
            lot, state = each.home, Placed.ASSIGNED
        elif arrival.late is Late.REFUSE:
            noted.append(_refused(each, dataset_id, now))
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
    return Decision(lots, tuple(noted))


def _refused(each: Candidate, dataset_id: str, now: Micros) -> ArrivedRow:
    """A lot keeps what it was made of; beside that is noted what was refused."""
    seen = each.seen
    if each.known is not None:
        return msgspec.structs.replace(each.known, refused=seen.mark, at=now)
    return ArrivedRow(
        dataset_id, seen.uri, each.home, Placed.REFUSED, seen.size, seen.mark, seen.mark,
        seen.modified, now,
    )  # fmt: skip


def closing_lots(
    arrival: Arrival, decision: Decision, open_from: Micros, until: Micros, there: Container[str]
) -> list[LotChange]:
    """The lots that are new, in order: also of intervals without objects, if those have lots.

    What is `there` was closed before: where it began was moved, or it was declared anew.
    """
    new = sorted(lot for lot, change in decision.lots.items() if change.is_new)
    if arrival.cut is not None and arrival.has_empty_lots:
        new = [lot for lot in arrival.cut.lots(open_from, until) if lot not in there]
    return [decision.lots.get(lot) or LotChange(lot, is_new=True) for lot in new]


def steps(
    arrival: Arrival, decision: Decision, open_from: Micros, until: Micros, there: Container[str]
) -> Iterator[Step]:
    """Cut what was decided into transactions.

    Lots that lose objects go first, together with the first lot that closes, which gains them:
    nobody ever sees an object in two lots, or in none.
    """
    old = [change for change in decision.lots.values() if not change.is_new]
    losing = [change for change in old if change.drop]
    gaining = [change for change in old if not change.drop]
    new = closing_lots(arrival, decision, open_from, until, there)
    together = len(losing) + 1 if losing else 1
    batch: list[LotChange] = []
    noted, objects, reached = decision.noted, 0, open_from
    for change in (*losing, *new, *gaining):
        batch.append(change)
        objects += len(change.add)
        if change.is_new and arrival.cut is not None:
            reached = lot_span(change.lot).end
        is_full = len(batch) >= STEP_LOTS_MAX or objects >= STEP_OBJECTS_MAX
        if is_full and len(batch) >= together:
            yield Step(tuple(batch), noted, reached)
            batch, noted, objects, together = [], (), 0, 1
    if batch or noted or until > reached:
        yield Step(tuple(batch), noted, max(reached, until))


def lot_span(lot: str) -> IntervalLot:
    """The interval of a lot that has one."""
    span = parse_interval(lot)
    assert span is not None, "lots that close in order are intervals"
    return span
