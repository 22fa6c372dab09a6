"""Servers whose clocks differ: what one has decided by its clock, another does not doubt, unless no
clock that is right can have said so.
"""

from collections.abc import Iterator
from functools import partial

import pytest
from msgspec.structs import asdict

from penstock.clock import DAY, HOUR, SECOND
from penstock.locks.commands import ClaimLots, ClaimRef, CompleteClaims, HoldLot, RenewClaim, Sweep
from penstock.locks.explain.why import explain_work
from penstock.locks.lease_expiry import SweepLimits
from penstock.states import WorkState
from tests.contract.lot_site import Site, open_site
from tests.invariants import broken_invariants

pytestmark = pytest.mark.one_database

APART = 20 * SECOND
YEARS = 5 * 365 * DAY


@pytest.fixture
def site(database_url: str) -> Iterator[Site]:
    """a: raw → clean, with one lot, which is tried again after ten seconds."""
    with open_site(database_url) as site:
        site.wire("a", ["raw"], ["clean"], back_off_seconds=10)
        site.register("raw", ["1"])
        yield site


def assert_ready_by_any_clock(site: Site) -> None:
    for now in (site.now - APART, site.now, site.now + APART):
        assert broken_invariants(site.database, partial(int, now)) == []
        with site.catalog.read() as tx:
            found = explain_work(tx, "ns", "a", "1", now)
        assert (found.state, found.runnable) == (WorkState.READY, True)
        assert list(found.reasons) == []


def test_a_back_off_that_has_ended_has_ended_for_everybody(site: Site) -> None:
    site.fail("a", "1")
    site.now += 10 * SECOND
    site.do(Sweep())
    assert_ready_by_any_clock(site)


def test_a_back_off_that_ended_while_an_input_was_held_has_ended_for_everybody(site: Site) -> None:
    site.fail("a", "1")
    site.do(HoldLot("ann", "looks wrong", "ns", "raw", "1", hold=True))
    site.now += 15 * SECOND
    site.do(HoldLot("ann", "it is right", "ns", "raw", "1", hold=False))
    assert_ready_by_any_clock(site)


def test_what_may_be_tried_again_at_once_may_be_for_everybody(site: Site) -> None:
    site.wire("a", ["raw"], ["clean"], back_off_seconds=0)
    site.fail("a", "1")
    assert_ready_by_any_clock(site)


def sweep_is_due(site: Site) -> bool:
    with site.catalog.read() as tx:
        found = tx.fetch_one("sweep_is_due", **asdict(SweepLimits.at(site.now)))
    return bool(found and found[0])


def test_a_lease_that_a_clock_years_ahead_gave_ends_a_lease_after_the_clock_is_right(
    site: Site,
) -> None:
    site.now += YEARS
    claim = site.claim("a", "1")
    site.now -= YEARS
    assert sweep_is_due(site)
    assert site.do(Sweep()).shortened == 1
    assert not sweep_is_due(site)
    site.now += claim.lease_seconds * SECOND - 1
    assert site.do(Sweep()).expired == 0
    site.now += 1
    assert sweep_is_due(site)
    assert site.do(Sweep()).expired == 1
    assert_ready_by_any_clock(site)


def test_who_works_with_such_a_lease_keeps_it_by_saying_so(site: Site) -> None:
    site.now += YEARS
    claim = site.claim("a", "1")
    site.now -= YEARS
    site.do(Sweep())
    site.now += 30 * SECOND
    until = site.do(RenewClaim(ClaimRef(claim.id, claim.token)))
    assert until == site.now + claim.lease_seconds * SECOND
    site.now = until - 1
    assert site.do(Sweep()).expired == 0
    (ended,) = site.do(CompleteClaims((ClaimRef(claim.id, claim.token),)))
    assert ended.refused is None


def test_a_long_lease_by_a_clock_that_is_somewhat_ahead_is_left_as_it_is(site: Site) -> None:
    (claim,) = site.do(ClaimLots("ns", "a", "w1", lots=("1",), lease_seconds=7 * 24 * 3600))
    for apart in (-APART, 0, APART):
        site.now += apart
        assert not sweep_is_due(site)
        assert site.do(Sweep()).shortened == 0
        site.now -= apart
    assert claim.lease_until == site.now + 7 * DAY


def test_a_back_off_that_a_clock_years_ahead_gave_is_over_when_the_clock_is_right(
    site: Site,
) -> None:
    site.now += YEARS
    site.fail("a", "1")
    site.now -= YEARS
    assert sweep_is_due(site)
    assert site.do(Sweep()).due == 1
    assert not sweep_is_due(site)
    assert_ready_by_any_clock(site)


def test_a_back_off_of_one_that_waits_for_its_input_ends_too(site: Site) -> None:
    site.now += YEARS
    site.fail("a", "1")
    site.do(HoldLot("ann", "looks wrong", "ns", "raw", "1", hold=True))
    site.now -= YEARS
    site.do(Sweep())
    site.do(HoldLot("ann", "it is right", "ns", "raw", "1", hold=False))
    site.do(Sweep())
    assert_ready_by_any_clock(site)


def test_the_longest_back_off_is_not_cut_by_a_clock_that_is_behind(site: Site) -> None:
    site.wire("a", ["raw"], ["clean"], back_off_seconds=7 * 24 * 3600)
    site.fail("a", "1")
    site.now -= APART
    assert not sweep_is_due(site)
    assert site.do(Sweep()).due == 0
    site.now += APART + HOUR
    assert site.do(Sweep()).due == 1
