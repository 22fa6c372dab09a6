"""The assignment of objects to lots: times in keys, closing intervals, late policies."""

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.arcs.arrivals.arrival import (
    STEP_LOTS_MAX,
    Arrival,
    ArrivedRow,
    Candidate,
    Placed,
    Sighting,
    check_arrival,
    decide,
    divide_decision,
    find_closing_end,
    first_moment,
    from_text,
    is_unchanged,
    lot_span,
    to_text,
)
from penstock.arcs.arrivals.key_patterns import KeyPattern
from penstock.clock import HOUR, SECOND, format_time, parse_time
from penstock.errors import Invalid
from penstock.schema.arrivals import Late, OnMissing, TimeFrom
from penstock.schema.lot_ids import Interval

NOON = parse_time("2026-11-15T12:00:00Z")
MINUTE = 60 * SECOND
DATASET = "00000000-0000-8000-a000-000000000001"


def arrival(
    interval: str = "PT5M",
    late: Late = Late.AMEND,
    *,
    grace_seconds: int = 60,
    missing: OnMissing = OnMissing.EMPTY,
) -> Arrival:
    return Arrival(
        dataset="raw",
        location="/landing",
        interval=interval,
        late=late,
        grace_seconds=grace_seconds,
        missing=missing,
    )


@pytest.mark.parametrize(
    ("pattern", "key", "told"),
    [
        ("{year}/{month}/{day}", "2026/11/15/a.csv", "2026-11-15T00:00:00.000Z"),
        (
            "dt={year}-{month}-{day}/hour={hour}/",
            "dt=2026-02-28/hour=23/x",
            "2026-02-28T23:00:00.000Z",
        ),
        ("*{year}{month}{day}T{hour}{minute}", "a/b-20240229T2359.gz", "2024-02-29T23:59:00.000Z"),
        ("{year}/{month}/{year}{month}{day}", "2026/11/20261115.csv", "2026-11-15T00:00:00.000Z"),
        ("in-{epoch}.json", "in-1675727526.json", "2023-02-06T23:52:06.000Z"),
        ("in-{epoch}.json", "in-1675727526500.json", "2023-02-06T23:52:06.500Z"),
        ("*/{epoch}", "x/y/1675727526500001", "2023-02-06T23:52:06.500001Z"),
    ],
)
def test_key_has_a_time(pattern: str, key: str, told: str) -> None:
    at = KeyPattern(pattern).time_of(key)
    assert at is not None
    assert format_time(at) == told


@pytest.mark.parametrize(
    ("pattern", "key"),
    [
        ("{year}/{month}/{day}", "x/2026/11/15"),
        ("{year}/{month}/{day}", "2026/13/15"),
        ("{year}/{month}/{day}", "2026/02/29/there is no such day"),
        ("{year}/{month}/{day}", "0000/02/03"),
        ("{year}/{month}/{day}/{hour}", "2026/02/03/24"),
        ("{year}/{month}/{year}{month}{day}", "2026/11/20261215.csv"),
        ("in-{epoch}", "in-12345678901"),
    ],
)
def test_unmatched_key_has_no_time(pattern: str, key: str) -> None:
    assert KeyPattern(pattern).time_of(key) is None


def test_key_has_a_lot() -> None:
    pattern = KeyPattern("batch={lot}/")
    assert pattern.lot_of("batch=week 7/a.csv") == "week 7"
    assert pattern.lot_of("other=week 7/a.csv") is None
    assert pattern.lot_of("batch=20230229PT5M000/a.csv") is None


@pytest.mark.parametrize(
    ("pattern", "begins"),
    [
        ("dt={year}-{month}-{day}/h={hour}/*", "dt=2026-11-15/h=1"),
        ("{year}/{month}/{year}{month}{day}", "2026/11/2026111"),
        ("*/{year}/{month}/{day}", ""),
        ("{day}.{month}.{year}", ""),
        ("{year}/{month}/x/{day}*{hour}", ""),
        ("{epoch}", ""),
        ("{lot}", ""),
    ],
)
def test_listing_of_sorted_keys_can_begin_late(pattern: str, begins: str) -> None:
    assert KeyPattern(pattern).before(NOON) == begins


@given(st.integers(0, 4_000_000_000), st.integers(0, 4_000_000_000))
def test_listing_omits_no_later_key(one: int, two: int) -> None:
    pattern = KeyPattern("in/{year}-{month}-{day}/{hour}{minute}")
    first, second = sorted((one * SECOND, two * SECOND))
    key = time.strftime("in/%Y-%m-%d/%H%M", time.gmtime(second // SECOND))
    assert pattern.time_of(key) == second - second % MINUTE
    assert pattern.before(first) < key


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"interval": ""}, "need an interval"),
        ({"interval": "PT7M"}, "need an interval"),
        ({"dataset": "clock:PT1H"}, "is a clock"),
        ({"location": "landing"}, "name a whole path"),
        ({"location": "memory://"}, "name a whole path"),
        ({"location": "/"}, "the whole machine"),
        ({"location": "ftp://there"}, "is no object store"),
        ({"time": TimeFrom.EVENT}, "go together"),
        ({"pattern": "{epoch}"}, "go together"),
        ({"pattern": "{year}{month}{day}{hour}", "time": TimeFrom.EVENT}, "has no minute"),
        ({"pattern": "{year}{month}", "time": TimeFrom.EVENT}, "has no day"),
        ({"pattern": "{year}{week}", "time": TimeFrom.EVENT}, "{week}, which is none of"),
        ({"pattern": "no field", "time": TimeFrom.EVENT}, "one of the three"),
        ({"pattern": "{epoch}{lot}", "time": TimeFrom.EVENT}, "one of the three"),
        ({"pattern": "{lot}/"}, "leave interval and time out"),
        ({"pattern": "{lot}/", "interval": "", "late": Late.NEXT}, "none is next"),
        ({"start": "yesterday"}, "is not a time"),
    ],
)
def test_impossible_declarations_are_refused(changes: dict[str, str], message: str) -> None:
    said = {"dataset": "raw", "location": "/landing", "interval": "PT5M", **changes}
    with pytest.raises(Invalid, match=message):
        check_arrival(Arrival(**said))  # type: ignore[arg-type]


def test_declaration_survives_encoding() -> None:
    said = arrival(late=Late.NEXT)
    assert from_text(to_text(check_arrival(said))) == said


def test_the_first_lot_is_whole() -> None:
    assert first_moment(arrival("PT15M"), NOON + 7 * MINUTE) == NOON
    assert first_moment(arrival("PT24H"), NOON) == NOON - 12 * HOUR


@pytest.mark.parametrize("interval", list(Interval))
def test_an_interval_closes_a_grace_time_after_its_end(interval: Interval) -> None:
    said = arrival(interval, grace_seconds=90)
    start = NOON - 12 * HOUR
    end = start + interval.length
    assert find_closing_end(said, start, end + 90 * SECOND - 1) == start
    assert find_closing_end(said, start, end + 90 * SECOND) == end


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25", "2024-02-29", "2026-12-31"])
def test_every_day_has_the_same_number_of_lots(day: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        pattern = KeyPattern("{year}{month}{day}T{hour}{minute}")
        keys = [f"{day.replace('-', '')}T{m // 60:02}{m % 60:02}" for m in range(0, 1440, 15)]
        times = [pattern.time_of(key) for key in keys]
        assert times == [parse_time(f"{day}T00:00:00Z") + 15 * MINUTE * n for n in range(96)]
        lots = [Interval.MINUTES_15.lot_at(at) for at in times if at is not None]
        assert lots == [f"{day.replace('-', '')}PT15M{n:03}" for n in range(96)]
    finally:
        monkeypatch.undo()
        time.tzset()


def seen(number: int, mark: str = "1") -> Sighting:
    return Sighting(f"file:///landing/{number}", 10 + number, mark, NOON)


def placed(number: int, lot: str, state: Placed = Placed.ASSIGNED) -> ArrivedRow:
    one = seen(number)
    refused = one.mark if state is Placed.REFUSED else ""
    return ArrivedRow(DATASET, one.uri, lot, state, one.size, one.mark, refused, NOON, NOON)


def test_same_mark_means_unchanged() -> None:
    assert is_unchanged(seen(1), placed(1, "a"))
    assert not is_unchanged(seen(1, "2"), placed(1, "a"))
    noted = ArrivedRow(DATASET, seen(1).uri, "a", Placed.ASSIGNED, 11, "1", "2", NOON, NOON)
    assert is_unchanged(seen(1, "2"), noted)


def test_a_refused_change_leaves_the_object_in_its_lot() -> None:
    changed = Candidate(seen(1, "2"), "b", placed(1, "a"), is_late=True)
    decision = decide(arrival(late=Late.REFUSE), DATASET, [changed], None, NOON + 1)
    assert decision.lots == {}
    [noted] = decision.refused
    assert (noted.lot, noted.state, noted.mark, noted.refused) == ("a", "assigned", "1", "2")


LOTS = [Interval.MINUTES_5.lot_at(NOON + 5 * MINUTE * n) for n in range(-400, 400)]


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    """Objects of all kinds: in time and late, new and changed."""
    found = []
    for number in range(draw(st.integers(0, 30))):
        old, new = draw(st.integers(0, 399)), draw(st.integers(400, 420))
        kind = draw(st.sampled_from(["in time", "late", "changed"]))
        known = placed(number, LOTS[old]) if kind == "changed" else None
        home = LOTS[new] if kind == "in time" else LOTS[old]
        found.append(Candidate(seen(number, "2"), home, known, is_late=kind != "in time"))
    return found


@given(candidates(), st.sampled_from(Late), st.sampled_from(OnMissing), st.integers(0, 250))
def test_steps_place_every_object_once_and_close_in_order(
    found: list[Candidate], late: Late, missing: OnMissing, intervals: int
) -> None:
    said = arrival(late=late, missing=missing)
    until = NOON + max(25, intervals) * 5 * MINUTE
    decision = decide(said, DATASET, found, LOTS[400], NOON)
    where = {each.seen.uri: each.row.lot for each in found if each.row is not None}
    open_from, closed = NOON, list[str]()
    for step in divide_decision(said, decision, NOON, until, ()):
        assert step.open_from >= open_from
        open_from = step.open_from
        # Nobody ever sees an object in two lots, or a lot lose one that no other lot gains.
        gained = {row.uri for change in step.lots for row in change.add}
        for change in step.lots:
            assert all(where.pop(uri) == change.lot for uri in change.drop)
            assert change.drop <= gained
        for change in step.lots:
            for row in change.add:
                assert where.get(row.uri) in (None, change.lot)
                where[row.uri] = change.lot
            if change.is_new:
                closed.append(change.lot)
                assert lot_span(change.lot).start >= NOON
                assert lot_span(change.lot).end <= step.open_from
    assert open_from == until
    assert closed == sorted(set(closed))
    if missing is OnMissing.EMPTY:
        assert closed == list(Interval.MINUTES_5.lots(NOON, until))
    refused = {row.uri for row in decision.refused}
    assert where.keys() | refused == {each.seen.uri for each in found}
    for each in found:
        if not each.is_late:
            assert where[each.seen.uri] == each.home
        elif late is Late.NEXT:
            assert where[each.seen.uri] == LOTS[400]
        elif late is Late.AMEND or each.row is not None:
            assert where[each.seen.uri] == (each.row.lot if each.row else each.home)
        else:
            assert each.seen.uri in refused


def test_large_decisions_have_several_steps() -> None:
    said = arrival()
    until = NOON + 350 * 5 * MINUTE
    taken = list(divide_decision(said, decide(said, DATASET, [], None, NOON), NOON, until, ()))
    assert [len(step.lots) for step in taken] == [STEP_LOTS_MAX] * 3 + [50]
    assert Counter(change.lot for step in taken for change in step.lots).most_common(1)[0][1] == 1
