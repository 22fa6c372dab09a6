"""Spans of lots, cut into stretches that are counted at once."""

import itertools

import pytest

from penstock.clock import DAY, HOUR, parse_time
from penstock.locks.gaps.spans import Span
from penstock.schema.lot_ids import Interval

FIRST = parse_time("2023-11-30T22:00:00Z")


@pytest.mark.parametrize("interval", Interval)
def test_stretches_follow_each_other_and_each_has_a_beginning_of_its_own(
    interval: Interval,
) -> None:
    start = FIRST - FIRST % interval.length
    span = Span(interval, start, start + 800 * DAY)
    stretches = span.stretches()
    assert (stretches[0].start, stretches[-1].end) == (span.start, span.end)
    assert all(one.end == other.start for one, other in itertools.pairwise(stretches))
    assert sum(stretch.count for stretch in stretches) == span.count
    heads = [stretch.first[: span.head] for stretch in stretches]
    assert heads == [stretch.last[: span.head] for stretch in stretches]
    assert len(set(heads)) == len(stretches)
    assert [lot for stretch in stretches for lot in stretch.lots()] == list(span.lots())


def test_a_stretch_is_a_day_or_a_month_or_a_year() -> None:
    minutes = Span(Interval.MINUTES_5, FIRST, FIRST + 3 * HOUR).stretches()
    assert [each.count for each in minutes] == [24, 12]
    hours = Span(Interval.HOUR, FIRST, FIRST + 33 * DAY).stretches()
    assert [each.count for each in hours] == [2, 31 * 24, 46]
    day = FIRST - FIRST % DAY
    days = Span(Interval.DAY, day, day + 400 * DAY).stretches()
    assert [each.count for each in days] == [32, 366, 2]


def test_the_last_year_there_is_ends_too() -> None:
    end = parse_time("9999-12-31T00:00:00Z")
    span = Span(Interval.DAY, end - 30 * DAY, end)
    assert [each.count for each in span.stretches()] == [30]
    hours = Span(Interval.HOUR, end - 2 * HOUR, end)
    assert [each.count for each in hours.stretches()] == [2]
