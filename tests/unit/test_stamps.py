"""Stamps order events and keep the time of each."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog.events.facets import event_stamp, run_stamp, stamped_at
from penstock.catalog.events.parse import EVENT_TYPES
from penstock.clock import parse_time

FIRST, LAST = parse_time("0001-01-01T00:00:00Z"), parse_time("9999-12-31T23:59:59.999999Z")
times = st.integers(FIRST, LAST)
types = st.sampled_from(["", *sorted(EVENT_TYPES)])


@given(times, types)
def test_every_stamp_contains_the_time_of_its_event(at: int, event_type: str) -> None:
    assert stamped_at(event_stamp(at, event_type)) == at
    assert stamped_at(run_stamp(at, event_type)) == at


@given(times, times)
def test_within_a_run_the_first_end_wins(one: int, other: int) -> None:
    ends = run_stamp(one, "COMPLETE"), run_stamp(other, "COMPLETE")
    assert (ends[0] > ends[1]) == (one < other)
    assert ends[0] > run_stamp(other, "RUNNING")
