"""Schedules: a clock dataset has no data, and its lots turn READY as their interval ends."""

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.catalog.commands import DatasetName
from penstock.catalog.writes import open_write_queue
from penstock.clock import DAY, HOUR, SECOND, parse_time
from penstock.db import open_database
from penstock.errors import Invalid
from penstock.locks.commands import (
    ClaimLots,
    ClaimRef,
    CompleteClaims,
    HoldLot,
    RegisterLots,
    Sweep,
    WireJob,
)
from penstock.locks.lease_expiry import AT_ONCE_MAX
from penstock.schema.locks import Stale

pytestmark = pytest.mark.one_database

CLOCK, RAW, OUT = (DatasetName("ns", name) for name in ("clock:PT1H", "raw", "report"))
NOON = parse_time("2026-11-15T12:00:00Z")
AHEAD = 3 * DAY


class Day:
    """A catalog whose clock is set by hand."""

    def __init__(self, url: str) -> None:
        self.now = NOON + 10 * 60 * SECOND
        self._database = open_database(url)
        self._database.migrate()
        self._catalog = open_write_queue(
            self._database, clock=lambda: self.now, batch_events_max=64, queue_length_max=64
        )
        self._catalog.start()

    def do(self, command: Any) -> Any:
        return self._catalog.submit(command).result()

    def claims(self, count: int = 10) -> list[str]:
        """What is there to be worked on; it is done at once."""
        claims = self.do(ClaimLots("ns", "hourly", "worker", count=count))
        ended = self.do(CompleteClaims(tuple(ClaimRef(claim.id, claim.token) for claim in claims)))
        assert all(end.refused is None for end in ended)
        return [claim.lot for claim in claims]

    def close(self) -> None:
        self._catalog.stop()
        self._database.close()


@pytest.fixture
def day(database_url: str) -> Iterator[Day]:
    day = Day(database_url)
    yield day
    day.close()


def test_a_lot_of_a_clock_is_there_when_its_interval_has_ended(day: Day) -> None:
    day.do(WireJob("ns", "hourly", (CLOCK,), (OUT,)))
    day.now = NOON + HOUR - 1
    assert day.do(Sweep()).ticked == 0
    assert day.claims() == []
    day.now = NOON + HOUR
    assert day.do(Sweep()).ticked == 1
    assert day.do(Sweep()).ticked == 0
    assert day.claims() == ["20261115PT1H12"]
    assert day.claims() == []


def test_after_an_outage_every_interval_that_was_missed_follows_in_order(day: Day) -> None:
    day.do(WireJob("ns", "hourly", (CLOCK,), (OUT,)))
    day.now = NOON + 13 * HOUR
    assert day.do(Sweep()).ticked == 13
    lots = day.claims(count=100)
    assert lots == [
        *(f"20261115PT1H{hour:02}" for hour in range(12, 24)),
        "20261116PT1H00",
    ]


def test_a_long_outage_is_made_up_for_a_part_at_a_time(day: Day) -> None:
    day.do(WireJob("ns", "hourly", (CLOCK,), (OUT,)))
    day.now = NOON + (AT_ONCE_MAX + 3) * HOUR
    first, second = day.do(Sweep()), day.do(Sweep())
    assert (first.ticked, first.has_more) == (AT_ONCE_MAX, True)
    assert (second.ticked, second.has_more) == (3, False)


def test_a_schedule_is_one_more_input(day: Day) -> None:
    day.do(WireJob("ns", "hourly", (CLOCK, RAW), (OUT,)))
    day.do(RegisterLots("ns", "raw", ("20261115PT1H12", "20261115PT1H13"), "ann"))
    assert day.claims() == []
    day.now = NOON + HOUR
    day.do(Sweep())
    assert day.claims() == ["20261115PT1H12"]
    day.now = NOON + 3 * HOUR
    day.do(Sweep())
    assert day.claims() == ["20261115PT1H13"]


def test_nobody_registers_lots_of_a_clock(day: Day) -> None:
    day.do(WireJob("ns", "hourly", (CLOCK,), (OUT,)))
    with pytest.raises(Invalid, match="become READY by themselves"):
        day.do(RegisterLots("ns", "clock:PT1H", ("20261115PT1H12",), "ann"))


def test_no_job_makes_lots_of_a_clock(day: Day) -> None:
    with pytest.raises(Invalid, match="clock:PT1H is a clock, and no job makes it"):
        day.do(WireJob("ns", "maker", (RAW,), (CLOCK,)))


def test_a_lot_of_a_clock_that_is_held_before_it_is_there_arrives_held_and_stops_nothing_else(
    day: Day,
) -> None:
    day.do(WireJob("ns", "hourly", (CLOCK,), (OUT,)))
    day.do(WireJob("ns", "other", (RAW,), (DatasetName("ns", "out"),)))
    day.do(RegisterLots("ns", "raw", ("1",), "ann"))
    [claim] = day.do(ClaimLots("ns", "other", "dead", lease_seconds=60))
    held = ("ann", "no run this time", "ns", "clock:PT1H", "20261115PT1H12")
    day.do(HoldLot(*held))
    day.now = NOON + 2 * HOUR
    swept = day.do(Sweep())
    assert (swept.ticked, swept.expired) == (2, 1)
    assert swept.lost == ((claim.id, "1"),)
    assert day.claims() == ["20261115PT1H13"]
    day.do(HoldLot(*held, hold=False))
    assert day.claims() == ["20261115PT1H12"]


def test_a_clock_that_a_server_far_ahead_started_goes_on_with_the_interval_of_today(
    day: Day,
) -> None:
    day.now += AHEAD
    day.do(WireJob("ns", "hourly", (CLOCK,), (OUT,)))
    day.now -= AHEAD
    day.do(Sweep())
    day.now = NOON + HOUR
    assert day.do(Sweep()).ticked == 1
    assert day.claims() == ["20261115PT1H12"]


def test_a_lot_that_was_ready_before_its_interval_ended_comes_again_when_it_has(day: Day) -> None:
    day.do(WireJob("ns", "hourly", (CLOCK,), (OUT,), stale=Stale.RERUN))
    day.now += AHEAD
    while day.do(Sweep()).has_more:
        pass
    day.now -= AHEAD
    day.do(Sweep())
    early = day.claims(count=3)
    assert early == [f"20261115PT1H{hour}" for hour in (12, 13, 14)]
    day.now = NOON + 2 * HOUR
    assert day.do(Sweep()).ticked == 2
    first = day.do(ClaimLots("ns", "hourly", "worker", lots=tuple(early[:2])))
    assert [claim.attempt for claim in first] == [1, 1]
    assert day.do(Sweep()).ticked == 0


def test_a_clock_of_a_server_that_is_somewhat_ahead_is_left_as_it_is(day: Day) -> None:
    day.now = NOON + HOUR - SECOND
    day.do(WireJob("ns", "daily", (DatasetName("ns", "clock:PT24H"),), (OUT,)))
    day.now = NOON + 12 * HOUR + SECOND
    assert day.do(Sweep()).ticked == 1
    day.now -= 2 * SECOND
    day.do(Sweep())
    day.now += 2 * SECOND
    assert day.do(Sweep()).ticked == 0
