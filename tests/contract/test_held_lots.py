"""Which lots are held, and for what: by hand, for their checks, for what they are made from."""

from collections.abc import Iterator

import pytest

from penstock.arcs.commands import PublishLot
from penstock.catalog.commands import DatasetName
from penstock.locks.commands import ClaimRef, HoldLot
from penstock.locks.queries.holds import list_held_lots
from penstock.lots.manifests import QualityCheck
from penstock.schema.lots import HeldLot
from penstock.states import ManifestState
from tests.contract.lot_site import Site, note, open_site

pytestmark = pytest.mark.one_database


@pytest.fixture
def site(database_url: str) -> Iterator[Site]:
    """a: raw → clean; b: clean → mart."""
    with open_site(database_url) as site:
        site.wire("a", ["raw"], ["clean"])
        site.wire("b", ["clean"], ["mart"])
        yield site


def held(site: Site, namespace: str | None = None, *, for_checks: bool = False) -> list[HeldLot]:
    with site.catalog.read() as tx:
        page = list_held_lots(tx, namespace, for_checks=for_checks, limit=10, offset=0)
    assert page.total_count == len(page.items)
    return list(page.items)


def fail_checks(site: Site, lot: str) -> None:
    claim = site.claim("a", lot)
    name = DatasetName("ns", "clean")
    checks = ((name, (QualityCheck("has_rows", False, detail="0 of 7"),)),)
    notes = ((name, note(ManifestState.COMPLETE)),)
    site.do(PublishLot(ClaimRef(claim.id, claim.token), notes, checks))


def test_nothing_is_held_at_first(site: Site) -> None:
    site.register("raw", ["1"])
    assert held(site) == []


def test_what_is_held_by_hand_holds_what_was_made_from_it(site: Site) -> None:
    site.register("raw", ["1"])
    site.complete("a", ["1"])
    site.complete("b", ["1"])
    site.do(HoldLot("ann", "look at it", "ns", "clean", "1"))
    by_dataset = {each.dataset: each for each in held(site)}
    assert set(by_dataset) == {"clean", "mart"}
    clean, mart = by_dataset["clean"], by_dataset["mart"]
    assert (clean.by_hand, clean.for_checks) == (True, False)
    assert (clean.who, clean.why) == ("ann", "look at it")
    assert clean.job is not None
    assert clean.job.name == "a"
    assert (mart.by_hand, mart.for_checks) == (False, False)
    assert "look at it" in mart.why
    assert held(site, for_checks=True) == []
    site.do(HoldLot("ann", "it is good", "ns", "clean", "1", hold=False))
    assert held(site) == []


def test_what_failed_its_checks_is_among_them_the_last_held_first(site: Site) -> None:
    site.register("raw", ["1", "2"])
    site.do(HoldLot("ann", "look at it", "ns", "raw", "2"))
    site.now += 1
    fail_checks(site, "1")
    assert [(each.dataset, each.lot) for each in held(site)] == [("clean", "1"), ("raw", "2")]
    (failed,) = held(site, for_checks=True)
    assert (failed.by_hand, failed.for_checks) == (False, True)
    assert failed.why == "failed: has_rows: 0 of 7"
    assert held(site, "elsewhere") == []


def test_a_part_is_shown_and_all_are_counted(site: Site) -> None:
    site.register("raw", ["1", "2", "3"])
    for lot in ("1", "2", "3"):
        site.do(HoldLot("ann", "all of them", "ns", "raw", lot))
        site.now += 1
    with site.catalog.read() as tx:
        page = list_held_lots(tx, "ns", for_checks=False, limit=1, offset=1)
    assert [each.lot for each in page.items] == ["2"]
    assert page.total_count == 3
