"""The watcher makes lots of arrived objects by their time, and applies the late policy."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.arcs.arrivals import arrival
from penstock.arcs.arrivals.commands import DeleteArrival
from penstock.arcs.arrivals.rows import find_arrival
from penstock.arcs.arrivals.scan import RoundResult
from penstock.arcs.arrivals.watcher import Watcher
from penstock.catalog.commands import DatasetName
from penstock.clock import DAY, SECOND, format_time, parse_time
from penstock.errors import Conflict, NotFound
from penstock.locks.commands import ClaimLots, HoldLot, RegisterLots, WireJob
from penstock.schema.arrivals import Late, OnMissing, TimeFrom
from tests.contract.arrival_site import MINUTE, NOON, Site
from tests.doors.waiting import until

pytestmark = pytest.mark.one_database

FIRST, SECOND_LOT, THIRD = (f"20261115PT5M{number}" for number in (144, 145, 146))


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Site]:
    site = Site(database_url, tmp_path)
    yield site
    site.close()


def test_an_interval_closes_after_its_grace_time_with_all_of_its_objects(site: Site) -> None:
    site.declare()
    site.put("sub folder/a b.csv", NOON, b"four")
    site.put("last", NOON + 5 * MINUTE - 1, b"xx")
    site.put("next", NOON + 5 * MINUTE, b"y")
    site.put("long ago", NOON - 1)
    assert site.later(5) == RoundResult(skipped=1)
    assert site.lots() == {}
    assert site.later(6) == RoundResult(assigned=2, closed=1, skipped=1)
    [manifest] = site.lots().values()
    assert [(item.uri, item.size) for item in manifest.uris] == [
        ((site.landing / "last").as_uri(), 2),
        ((site.landing / "sub folder/a b.csv").as_uri(), 4),
    ]
    assert manifest.uris[1].created == format_time(NOON)
    assert site.later(6) == RoundResult(skipped=1)
    assert site.later(11) == RoundResult(assigned=1, closed=1, skipped=1)
    assert list(site.lots()) == [FIRST, SECOND_LOT]
    site.check()
    site.check_keys()


def test_interval_without_objects_is_empty_if_declared(site: Site) -> None:
    site.declare()
    site.put("a", NOON + 11 * MINUTE)
    assert site.later(16) == RoundResult(assigned=1, closed=3, empty=2)
    assert {lot: each.state for lot, each in site.lots().items()} == {
        FIRST: "empty",
        SECOND_LOT: "empty",
        THIRD: "complete",
    }
    site.check_keys()


def test_interval_without_objects_has_no_lot(site: Site) -> None:
    site.declare(missing=OnMissing.MISSING)
    site.put("a", NOON + 11 * MINUTE)
    assert site.later(31) == RoundResult(assigned=1, closed=6)
    assert site.names() == {THIRD: ["a"]}
    site.put("late", NOON)
    assert site.later(32) == RoundResult(late=1)
    assert site.names() == {FIRST: ["late"], THIRD: ["a"]}


def test_amended_lot_omits_deleted_objects(site: Site) -> None:
    site.declare(late=Late.AMEND)
    site.put("a", NOON)
    site.put("b", NOON)
    site.later(6)
    (site.landing / "a").unlink()
    site.put("late", NOON)
    assert site.later(7) == RoundResult(late=1)
    assert site.names() == {FIRST: ["b", "late"]}
    site.check()
    site.put("a", NOON)
    assert site.later(8) == RoundResult(late=1)
    assert site.names() == {FIRST: ["a", "b", "late"]}
    site.check()


def test_arrived_lots_trigger_jobs(site: Site) -> None:
    raw, clean = DatasetName("ns", "raw"), DatasetName("ns", "clean")
    site.do(WireJob("ns", "job", (raw,), (clean,)))
    site.declare()
    site.put("a", NOON)
    site.later(6)
    [claim] = site.do(ClaimLots("ns", "job", "worker", count=10))
    assert claim.lot == FIRST


def test_late_objects_amend_their_lot(site: Site) -> None:
    site.declare(late=Late.AMEND)
    site.put("a", NOON, b"1")
    site.later(6)
    site.put("late", NOON + 1, b"22")
    assert site.later(7) == RoundResult(late=1)
    [manifest] = site.lots().values()
    assert [item.size for item in manifest.uris] == [1, 2]
    site.put("a", NOON + 6 * MINUTE, b"changed")
    assert site.later(8) == RoundResult(late=1)
    assert site.later(11) == RoundResult(closed=1, empty=1)
    assert [item.size for item in site.lots()[FIRST].uris] == [7, 2]
    site.check()
    site.check_keys()


def test_late_data_makes_an_empty_lot_complete(site: Site) -> None:
    site.declare()
    assert site.later(6) == RoundResult(closed=1, empty=1)
    site.put("late", NOON)
    assert site.later(7) == RoundResult(late=1)
    assert site.lots()[FIRST].state == "complete"
    site.check_keys()


def test_late_objects_go_to_the_next_lot(site: Site) -> None:
    site.declare(late=Late.NEXT)
    site.put("a", NOON, b"1")
    site.put("b", NOON, b"2")
    site.later(6)
    site.put("late", NOON)
    site.put("a", NOON + 3 * MINUTE, b"changed")
    assert site.later(7) == RoundResult()
    assert site.names() == {FIRST: ["a", "b"]}
    site.put("c", NOON + 12 * MINUTE)
    assert site.later(16) == RoundResult(assigned=1, late=2, closed=2)
    assert site.names() == {FIRST: ["b"], SECOND_LOT: ["a", "late"], THIRD: ["c"]}
    site.check()
    site.check_keys()


def test_late_objects_are_refused_and_listed(site: Site) -> None:
    site.declare(late=Late.REFUSE)
    held = site.put("a", NOON, b"1")
    site.later(6)
    late = site.put("late", NOON)
    site.put("a", NOON + 6 * MINUTE, b"changed")
    assert site.later(7) == RoundResult(refused=2)
    assert site.later(8) == RoundResult()
    assert [item.size for item in site.lots()[FIRST].uris] == [1]
    refused = site.refused()
    assert {uri: (row.lot, row.state) for uri, row in refused.items()} == {
        held: (FIRST, "assigned"),
        late: (FIRST, "refused"),
    }
    site.put("late", NOON + 7 * MINUTE)
    assert site.later(11) == RoundResult(assigned=1, closed=1)
    assert site.names()[SECOND_LOT] == ["late"]
    assert list(site.refused()) == [held]
    site.check()


def test_event_times_in_keys_decide_around_midnight(site: Site) -> None:
    """Also on days when daylight saving changes."""
    site.now = parse_time("2026-10-24T22:00:00Z")
    site.declare(
        interval="PT1H",
        time=TimeFrom.EVENT,
        pattern="dt={year}-{month}-{day}/{hour}{minute}",
        grace_seconds=0,
    )
    for moment in ("24/2359", "25/0000", "25/0059", "25/0100", "25/0200", "25/2359", "26/0000"):
        site.put(f"dt=2026-10-{moment}", NOON)
    site.put("dt=2026-10-32/0000", NOON)
    site.put("something else", NOON)
    seen = site.watcher().go_round(parse_time("2026-10-26T01:00:00Z"))
    assert seen == RoundResult(assigned=7, closed=27, empty=27 - 6, skipped=2)
    assert {lot: names for lot, names in site.names().items() if names} == {
        "20261024PT1H23": ["2359"],
        "20261025PT1H00": ["0000", "0059"],
        "20261025PT1H01": ["0100"],
        "20261025PT1H02": ["0200"],
        "20261025PT1H23": ["2359"],
        "20261026PT1H00": ["0000"],
    }


def test_keys_can_name_lots(site: Site) -> None:
    site.declare(interval="", pattern="batch={lot}/")
    site.put("batch=one/a", NOON)
    site.put("batch=one/b", NOON + 2 * MINUTE)
    site.put("batch=two/a", NOON + 3 * MINUTE)
    assert site.later(2) == RoundResult()
    assert site.later(3) == RoundResult(assigned=2, closed=1)
    assert site.later(4) == RoundResult(assigned=1, closed=1)
    site.put("batch=one/c", NOON + 9 * MINUTE)
    assert site.later(9) == RoundResult(late=1)
    assert site.names() == {"one": ["a", "b", "c"], "two": ["a"]}
    site.check()
    site.check_keys()


def test_declaration_again_continues(site: Site) -> None:
    site.declare()
    site.later(6)
    site.declare(late=Late.NEXT)
    assert site.later(11) == RoundResult(closed=1, empty=1)
    assert list(site.lots()) == [FIRST, SECOND_LOT]
    with pytest.raises(Conflict, match="are cut by PT5M, not by PT1H"):
        site.declare(interval="PT1H")
    site.do(DeleteArrival("me", "ns", "raw"))
    assert site.later(30) == RoundResult()
    with site.catalog.read() as tx, pytest.raises(NotFound, match="nothing is declared to arrive"):
        find_arrival(tx, "ns", "raw")


def test_earlier_start_adds_no_object_twice(site: Site) -> None:
    site.declare()
    site.put("a", NOON)
    site.later(6)
    site.do(DeleteArrival("me", "ns", "raw"))
    site.declare(start=format_time(NOON - 5 * MINUTE))
    site.put("b", NOON - 1)
    assert site.later(7) == RoundResult(assigned=1, closed=2)
    assert site.names() == {"20261115PT5M143": ["b"], FIRST: ["a"]}
    site.check()


def test_an_earlier_start_leaves_no_hole(site: Site) -> None:
    site.declare()
    site.put("a", NOON)
    site.later(6)
    before = site.lots()[FIRST]
    site.put("b", NOON - 11 * MINUTE)
    site.declare(start=format_time(NOON - 15 * MINUTE))
    assert site.later(7) == RoundResult(assigned=1, closed=4, empty=2)
    assert site.names() == {
        "20261115PT5M141": ["b"],
        "20261115PT5M142": [],
        "20261115PT5M143": [],
        FIRST: ["a"],
    }
    assert site.lots()[FIRST] == before
    site.check()


def test_new_declaration_keeps_published_lots(site: Site) -> None:
    start = format_time(NOON)
    site.declare(start=start, late=Late.REFUSE)
    site.put("a", NOON)
    site.later(11)
    before = site.lots()
    site.do(DeleteArrival("me", "ns", "raw"))
    late = site.put("late", NOON + 5 * MINUTE)
    site.declare(start=start, late=Late.REFUSE)
    assert site.later(12) == RoundResult(refused=1, closed=2)
    assert site.lots() == before
    assert list(site.refused()) == [late]
    assert site.later(16) == RoundResult(closed=1, empty=1)
    site.check()


def test_dataset_with_a_writing_job_cannot_arrive(site: Site) -> None:
    names = DatasetName("ns", "tick"), DatasetName("ns", "raw")
    site.do(WireJob("ns", "job", (names[0],), (names[1],)))
    with pytest.raises(Conflict, match="are made by job ns/job"):
        site.declare()


def test_held_lot_waits_and_loses_nothing(site: Site) -> None:
    site.declare()
    site.put("a", NOON)
    site.later(6)
    site.do(HoldLot("me", "look at it", "ns", "raw", FIRST))
    site.put("late", NOON)
    site.put("b", NOON + 6 * MINUTE)
    assert site.later(11) == RoundResult(assigned=1, closed=1)
    site.do(HoldLot("me", "it is good", "ns", "raw", FIRST, hold=False))
    assert site.later(12) == RoundResult(late=1)
    assert site.names() == {FIRST: ["a", "late"], SECOND_LOT: ["b"]}


def test_no_interval_closes_before_a_held_one(site: Site) -> None:
    site.declare()
    site.do(RegisterLots("ns", "raw", (SECOND_LOT,), "somebody"))
    site.do(HoldLot("me", "not yet", "ns", "raw", SECOND_LOT))
    for minutes in (0, 5, 10):
        site.put(f"{minutes}", NOON + minutes * MINUTE)
    assert site.later(16) == RoundResult(assigned=1, closed=1, has_more=True)
    assert site.later(17) == RoundResult()
    site.do(HoldLot("me", "now", "ns", "raw", SECOND_LOT, hold=False))
    assert site.later(18) == RoundResult(assigned=2, closed=2)
    assert site.names() == {FIRST: ["0"], SECOND_LOT: ["5"], THIRD: ["10"]}
    site.check()


def test_ten_thousand_objects_in_one_round(site: Site) -> None:
    site.declare()
    for number in range(10_000):
        site.put(f"{number % 10}/{number}", NOON + number * SECOND // 20, b"%d" % number)
    assert site.later(11) == RoundResult(assigned=10_000, closed=2)
    assert {lot: len(each.uris) for lot, each in site.lots().items()} == {
        FIRST: 6000,
        SECOND_LOT: 4000,
    }
    assert site.later(12) == RoundResult()
    site.check()


def test_rounds_repeat_until_all_intervals_are_closed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrival, "ROUND_LOTS_MAX", 200)
    site.declare(start=format_time(NOON - DAY))
    site.put("a", NOON - DAY)
    site.put("b", NOON - 1)
    first = site.later(1)
    assert first == RoundResult(assigned=1, closed=200, empty=199, has_more=True)
    assert site.later(1) == RoundResult(assigned=1, closed=88, empty=87)
    assert len(site.lots()) == 288
    site.check()


def test_watcher_thread_runs_until_stopped(site: Site) -> None:
    site.declare()
    site.put("a", NOON)
    site.now = NOON + 6 * MINUTE
    watcher = Watcher(site.catalog, site.objects, lambda: site.now, every_seconds=0.01)
    with watcher:
        until(lambda: bool(site.lots()))
    assert site.names() == {FIRST: ["a"]}
