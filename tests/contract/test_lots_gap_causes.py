"""Ranges of gaps hold only lots with one cause, whose root may be another lot of the same kind."""

import random
from collections.abc import Iterator

import pytest

from penstock.clock import DAY, HOUR, SECOND, parse_time
from penstock.locks.commands import HoldJob, HoldLot, HoldWork
from penstock.locks.explain.why import explain_work
from penstock.locks.gaps import causes
from penstock.locks.gaps.gaps import load_gaps
from penstock.schema.gaps import Cause, GapKind, Gaps
from penstock.schema.locks import Why
from penstock.schema.lot_ids import Interval
from tests.contract.lot_site import Site, hours, open_site
from tests.contract.test_reading_cost import CountingTransaction

pytestmark = pytest.mark.one_database

DAY_0 = parse_time("2026-11-14T00:00:00Z")


@pytest.fixture
def site(database_url: str) -> Iterator[Site]:
    """raw → clean; clean and side → joined; joined → final."""
    with open_site(database_url) as site:
        site.wire("clean", ["raw"], ["clean"], tries_max=1)
        site.wire("join", ["clean", "side"], ["joined"])
        site.wire("last", ["joined"], ["final"])
        yield site


def told(found: Gaps) -> list[tuple[str, str, str, list[tuple[str, str]]]]:
    """First and last lot of each range, its kind, and the roots of it."""
    return [
        (gap.first[8:], gap.last[8:], str(gap.kind), roots(gap.cause))
        for gap in found.ranges
        if gap.cause is not None
    ]


def roots(cause: Cause) -> list[tuple[str, str]]:
    return [(root.dataset, root.lot[8:]) for root in cause.roots]


def test_lots_with_other_causes_upstream_are_ranges_of_their_own(site: Site) -> None:
    lots = hours(0, 6)
    site.register("raw", [lots[at] for at in (0, 1, 2, 4)])
    site.register("side", [lots[at] for at in (0, 2, 3, 5)])
    site.complete("clean", [lots[at] for at in (0, 1, 4)])
    site.fail("clean", lots[2])
    site.complete("join", [lots[0]])
    site.complete("last", [lots[0]])
    found = site.gaps("final", lots[0], lots[5])
    assert told(found) == [
        ("PT1H01", "PT1H01", "missing", [("side", "PT1H01")]),
        ("PT1H02", "PT1H02", "missing", [("clean", "PT1H02")]),
        ("PT1H03", "PT1H03", "missing", [("raw", "PT1H03")]),
        ("PT1H04", "PT1H04", "missing", [("side", "PT1H04")]),
        ("PT1H05", "PT1H05", "missing", [("raw", "PT1H05")]),
    ]
    assert found.totals == {GapKind.MISSING: 5}


def test_a_gap_behind_a_join_has_a_root_for_each_missing_input(site: Site) -> None:
    lot = hours(0, 1)[0]

    found = site.gaps("final", lot, lot, interval=Interval.HOUR)

    [(*_, of_lot)] = told(found)
    assert sorted(of_lot) == [("raw", "PT1H00"), ("side", "PT1H00")]


def test_a_gap_of_a_held_job_names_the_hold_and_the_missing_input(site: Site) -> None:
    lot = hours(0, 1)[0]
    site.do(HoldJob("ann", "wait", "ns", "join"))

    [(*_, of_lot)] = told(site.gaps("final", lot, lot, interval=Interval.HOUR))

    assert sorted(of_lot) == [("joined", "PT1H00"), ("raw", "PT1H00"), ("side", "PT1H00")]


def test_lots_that_wait_for_the_like_upstream_are_one_range(site: Site) -> None:
    lots = hours(0, 24)
    site.register("raw", lots[:3])
    site.register("side", lots)
    site.complete("clean", lots[:3])
    site.complete("join", lots[:3])
    site.complete("last", lots[:3])
    assert told(site.gaps("final", lots[0], lots[-1])) == [
        ("PT1H03", "PT1H23", "missing", [("raw", "PT1H03")])
    ]


def test_what_a_person_holds_and_what_is_out_of_tries_are_two_ranges(site: Site) -> None:
    lots = hours(0, 3)
    site.register("raw", lots)
    site.complete("clean", [lots[2]])
    site.fail("clean", lots[0])
    site.fail("clean", lots[1])
    site.do(HoldLot("boss", "wrong", "ns", "clean", lots[2]))
    found = site.gaps("clean", lots[0], lots[2])
    assert told(found) == [
        ("PT1H00", "PT1H01", "held", [("clean", "PT1H00")]),
        ("PT1H02", "PT1H02", "held", [("clean", "PT1H02")]),
    ]


def test_what_a_clock_has_still_to_come_to_is_a_range_of_its_own(site: Site) -> None:
    site.wire("tick", ["clock:PT1H"], ["ticks"])
    day = site.now - site.now % DAY
    found = site.gaps("ticks", day, day + DAY, interval=Interval.HOUR)
    assert [(gap.first[8:], gap.last[8:]) for gap in found.ranges] == [
        ("PT1H00", "PT1H11"),
        ("PT1H12", "PT1H23"),
    ]
    past, coming = (gap.cause for gap in found.ranges)
    assert past is not None
    assert coming is not None
    assert "before the clock was in use" in past.sentence
    assert "and then it is READY" in coming.sentence


def shape(found: Why | None) -> object:
    """What kind of a cause it is: who waits, and for what kind of reasons."""
    if found is None:
        return None
    reasons = [(reason.kind, reason.name, reason.status) for reason in found.reasons]
    return found.job, found.state, reasons, [shape(cause) for cause in found.causes]


@pytest.mark.parametrize("seed", range(3))
def test_every_lot_of_a_range_has_the_cause_that_is_told_of_the_first(
    site: Site, seed: int
) -> None:
    chance = random.Random(seed)
    span = [lot for day in (14, 15) for lot in hours(0, 24, f"202611{day}")]
    for dataset in ("raw", "side"):
        site.register(dataset, [lot for lot in span if chance.random() < 0.8])
    for job in ("clean", "join", "last"):
        for lot in span:
            if not can_work(site, job, lot):
                continue
            match chance.choice(["done", "done", "done", "fail", "run", "hold", "leave"]):
                case "done":
                    site.complete(job, [lot])
                case "fail":
                    site.fail(job, lot)
                case "run":
                    site.claim(job, lot)
                case "hold":
                    site.do(HoldWork("boss", "odd", "ns", job, lot))
                case _:
                    pass
    site.now += SECOND
    found = site.gaps("final", DAY_0, DAY_0 + 48 * HOUR, interval=Interval.HOUR)
    assert any(gap.count > 1 for gap in found.ranges)
    for gap in found.ranges:
        assert gap.cause is not None
        first = span.index(gap.first)
        for lot in span[first : first + gap.count]:
            (alone,) = site.gaps("final", lot, lot, interval=Interval.HOUR).ranges
            assert alone.cause is not None
            assert (alone.kind, shape(alone.cause.why)) == (gap.kind, shape(gap.cause.why))


def can_work(site: Site, job: str, lot: str) -> bool:
    with site.catalog.read() as tx:
        return explain_work(tx, "ns", job, lot, site.now).runnable


def test_of_more_lots_upstream_than_are_looked_at_it_is_said(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    lots = hours(0, 24)
    site.register("side", lots[::2])
    whole = site.gaps("joined", lots[0], lots[-1], interval=Interval.HOUR)
    assert [(gap.count, gap.is_alike) for gap in whole.ranges] == [(1, True)] * 24
    monkeypatch.setattr(causes, "COUNTED_MAX", 23)
    rough = site.gaps("final", lots[0], lots[-1], interval=Interval.HOUR)
    assert [(gap.count, gap.is_alike) for gap in rough.ranges] == [(24, False)]


def test_a_long_range_that_waits_for_much_costs_no_more_statements(site: Site) -> None:
    site.register("side", hours(0, 24, "20240101"))

    def statements(days: int) -> int:
        start = parse_time("2024-01-01T00:00:00Z")
        with site.catalog.read() as tx:
            counted = CountingTransaction(tx)
            found = load_gaps(
                counted, "ns", "joined", start, start + days * DAY, site.now,
                interval=Interval.HOUR,
            )  # fmt: skip
        assert len(found.ranges) == 2
        return counted.statements

    assert statements(2) == statements(700)
