"""Times: whole microseconds inside, ISO 8601 at the edges."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.clock import (
    DAY,
    HOUR,
    SECOND,
    format_time,
    from_datetime,
    lasts,
    parse_time,
    say_time,
    system_clock,
    to_datetime,
)
from penstock.errors import Invalid

NOON = 1_794_744_000 * SECOND


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-11-15T12:00:00Z", NOON),
        ("2026-11-15T12:00:00", NOON),
        ("2026-11-15T12:00:00.5Z", NOON + SECOND // 2),
        ("2026-11-15T12:00:00.123456Z", NOON + 123_456),
        ("2026-11-15T12:00:00.123456789Z", NOON + 123_456),
        ("2026-11-15T14:00:00+02:00", NOON),
        ("2026-11-15T07:00:00-0500", NOON),
        ("2026-11-15", NOON - 12 * HOUR),
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.999999Z", -1),
    ],
)
def test_a_time_is_parsed(text: str, at: int) -> None:
    assert parse_time(text) == at


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-13-01T00:00:00Z", "2026-11-15T25:00:00Z", "1794744000", "x" * 500]
)
def test_an_invalid_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(Invalid) as refusal:
        parse_time(text)
    assert text[:64] in str(refusal.value)
    assert "2026-11-15T09:30:00Z" in str(refusal.value)
    assert len(str(refusal.value)) < 200


def test_a_time_is_written_with_milliseconds_or_microseconds() -> None:
    assert format_time(NOON) == "2026-11-15T12:00:00.000Z"
    assert format_time(NOON + 120_000) == "2026-11-15T12:00:00.120Z"
    assert format_time(NOON + 123_456) == "2026-11-15T12:00:00.123456Z"
    assert say_time(NOON + 123_456) == "2026-11-15 12:00:00 UTC"


def test_a_datetime_without_an_offset_is_utc() -> None:
    berlin = timezone(timedelta(hours=1))
    assert from_datetime(datetime(2026, 11, 15, 13, tzinfo=berlin)) == NOON
    assert from_datetime(datetime(2026, 11, 15, 12, tzinfo=UTC).replace(tzinfo=None)) == NOON
    assert to_datetime(NOON) == datetime(2026, 11, 15, 12, tzinfo=UTC)


@given(st.datetimes(timezones=st.just(UTC)))
def test_every_time_survives_writing_and_parsing(moment: datetime) -> None:
    at = from_datetime(moment)
    assert to_datetime(at) == moment
    assert parse_time(format_time(at)) == at


def test_the_system_clock_is_the_time_of_day() -> None:
    before = datetime.now(UTC)
    now = to_datetime(system_clock())
    after = datetime.now(UTC)
    assert before <= now <= after


def test_the_units_fit_together() -> None:
    assert 24 * 3600 * SECOND == 24 * HOUR == DAY


@pytest.mark.parametrize(
    ("until", "is_so"), [(-1, False), (0, False), (1, True), (10, True), (20, True), (21, False)]
)
def test_a_lease_that_outlasts_its_length_has_ended(until: int, is_so: bool) -> None:
    assert lasts(NOON + until, 10, NOON) is is_so
