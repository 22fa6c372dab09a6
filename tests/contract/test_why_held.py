"""Who holds a lot, and for what: told by what held it, and not by what was said since."""

from collections.abc import Iterator

import pytest

from penstock.clock import SECOND
from penstock.locks.commands import HoldLot, HoldWork
from penstock.locks.queries.lots import list_log_of_job
from penstock.locks.queries.overview import get_overview
from penstock.schema.locks import Stale
from tests.contract.why_site import Site, kinds, only_reason, open_site

pytestmark = pytest.mark.one_database


@pytest.fixture
def site(database_url: str) -> Iterator[Site]:
    """a: raw → clean, with one try; its lot 9 is there."""
    with open_site(database_url) as opened:
        opened.wire("a", ["raw"], ["clean"], tries_max=1)
        opened.register("raw")
        yield opened


def hold(site: Site) -> None:
    site.do(HoldWork("boss", "auditors look at it", "ns", "a", "9"))


def release_hold(site: Site) -> None:
    site.now += SECOND
    site.do(HoldWork("ben", "they are through", "ns", "a", "9", hold=False))


def renew(site: Site) -> None:
    site.now += SECOND
    site.register("raw")


def test_a_conflict_is_not_who_holds_a_lot(site: Site) -> None:
    hold(site)
    site.report("START", "a", "raw", "clean")
    reason = only_reason(site.why("a"))
    assert (reason.kind, reason.who, reason.why) == ("held_lot", "boss", "auditors look at it")
    with site.catalog.read() as tx:
        assert [each.held for each in get_overview(tx, None, site.now).stuck] == [
            "boss: auditors look at it"
        ]


def test_a_lot_that_was_done_and_is_held_is_not_out_of_tries(site: Site) -> None:
    site.complete("a")
    hold(site)
    site.report("START", "a", "raw", "clean")
    reason = only_reason(site.why("a"))
    assert (reason.kind, reason.who, reason.why) == ("held_lot", "boss", "auditors look at it")


def test_who_lets_go_of_a_lot_that_is_held_again_does_not_hold_it(site: Site) -> None:
    site.wire("a", ["raw"], ["clean"], stale=Stale.HOLD)
    site.complete("a")
    renew(site)
    renew(site)
    release_hold(site)
    found = site.why("a")
    assert found.state == "HELD"
    assert (found.reasons[0].kind, found.reasons[0].who) == ("held_lot", "penstock")
    assert "an input has a newer version of lot 9 (ns/raw)" in found.sentence
    assert "they are through" not in found.sentence


def test_a_lot_that_went_stale_while_it_was_held_by_hand_is_held_for_that(site: Site) -> None:
    site.wire("a", ["raw"], ["clean"], stale=Stale.HOLD)
    site.complete("a")
    hold(site)
    renew(site)
    assert "is held by 'boss'" in site.why("a").sentence
    release_hold(site)
    reason = site.why("a").reasons[0]
    assert reason.who == "penstock"
    assert "Release the hold to keep" in reason.sentence
    assert "resubmit the lot to" in reason.sentence


def test_the_log_tells_that_a_lot_was_let_go_before_it_was_held_again(site: Site) -> None:
    site.wire("a", ["raw"], ["clean"], stale=Stale.HOLD)
    site.complete("a")
    hold(site)
    renew(site)
    release_hold(site)
    with site.catalog.read() as tx:
        log = [
            (row.action, row.was, row.became) for row in list_log_of_job(tx, "ns", "a", "9", 3, 0)
        ]
    assert log == [
        ("hold", "DONE", "HELD"),
        ("release hold", "HELD", "DONE"),
        ("hold", "DONE", "HELD"),
    ]


def test_a_lot_that_is_out_of_tries_says_so_whatever_is_reported_of_it_since(site: Site) -> None:
    site.fail("a")
    site.report("START", "a", "raw", "clean")
    assert kinds(site.why("a")) == ["out_of_tries"]
    site.wire("a", ["raw"], ["clean"], tries_max=7)  # for the next time
    assert kinds(site.why("a")) == ["out_of_tries"]


def test_a_held_lot_that_was_registered_anew_is_held_by_who_held_it(site: Site) -> None:
    site.do(HoldLot("boss", "wrong numbers", "ns", "raw", "9"))
    renew(site)
    reason = only_reason(site.why("a"))
    assert (reason.kind, reason.who, reason.why) == ("input_held", "boss", "wrong numbers")
