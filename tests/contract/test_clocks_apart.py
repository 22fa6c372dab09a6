"""Servers whose clocks differ: what one has decided by its clock, another does not doubt."""

from collections.abc import Iterator
from functools import partial

import pytest

from penstock.clock import SECOND
from penstock.locks.commands import HoldLot, Sweep
from penstock.locks.why import why
from penstock.states import WorkState
from tests.checked import broken_invariants
from tests.contract.lot_site import Site, open_site

APART = 20 * SECOND


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
            found = why(tx, "ns", "a", "1", now)
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
