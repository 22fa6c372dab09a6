"""Problems at the location of arrivals are recorded, and shown to jobs that wait for lots."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.arcs.arrivals.commands import DeleteArrival
from penstock.arcs.arrivals.rows import landings_of
from penstock.arcs.arrivals.scan import RoundResult
from penstock.catalog.commands import DatasetName
from penstock.ids import dataset_id
from penstock.locks.commands import WireJob
from penstock.locks.explain.why import explain_work
from penstock.locks.gaps.gaps import load_gaps
from penstock.lots.rows import LandingRow
from penstock.schema.arrivals import TimeFrom
from tests.contract.arrival_site import MINUTE, NOON, Site

pytestmark = pytest.mark.one_database

FIRST = "20261115PT5M144"
BY_HOUR = "dt={year}-{month}-{day}/hour={hour}/"


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Site]:
    site = Site(database_url, tmp_path)
    yield site
    site.close()


def met(site: Site) -> LandingRow | None:
    found = dataset_id("ns", "raw")
    with site.catalog.read() as tx:
        return landings_of(tx, [found]).get(found)


def test_unreadable_location_is_the_cause_of_missing_lots(site: Site) -> None:
    site.do(WireJob("ns", "job", (DatasetName("ns", "raw"),), (DatasetName("ns", "clean"),)))
    absent = site.landing.parent / "absent"
    site.declare(location=str(absent))
    assert site.later(6) == RoundResult(failed=1)
    site.later(7)
    failed = met(site)
    assert failed is not None
    assert (failed.failed_at, str(absent) in failed.error) == (NOON + 6 * MINUTE, True)
    with site.catalog.read() as tx:
        [gap] = load_gaps(tx, "ns", "raw", FIRST, FIRST, site.now).ranges
        waits = explain_work(tx, "ns", "job", FIRST, site.now)
    assert gap.cause is not None
    for told in (gap.cause.sentence, waits.sentence):
        assert "objects arrive for it" in told
        assert f"there is no folder {absent}" in told
        assert "register" not in told
    absent.mkdir()
    assert site.later(8) == RoundResult(closed=1, empty=1)
    assert met(site) == LandingRow(dataset_id("ns", "raw"))
    site.do(DeleteArrival("me", "ns", "raw"))
    assert met(site) is None


def test_objects_with_unmatched_keys_are_reported(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.declare(interval="PT1H", time=TimeFrom.EVENT, pattern=BY_HOUR)
    site.put("2026/11/15/12/a", NOON)
    site.put("2026/11/15/12/b", NOON)
    site.put("dt=2026-11-15/hour=11/long ago", NOON)
    with caplog.at_level(logging.WARNING):
        assert site.later(61) == RoundResult(skipped=3, closed=1, empty=1)
        site.later(62)
    found = met(site)
    assert found is not None
    assert (found.untaken, found.example.startswith("2026/11/15/12/")) == (2, True)
    assert found.reason == f"its key does not fit the pattern {BY_HOUR}"
    assert [record.getMessage()[:46] for record in caplog.records] == [
        "arrivals of ns/raw: 2 objects are in no lot, s"
    ]


def test_keys_without_a_lot_are_reported(site: Site) -> None:
    site.declare(interval="", pattern="batch={lot}/")
    site.put("batch=20261115PT1H99/a", NOON)
    site.put("batch=good/a", NOON)
    assert site.later(2) == RoundResult(assigned=1, closed=1, skipped=1)
    found = met(site)
    assert found is not None
    assert (found.untaken, found.example) == (1, "batch=20261115PT1H99/a")
    assert "names the ordinal 99" in found.reason


@pytest.mark.parametrize("name", ["b#2", "two\nlines", "half \udcff"])
def test_file_without_a_valid_key_is_reported_and_stops_no_other(site: Site, name: str) -> None:
    site.declare()
    site.put("good", NOON)
    site.put("sub", NOON)
    (site.landing / name).write_bytes(b"x")
    assert site.later(6) == RoundResult(assigned=2, closed=1)
    found = met(site)
    assert found is not None
    assert (found.untaken, bool(found.reason)) == (1, True)
    assert found.example.startswith(str(site.landing))
