"""Locations of arrivals, the cost of a scan, and how workloads read arrived objects."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.arcs.arrivals.scan import RoundResult
from penstock.arcs.arrivals.watcher import Watcher
from penstock.arcs.spec import Parts, Workload
from penstock.arcs.workload.parts import split
from penstock.arcs.workload.task import Context, InputLot, Task
from penstock.clock import SECOND
from penstock.errors import NotFound
from penstock.objects import Objects
from penstock.objects.uris import find_object
from penstock.schema.arrivals import Late, TimeFrom
from tests.contract.arrival_site import MINUTE, NOON, Site

pytestmark = pytest.mark.one_database

FIRST, SECOND_LOT = (f"20261115PT5M{number}" for number in (144, 145))


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Site]:
    site = Site(database_url, tmp_path)
    yield site
    site.close()


def test_missing_location_is_an_error(site: Site) -> None:
    site.declare()
    site.declare("other", location=str(site.landing.parent / "absent"))
    site.declare("own", location=str(site.landing.parent))
    assert site.later(6) == RoundResult(closed=1, empty=1, failed=2)
    assert site.lots("other") == {}
    assert not (site.landing.parent / "absent").exists()
    (site.landing.parent / "absent").mkdir()
    assert site.later(6) == RoundResult(closed=1, empty=1, failed=1)


def test_objects_can_arrive_inside_our_own_store(site: Site) -> None:
    folder = site.objects.path("landing here")
    assert folder is not None
    folder.mkdir()
    site.landing = folder
    site.declare()
    site.put("a b%20c", NOON, b"text")
    site.later(6)
    [manifest] = site.lots().values()
    assert manifest.uris[0].uri == f"{site.objects.url}/landing here/a b%20c"
    assert context(site).read(manifest.uris[0].uri) == b"text"


def context(site: Site) -> Context:
    task = Task(
        arc="arc",
        namespace="ns",
        lot=FIRST,
        part="",
        attempt="1",
        run_id="1",
        workload=Workload(function="a:b"),
        inputs=(),
        outputs=(),
        objects=site.objects.url,
    )
    return Context(task, site.objects)


def test_a_workload_reads_what_arrived_in_another_store(site: Site) -> None:
    site.declare()
    site.put("sub folder/a b%20#1c?d", NOON, b"text")
    site.later(6)
    [item] = site.lots()[FIRST].uris
    assert context(site).read(item.uri) == b"text"
    path = context(site).path(item.uri)
    assert path == site.landing / "sub folder/a b%20#1c?d"
    with pytest.raises(NotFound):
        context(site).read(f"{item.uri}x")


class Listed(Objects):
    """A store in memory that records where listings began."""

    def __init__(self) -> None:
        store = Objects.open("memory://")
        super().__init__(store.url, store._store, None)
        self.begun: list[str] = []

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[Any]:
        self.begun.append(after)
        return super().list(prefix, after=after)


def watch(site: Site, store: Objects, late: Late = Late.AMEND) -> Watcher:
    site.declare(
        location="s3://bucket/in box",
        time=TimeFrom.EVENT,
        pattern="{year}{month}{day}/{hour}{minute}",
        late=late,
    )
    return Watcher(
        site.catalog,
        site.objects,
        lambda: site.now,
        whole_seconds=900,
        open_at=lambda url: store,
    )


def test_sorted_keys_are_listed_from_open_intervals(site: Site) -> None:
    store = Listed()
    watcher = watch(site, store)
    store.put("20261115/1201", b"x")
    store.put("20261115/1206", b"x")
    assert watcher.go_round(NOON + 6 * MINUTE) == RoundResult(assigned=1, closed=1)
    assert watcher.go_round(NOON + 7 * MINUTE) == RoundResult()
    assert watcher.go_round(NOON + 11 * MINUTE) == RoundResult(assigned=1, closed=1)
    store.put("20261115/1202", b"late")
    assert watcher.go_round(NOON + 16 * MINUTE) == RoundResult(closed=1, empty=1)
    assert watcher.go_round(NOON + 21 * MINUTE) == RoundResult(closed=1, empty=1, late=1)
    assert store.begun == ["", "20261115/120", "20261115/121", ""]
    assert [item.uri for item in site.lots()[FIRST].uris] == [
        "s3://bucket/in box/20261115/1201",
        "s3://bucket/in box/20261115/1202",
    ]


def test_late_object_with_sorted_key_goes_to_the_next_lot(site: Site) -> None:
    store = Listed()
    watcher = watch(site, store, Late.NEXT)
    assert watcher.go_round(NOON + 6 * MINUTE) == RoundResult(closed=1, empty=1)
    store.put("20261115/1202", b"late")
    assert watcher.go_round(NOON + 7 * MINUTE) == RoundResult()
    assert watcher.go_round(NOON + 11 * MINUTE) == RoundResult(closed=1, late=1)
    assert site.names() == {FIRST: [], SECOND_LOT: ["1202"]}
    assert store.begun == ["", ""]


def test_new_etag_means_a_changed_object(site: Site) -> None:
    store = Objects.open("memory://")
    site.declare(location="s3://bucket", time=TimeFrom.EVENT, pattern="*{epoch}")
    watcher = Watcher(
        site.catalog, site.objects, lambda: site.now, whole_seconds=0, open_at=lambda url: store
    )
    store.put(f"a{NOON // SECOND}", b"1")
    assert watcher.go_round(NOON + 6 * MINUTE) == RoundResult(assigned=1, closed=1)
    store.put(f"a{NOON // SECOND}", b"2")
    assert watcher.go_round(NOON + 7 * MINUTE) == RoundResult(late=1)
    assert watcher.go_round(NOON + 8 * MINUTE) == RoundResult()


def test_arrivals_in_day_folders_split_by_day(site: Site) -> None:
    """URIs are quoted no more than necessary: part patterns match `day=`."""
    site.declare()
    for day in ("1", "2"):
        site.put(f"year=2026/day={day}/a b.csv", NOON)
    assert site.later(6) == RoundResult(assigned=2, closed=1)
    [manifest] = site.lots().values()
    assert manifest.uris[0].uri.endswith("/landing%20place/year=2026/day=1/a%20b.csv")
    lot = InputLot("ns", "raw", "v", manifest.state, manifest.uris)
    assert list(split(Parts(pattern="day={day}/"), [lot])) == ["day=1", "day=2"]
    store, key = find_object(site.objects, manifest.uris[1].uri)
    assert store.get(key) == b"x"


def test_late_object_after_a_new_declaration_amends_its_lot(
    database_url: str, tmp_path: Path
) -> None:
    for count in (1, 2):
        site = Site(database_url, tmp_path)
        site.declare()
        site.put(f"{count}.csv", NOON)
        seen = site.later(6)
        assert (seen.assigned + seen.late, seen.failed) == (1, 0)
        assert len(site.names()[FIRST]) == count
        site.close()
