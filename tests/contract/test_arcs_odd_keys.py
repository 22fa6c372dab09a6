"""Buckets with entries besides objects: folder marks, and unreadable keys."""

import http.client
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.arcs.arrivals.rows import landings_of
from penstock.arcs.arrivals.scan import RoundResult
from penstock.clock import DAY, format_time, system_clock
from penstock.ids import dataset_id
from penstock.lots.rows import LandingRow
from tests.contract.arrival_site import Site

pytestmark = pytest.mark.one_database

Put = Callable[..., None]


@pytest.fixture
def site(database_url: str, bucket_url: str, tmp_path: Path) -> Iterator[Site]:
    """Objects arrive in a bucket, counted from yesterday by the clock of its server."""
    site = Site(database_url, tmp_path)
    site.declare(location=bucket_url, interval="", pattern="lot={lot}/", grace_seconds=0,
                 start=format_time(system_clock() - DAY))  # fmt: skip
    site.now = system_clock() + DAY
    yield site
    site.close()


@pytest.fixture
def put(object_server: str, bucket_url: str) -> Put:
    """Write under a key that store clients refuse."""

    def put(key: str, content: bytes = b"x") -> None:
        connection = http.client.HTTPConnection(object_server)
        connection.request("PUT", f"/{bucket_url.removeprefix('s3://')}/{key}", content)
        assert connection.getresponse().status == 200
        connection.close()

    return put


def look(site: Site) -> RoundResult:
    return site.watcher().go_round(site.now)


def met(site: Site) -> LandingRow:
    found = dataset_id("ns", "raw")
    with site.catalog.read() as tx:
        return landings_of(tx, [found])[found]


def test_folder_marks_are_skipped(site: Site, put: Put) -> None:
    """They are in no lot and not reported; an empty object is an object."""
    put("lot=1/", b"")
    put("lot=1/folder/", b"")
    put("lot=1/empty", b"")
    put("lot=1/north.csv")
    put("lot=2/", b"")
    assert look(site) == RoundResult(assigned=2, closed=1)
    assert site.names() == {"1": ["empty", "north.csv"]}
    assert met(site).untaken == 0
    assert look(site) == RoundResult()


def test_unreadable_key_is_reported_and_stops_no_other(site: Site, put: Put) -> None:
    put("lot=1/report%237")
    put("lot=1/" + "x" * 300)
    put("lot=1/north.csv")
    assert look(site) == RoundResult(assigned=1, closed=1, skipped=2)
    assert site.names() == {"1": ["north.csv"]}
    told = met(site)
    assert (told.untaken, told.example) == (2, "lot=1/report#7")
    assert told.reason == "it ends in '#' and digits"


@pytest.mark.parametrize(
    ("key", "shown"),
    [("lot=1//a.csv", "lot=1//a.csv"), ("lot=1/%2E%2E/a", "lot=1/../a"), ("lot=1/a%0Ab", "a\\nb")],
)
def test_key_that_hides_other_keys_is_reported(site: Site, put: Put, key: str, shown: str) -> None:
    """A lot could lack hidden objects, so none is made until the key is renamed."""
    put(key)
    put("lot=1/north.csv")
    assert look(site) == RoundResult(failed=1)
    assert shown in met(site).error
    assert "rename or delete that object" in met(site).error
    assert site.lots() == {}
