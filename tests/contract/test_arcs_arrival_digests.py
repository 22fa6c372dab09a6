"""Arrived objects are read when they become part of a lot, and manifests have digests."""

import hashlib
import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.arcs.arrivals.arrival import ArrivalStep, ArrivedRow, LotChange, Placed
from penstock.arcs.arrivals.scan import Landing, ObjectReader, RoundResult, WatcherStopped
from penstock.arcs.files import read_arrival
from penstock.clock import DAY, Micros, format_time, system_clock
from penstock.errors import Invalid
from penstock.lots.manifests import Manifest
from penstock.objects import Objects
from penstock.objects.uris import find_key_form
from penstock.provenance.verify import Listed, check_item
from tests.contract.arrival_site import NOON, Site

pytestmark = pytest.mark.one_database

FIRST = "20261115PT5M144"


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Site]:
    site = Site(database_url, tmp_path)
    yield site
    site.close()


def digests(manifest: Manifest) -> dict[str, str | None]:
    return {item.uri.rpartition("/")[2]: item.digest for item in manifest.uris}


def sha256(content: bytes) -> str:
    return f"sha-256:{hashlib.sha256(content).hexdigest()}"


def test_objects_are_digested_up_to_a_size(site: Site) -> None:
    site.declare(digest_bytes_max=5)
    site.put("empty", NOON, b"")
    site.put("small", NOON, b"12345")
    site.put("large", NOON, b"123456")
    assert site.later(6) == RoundResult(assigned=3, closed=1)
    expected = {"empty": sha256(b""), "small": sha256(b"12345"), "large": None}
    assert digests(site.lots()[FIRST]) == expected
    site.put("late", NOON, b"late")
    site.put("small", NOON + 1_000_000, b"54321")
    assert site.later(7) == RoundResult(late=2)
    expected |= {"late": sha256(b"late"), "small": sha256(b"54321")}
    assert digests(site.lots()[FIRST]) == expected
    site.check()


def test_verification_finds_silently_changed_object(site: Site) -> None:
    """Its size and time are unchanged."""
    site.declare()
    site.put("a", NOON, b"good")
    site.later(6)
    manifest = site.lots()[FIRST]
    [item] = manifest.uris
    assert check_item(site.objects, Listed(item, manifest)).fault is None
    site.put("a", NOON, b"evil")
    assert "its digest is" in str(check_item(site.objects, Listed(item, manifest)).fault)


def test_limit_zero_reads_no_object(site: Site) -> None:
    site.declare(digest_bytes_max=0)
    site.put("a", NOON)
    (site.landing / "a").chmod(0)
    assert site.later(6) == RoundResult(assigned=1, closed=1)
    assert digests(site.lots()[FIRST]) == {"a": None}


def test_negative_limit_is_refused() -> None:
    table = {"dataset": "raw", "location": "/x", "interval": "PT5M", "digest_bytes_max": -1}
    with pytest.raises(Invalid, match="digest_bytes_max"):
        read_arrival(table, "here")


def test_listed_but_missing_object_is_reported_once(
    site: Site, object_server: str, bucket_url: str
) -> None:
    """A listing shows a key with a leading `/` without it."""
    start = format_time(system_clock() - DAY)
    pattern = "lot={lot}/"
    site.declare(location=bucket_url, start=start, interval="", pattern=pattern, grace_seconds=0)
    site.now = system_clock() + DAY

    def send(method: str, key: str, content: bytes = b"") -> None:
        connection = http.client.HTTPConnection(object_server)
        connection.request(method, f"/{bucket_url.removeprefix('s3://')}/{key}", content)
        assert connection.getresponse().status in (200, 204)
        connection.close()

    def seen_at(key: str) -> Micros:
        [at] = [each.modified for each in Objects.open(bucket_url).list() if each.key == key]
        return at

    for key in ("/lot=1/lost", "lot=1/north", "/lot=2/lost"):
        send("PUT", key, b"x")
    watcher = site.watcher()
    assert watcher.go_round(site.now) == RoundResult(assigned=1, closed=1)
    assert digests(site.lots()["1"]) == {"north": sha256(b"x")}
    assert "2" not in site.lots()
    assert watcher.go_round(site.now) == RoundResult()
    # It comes again, with the same content.
    before = seen_at("lot=2/lost")
    send("DELETE", "/lot=2/lost")
    send("PUT", "lot=2/lost", b"x")
    while seen_at("lot=2/lost") == before:
        send("PUT", "lot=2/lost", b"x")
    assert watcher.go_round(site.now) == RoundResult(assigned=1, closed=1)
    assert digests(site.lots()["2"]) == {"lost": sha256(b"x")}


def test_stopping_watcher_stops_reading(tmp_path: Path) -> None:
    store = Objects.open(str(tmp_path / "landing"))
    store.put("a", b"x" * 10)
    place = find_key_form(Objects.open(str(tmp_path / "own")), str(tmp_path / "landing"))
    row = ArrivedRow("d", place.uri("a"), FIRST, Placed.ASSIGNED, 10, "m", "", NOON, NOON)
    step = ArrivalStep((LotChange(FIRST, (row,), is_new=True),), (), NOON)
    with pytest.raises(WatcherStopped):
        ObjectReader(Landing(store, place), 100, lambda: True).read(step)
    [change] = ObjectReader(Landing(store, place), 100, lambda: False).read(step).lots
    assert change.add[0].digest == sha256(b"x" * 10)
