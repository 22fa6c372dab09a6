"""Lot ids: which are refused, which moment each names, and the order they are worked on."""

import re
from datetime import UTC
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.clock import DAY, HOUR, Micros, from_datetime, parse_time
from penstock.errors import Invalid
from penstock.schema.lot_ids import (
    LOT_CHARS_MAX,
    Interval,
    IntervalLot,
    check_lot,
    clock_interval,
    parse_interval,
    sort_key,
)

INTERVALS = st.sampled_from(Interval)
MOMENTS = st.datetimes(timezones=st.just(UTC)).map(from_datetime)
MIDDLE_MOMENTS = st.integers(parse_time("0002-01-01"), parse_time("9998-01-01"))


def is_lot(text: str) -> bool:
    try:
        return check_lot(text) == text
    except Invalid:
        return False


LOTS = st.one_of(
    st.text("0019ab-. é\U0001f600", min_size=1, max_size=12),
    st.text(min_size=1, max_size=LOT_CHARS_MAX),
    st.text("0123456789", min_size=1, max_size=LOT_CHARS_MAX),
    st.builds(Interval.lot_at, INTERVALS, MOMENTS),
).filter(is_lot)


def key_bytes(lot: str) -> bytes:
    return sort_key(lot).encode()


def natural(lot: str) -> tuple[list[tuple[int, int]], list[int]]:
    """The order in plain words: numbers by value where digits stand, then by leading zeros."""
    order = []
    zeros = []
    for token in re.findall("[0-9]+|[^0-9]", lot):
        if token[0] in "0123456789":
            order.append((ord("0"), int(token)))
            zeros.append(len(token) - len(str(int(token))))
        else:
            order.append((ord(token), 0))
    return order, zeros


@pytest.mark.parametrize(
    "lot",
    [
        "a",
        "orders 2026",
        ".hidden",
        "...",
        "é",
        "x" * LOT_CHARS_MAX,
        "20230229",
        "20230206PT5M286",
        "20240229PT24H",
        "20230206PT1H23",
        "20230206PT5M286-again",
        "20230206PT30M001",
        "PT5M000",
    ],
)
def test_a_safe_path_segment_is_a_lot_id(lot: str) -> None:
    assert check_lot(lot) == lot


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("x" * (LOT_CHARS_MAX + 1), "201 characters; use at most 200"),
        ("a/b", "'/'"),
        ("a\\b", r"'\\'"),
        ("a\x00b", r"'\x00'"),
        ("a\n", r"'\n'"),
        ("a\x7fb", r"'\x7f'"),
        ("a\x85b", r"'\x85'"),
        ("a\ud800", r"'\ud800'"),
        (".", "folder"),
        ("..", "folder"),
        (" a", "blank"),
        ("a ", "blank"),
        ("a\u00a0", "blank"),
        (" ", "blank"),
    ],
)
def test_what_is_not_a_safe_path_segment_is_refused(text: str, why: str) -> None:
    with pytest.raises(Invalid) as refusal:
        check_lot(text)
    assert why in str(refusal.value)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("20230229PT5M000", "day 20230229, which does not exist"),
        ("20231301PT24H", "day 20231301, which does not exist"),
        ("00000101PT1H00", "day 00000101, which does not exist"),
        ("2023021PT5M000", "a day of 7 digits"),
        ("202302060PT5M000", "a day of 9 digits"),
        ("20230206PT5M288", "PT5M goes from 000 to 287"),
        ("20230206PT10M144", "PT10M goes from 000 to 143"),
        ("20230206PT15M096", "PT15M goes from 000 to 095"),
        ("20230206PT1H24", "PT1H goes from 00 to 23"),
        ("20230206PT5M37", "2 digits after PT5M; write 3"),
        ("20230206PT15M95", "2 digits after PT15M; write 3"),
        ("20230206PT5M", "0 digits after PT5M; write 3"),
        ("20230206PT1H001", "3 digits after PT1H; write 2"),
        ("20230206PT24H00", "2 digits after PT24H; write none"),
        ("20230206PT5M" + "0" * 180, "180 digits after PT5M; write 3"),
        ("20230206pt5m000", "lower case; write PT5M"),
        ("20230206PT24h", "lower case; write PT24H"),
    ],
)
def test_what_only_looks_like_an_interval_is_refused(text: str, why: str) -> None:
    for read in (check_lot, parse_interval):
        with pytest.raises(Invalid) as refusal:
            read(text)
        assert why in str(refusal.value)
        assert text[:64] in str(refusal.value)


@given(st.text())
def test_every_text_is_a_safe_lot_id_or_refused(text: str) -> None:
    if is_lot(text):
        assert 0 < len(text.encode().decode()) <= LOT_CHARS_MAX
        assert not set(text) & {"/", "\\", "\x00", "\n"}
        assert text == text.strip()
    else:
        assert not re.fullmatch("[a-z]{1,200}", text)


@pytest.mark.parametrize(
    ("moment", "lots"),
    [
        ("2023-02-06T23:52:06.5Z", ["20230206PT15M095", "20230206PT10M143", "20230206PT5M286"]),
        ("2023-06-30T22:07:30-05:00", ["20230701PT5M037", "20230701PT1H03", "20230701PT24H"]),
        ("2023-01-01T00:00:00Z", ["20230101PT5M000", "20230101PT1H00", "20230101PT24H"]),
        ("2022-12-31T23:59:59.999999Z", ["20221231PT5M287", "20221231PT1H23", "20221231PT24H"]),
        ("1969-12-31T23:59:59Z", ["19691231PT5M287", "19691231PT24H"]),
        ("0001-01-01T00:00:00Z", ["00010101PT5M000", "00010101PT24H"]),
        ("9999-12-31T23:59:59Z", ["99991231PT5M287", "99991231PT24H"]),
    ],
)
def test_a_moment_lies_in_one_lot_of_each_interval(moment: str, lots: list[str]) -> None:
    assert set(lots) <= {interval.lot_at(parse_time(moment)) for interval in Interval}


def test_an_interval_lot_knows_its_bounds_and_the_next() -> None:
    lot = parse_interval("20230101PT5M000")
    assert lot == IntervalLot(Interval.MINUTES_5, parse_time("2023-01-01T00:00:00Z"))
    assert lot.end == parse_time("2023-01-01T00:05:00Z")
    assert lot.next.id == "20230101PT5M001"


@pytest.mark.parametrize("lot", ["a", "", "20230229", "20230206PT5M000x", "20230206PT30M001"])
def test_a_free_form_id_has_no_interval(lot: str) -> None:
    assert parse_interval(lot) is None


@given(INTERVALS, MOMENTS)
def test_a_lot_holds_the_moment_it_was_made_from(interval: Interval, at: Micros) -> None:
    lot = parse_interval(check_lot(interval.lot_at(at)))
    assert lot is not None
    assert lot.id == interval.lot_at(at)
    assert lot.interval is interval
    assert lot.start <= at < lot.end == lot.start + interval.length


@given(INTERVALS, MIDDLE_MOMENTS)
def test_the_next_lot_begins_where_one_ends(interval: Interval, at: Micros) -> None:
    lot = parse_interval(interval.lot_at(at))
    assert lot is not None
    assert lot.next.start == lot.end
    assert list(interval.lots(lot.start, lot.next.end)) == [lot.id, lot.next.id]
    assert lot.next.id == interval.lot_at(lot.end) != interval.lot_at(lot.end - 1) == lot.id


def test_there_are_no_lots_outside_the_years_that_can_be_written() -> None:
    last = parse_interval("99991231PT24H")
    assert last is not None
    with pytest.raises(Invalid, match="year 9999"):
        _ = last.next
    with pytest.raises(Invalid, match="year 1 "):
        Interval.HOUR.lot_at(parse_time("0001-01-01T00:00:00Z") - 1)
    with pytest.raises(Invalid, match="year 9999"):
        Interval.HOUR.lot_at(10**30)


def test_a_lot_begins_at_a_multiple_of_its_length() -> None:
    with pytest.raises(Invalid, match="multiple of its length"):
        IntervalLot(Interval.HOUR, HOUR + 1)


def test_the_lots_of_a_span_are_those_that_begin_in_it() -> None:
    start = parse_time("2023-02-06T22:00:00Z")
    assert list(Interval.HOUR.lots(start, start + 3 * HOUR)) == [
        "20230206PT1H22",
        "20230206PT1H23",
        "20230207PT1H00",
    ]
    assert list(Interval.HOUR.lots(start + 1, start + HOUR + 1)) == ["20230206PT1H23"]
    assert list(Interval.HOUR.lots(start, start)) == []
    assert len(list(Interval.MINUTES_5.lots(start, start + DAY))) == 288


@given(INTERVALS, MIDDLE_MOMENTS, st.integers(-HOUR, 3 * DAY))
def test_the_lots_of_a_span_have_no_gap(interval: Interval, start: Micros, span: int) -> None:
    end = start + span
    lots = [parse_interval(lot) for lot in interval.lots(start, end)]
    starts = [lot.start for lot in lots if lot is not None]
    assert len(starts) == len(lots)
    assert all(start <= at < end for at in starts)
    assert all(later - earlier == interval.length for earlier, later in pairwise(starts))
    if span >= interval.length:
        assert starts[0] - interval.length < start
        assert starts[-1] + interval.length >= end


@pytest.mark.parametrize(
    "lots",
    [
        ["1", "2", "9", "10", "11", "99", "100"],
        ["b", "b2", "b10", "b10a", "b10b", "c"],
        ["0", "00", "1", "01", "001", "2", "02"],
        ["a01a", "a1b", "a01b", "a2a"],
        ["9" * 8, "1" + "0" * 8, "9" * 9, "1" + "0" * 99, "9" * 100, "1" + "0" * 100, "9" * 200],
        ["v1.2.10", "v1.10.2", "v1.10.10"],
        ["a", "a b", "a-1", "a1", "a:", "aa", "aé"],
        ["20221231PT5M287", "20230101PT5M000", "20230101PT5M001", "20230101PT5M100"],
    ],
)
def test_lots_are_worked_on_in_natural_order(lots: list[str]) -> None:
    assert all(key_bytes(one) < key_bytes(other) for one, other in pairwise(lots))


@given(LOTS, LOTS)
@example("a", "a01")
@example("01", "1")
@example("01", "1 a")
@example("0" * 9 + "1", "0" * 8 + "1")
@example("0a01", "00a1")
def test_keys_compare_as_numbers_and_letters_do(one: str, other: str) -> None:
    assert (key_bytes(one) < key_bytes(other)) == (natural(one) < natural(other))


@given(LOTS, LOTS)
def test_different_lots_have_different_keys_without_nul(one: str, other: str) -> None:
    assert (sort_key(one) == sort_key(other)) == (one == other)
    assert b"\x00" not in key_bytes(one)
    assert len(key_bytes(one)) < 1000


@given(INTERVALS, MOMENTS, MOMENTS)
@example(Interval.MINUTES_5, parse_time("0009-12-31"), parse_time("0010-01-01"))
@example(Interval.MINUTES_5, parse_time("2023-01-01T00:45"), parse_time("2023-01-01T00:50"))
def test_the_lots_of_one_interval_are_in_order_of_time(
    interval: Interval, one: Micros, other: Micros
) -> None:
    first, second = one // interval.length, other // interval.length
    keys = key_bytes(interval.lot_at(one)), key_bytes(interval.lot_at(other))
    assert (keys[0] < keys[1]) == (first < second)
    assert (keys[0] == keys[1]) == (first == second)


@pytest.mark.parametrize("interval", Interval)
def test_a_clock_dataset_names_its_interval(interval: Interval) -> None:
    assert clock_interval(f"clock:{interval}") is interval


@pytest.mark.parametrize("name", ["orders", "", "clock", "clocks:PT1H", "PT1H", "a.clock:PT1H"])
def test_any_other_dataset_is_no_clock(name: str) -> None:
    assert clock_interval(name) is None


@pytest.mark.parametrize("name", ["clock:", "clock:PT2H", "clock:pt1h", "clock:PT1H "])
def test_a_clock_of_an_unknown_interval_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(Invalid) as refusal:
        clock_interval(name)
    assert repr(name) in str(refusal.value)
    assert all(f"clock:{interval}" in str(refusal.value) for interval in Interval)
