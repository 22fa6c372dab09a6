"""An arrived lot shows its objects, and is verified against them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.arcs.arrivals.arrival import Arrival
from penstock.arcs.arrivals.commands import ApplyArrival
from penstock.arcs.arrivals.watcher import Watcher
from penstock.clock import SECOND
from tests.contract.provenance_site import NS, START, Site, open_site

pytestmark = pytest.mark.one_database

LOT = "20261115PT5M144"


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Site]:
    with open_site(database_url, tmp_path) as opened:
        yield opened


@pytest.fixture
def landing(site: Site, tmp_path: Path) -> Path:
    """Three objects have arrived, and become a lot."""
    folder = tmp_path / "landing"
    folder.mkdir()
    arrival = Arrival(dataset="raw", namespace=NS, interval="PT5M", location=str(folder))
    site.do(ApplyArrival("ann", arrival))
    for name in ("a.csv", "b.csv", "c.csv"):
        (folder / name).write_text(name)
        at = (START + 60 * SECOND) * 1000
        os.utime(folder / name, ns=(at, at))
    site.clock.now = START + 600 * SECOND
    Watcher(site.plane.catalog, site.objects, site.clock).go_round(site.clock.now)
    return folder


def test_lot_shows_its_arrived_objects(site: Site, landing: Path) -> None:
    [version] = site.provenance("raw", LOT, files=2).versions
    assert version.outside is not None
    assert version.outside.arrived_count == 3
    arrived = [(each.uri, each.size) for each in version.outside.arrived]
    assert arrived == [((landing / name).as_uri(), 5) for name in ("a.csv", "b.csv")]
    assert version.outside.registered_by is not None
    assert version.contents is not None
    assert version.contents.total_count == 3


def test_deleted_arrived_object_is_a_fault(site: Site, landing: Path) -> None:
    assert [step.kind for step in site.verify("raw")][-1:] == ["end"]
    (landing / "b.csv").unlink()
    (landing / "c.csv").write_text("another size")
    faults = [step for step in site.verify("raw") if step.kind == "fault"]
    assert [(fault.where, fault.what) for fault in faults] == [
        ((landing / "b.csv").as_uri(), "it does not exist"),
        ((landing / "c.csv").as_uri(), "it has 12 bytes, and should have 5"),
    ]
