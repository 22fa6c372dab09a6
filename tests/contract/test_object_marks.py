"""A folder that is an object store has a mark; without the mark, the store is away."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.config import Settings
from penstock.errors import Away
from penstock.lots.stores import open_store
from penstock.objects import Objects
from penstock.plane import Plane
from tests.acceptance.arc_site import ONCE, ArcSite, open_local_site
from tests.databases import sqlite_database

LOT = "20230227PT5M287"
AWAY = "the object store is not at .* mount its disk"


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Plane]:
    settings = Settings(
        database=sqlite_database(tmp_path / "penstock.db"),
        objects=str(tmp_path / "disk" / "objects"),
        ingest_folder=str(tmp_path / "ingest"),
    )
    with Plane.open(settings) as plane:
        yield plane


def unmount(disk: Path) -> None:
    """Leave an empty folder, like an unused mount point."""
    disk.rename(disk.with_name("unmounted"))
    disk.mkdir()


def mount(disk: Path) -> None:
    disk.rmdir()
    disk.with_name("unmounted").rename(disk)


def test_unmounted_store_is_away_and_not_written(plane: Plane, tmp_path: Path) -> None:
    store, disk = plane.objects, tmp_path / "disk"
    store.put("a/b", b"kept")
    unmount(disk)
    for use in (
        lambda: store.put("a/c", b"lost"),
        lambda: store.get("a/b"),
        lambda: store.size("a/b"),
        lambda: list(store.list()),
        lambda: list(store.nameless()),
        lambda: store.delete("a/b"),
        lambda: store.path("a/b"),
        store.probe,
    ):
        with pytest.raises(Away, match=AWAY):
            use()
    assert list(disk.iterdir()) == []
    mount(disk)
    assert store.get("a/b") == b"kept"


def test_unmounted_store_is_not_created_again(plane: Plane, tmp_path: Path) -> None:
    url, disk = plane.settings.objects, tmp_path / "disk"
    open_store(plane.catalog, url).put("a", b"kept")
    unmount(disk)
    for below in ("", "ocfl"):
        with pytest.raises(Away, match=AWAY):
            open_store(plane.catalog, url, below)
    assert list(disk.iterdir()) == []
    mount(disk)
    assert open_store(plane.catalog, url).get("a") == b"kept"


def test_store_without_a_mark_gets_one_at_first_use(plane: Plane, tmp_path: Path) -> None:
    Objects.open(plane.settings.objects).put("a", b"from before")
    assert plane.objects.get("a") == b"from before"
    unmount(tmp_path / "disk")
    with pytest.raises(Away, match=AWAY):
        plane.objects.get("a")
    mount(tmp_path / "disk")


def test_mark_is_no_object_and_can_be_restored(plane: Plane, tmp_path: Path) -> None:
    store = plane.objects
    assert [*store.list(), *store.nameless()] == []
    [mark] = (tmp_path / "disk" / "objects").iterdir()
    mark.unlink()
    with pytest.raises(Away, match=f"touch '{mark}'"):
        store.probe()
    mark.touch()
    store.probe()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ArcSite]:
    monkeypatch.setattr("penstock.arcs.engine.outage.REST_SECONDS", 1)
    monkeypatch.setattr("penstock.arcs.engine.outage._PROBE_SECONDS", 0.1)
    with open_local_site(tmp_path, monkeypatch) as opened:
        yield opened


def test_a_lot_waits_for_its_store_to_be_mounted(site: ArcSite, tmp_path: Path) -> None:
    site.arc("shout", "raw", "loud", retry=ONCE)
    site.order(LOT, "wait")
    site.feed("raw", LOT, {"a.txt": b"hello"})
    disk = tmp_path / "objects"
    with site.engine():
        site.until(site.ran)
        unmount(disk)
        site.go()
        site.until(lambda: "mount its disk" in str(site.lot("shout", LOT).error))
        assert list(disk.iterdir()) == []
        mount(disk)
        site.until(lambda: site.content("shout", LOT) == {"a.txt": b"HELLO"})
    assert site.lot("shout", LOT).attempts == 1
