"""`penstock verify` reads bytes again, and reports faults."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from penstock.errors import Invalid
from penstock.lots.manifests import DatasetRef, Manifest, PartLine, encode
from penstock.objects import Objects
from penstock.provenance.verify import Verification, VerificationOrder, list_items
from penstock.schema.provenance import VerifyStep
from penstock.states import ManifestState
from tests.contract.provenance_site import NS, Site, open_site

pytestmark = pytest.mark.one_database

GOOD = {"a.txt": b"one", "b.txt": b"two, and more"}


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Site]:
    with open_site(database_url, tmp_path) as opened:
        opened.wire("clean", ("raw",), "clean")
        for lot in ("1", "2"):
            opened.feed("raw", lot, GOOD)
            opened.make("clean", lot, {"clean.txt": b"clean"})
        yield opened


def keys(site: Site, dataset: str, lot: str) -> list[str]:
    """Return the keys of the data of a lot."""
    folder = f"data/namespace={NS}/name={dataset}/version=1/lot={lot}"
    return sorted(entry.key for entry in site.objects.list(folder))


def faults(steps: list[VerifyStep]) -> list[VerifyStep]:
    assert steps[-1].kind == "end"
    found = [step for step in steps if step.kind == "fault"]
    assert steps[-1].done.faults == len(found)
    return found


def test_unchanged_data_has_no_faults(site: Site) -> None:
    [end] = [step for step in site.verify("raw") if step.kind != "progress"]
    done = end.done
    assert (end.kind, done.lots, done.versions, done.files, done.faults) == ("end", 2, 2, 4, 0)
    assert done.bytes == 2 * sum(map(len, GOOD.values()))


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"on", "it has 2 bytes, and should have 3"), (b"oxe", "its digest is"), (None, "not exist")],
)
def test_a_file_that_has_changed_is_named(site: Site, content: bytes | None, words: str) -> None:
    key = keys(site, "raw", "1")[0]
    site.objects.delete(key) if content is None else site.objects.put(key, content)
    [fault] = faults(site.verify("raw"))
    assert fault.where == f"{site.objects.url}/{key}"
    assert words in (fault.what or "")
    assert (fault.lot, fault.version) == ("1", site.provenance("raw", "1").version)
    assert faults(site.verify("raw", lot="2")) == []


def test_a_manifest_that_has_changed_or_is_lost_is_named(site: Site) -> None:
    [version, _] = site.provenance("clean", "1").versions
    assert version.contents is not None
    key = version.contents.key
    content = site.objects.get(key)
    site.objects.put(key, content + b" ")
    [fault] = faults(site.verify("clean"))
    assert (fault.where, "was recorded when it was published" in (fault.what or "")) == (key, True)
    site.objects.delete(key)
    [fault] = faults(site.verify("clean"))
    assert (fault.where, fault.what) == (key, "the manifest is not in the store")


def test_part_that_differs_from_its_line_is_a_fault() -> None:
    objects = Objects.open("memory://")
    part = Manifest(state=ManifestState.PARTIAL, lot="1", dataset=DatasetRef(NS, "x"), part="a")
    objects.put("part", encode(part))
    line = PartLine("a", "part", ManifestState.COMPLETE, 2, 10)
    with pytest.raises(Invalid) as refused:
        list(list_items(objects, msgspec.structs.replace(part, parts=(line,))))
    assert str(refused.value) == (
        "part has partial, 0 objects, 0 bytes, but the manifest of the lot lists "
        "complete, 2 objects, 10 bytes"
    )


def test_upstream_reads_each_version_once(site: Site) -> None:
    site.objects.delete(keys(site, "raw", "2")[1])
    assert faults(site.verify("clean")) == []
    steps = site.verify("clean", upstream=True)
    [fault] = faults(steps)
    assert fault.lot == "2"
    assert (steps[-1].done.lots, steps[-1].done.versions) == (2, 4)
    assert faults(site.verify("clean", lot="1", upstream=True)) == []


def test_all_versions_reads_old_versions(site: Site) -> None:
    old = keys(site, "raw", "1")
    site.feed("raw", "1", {"a.txt": b"better"})
    for key in old:
        site.objects.delete(key)
    assert faults(site.verify("raw", lot="1")) == []
    found = faults(site.verify("raw", lot="1", all_versions=True))
    assert [fault.where for fault in found] == [f"{site.objects.url}/{key}" for key in old]


def test_stopped_verification_has_no_result(site: Site) -> None:
    plane = site.plane
    work = Verification(
        plane.database, plane.objects, lambda ark, _: (), site.name("raw"), VerificationOrder()
    )
    work.stop.set()
    assert list(work.steps()) == []


def test_a_lot_without_a_manifest_has_nothing_to_read(site: Site) -> None:
    site.register("raw", "3")
    [end] = site.verify("raw", lot="3")
    assert (end.kind, end.done.lots, end.done.versions) == ("end", 1, 0)


def test_all_versions_with_upstream_reads_each_once(
    site: Site,
) -> None:
    old = keys(site, "raw", "1")
    site.feed("raw", "1", {"a.txt": b"better"})
    for _ in range(2):  # the second reads what the first has read
        site.again("clean", "1")
        site.make("clean", "1", {"clean.txt": b"cleaner"})
    site.objects.put(old[0], b"oxe")
    assert faults(site.verify("clean", lot="1", upstream=True)) == []
    assert faults(site.verify("clean", lot="1", all_versions=True)) == []
    steps = site.verify("clean", lot="1", upstream=True, all_versions=True)
    assert [fault.where for fault in faults(steps)] == [f"{site.objects.url}/{old[0]}"]
    done = steps[-1].done
    assert (done.lots, done.versions, done.files) == (1, 5, 3 + 2 + 1)


def test_everything_behind_a_lot_is_read(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.wire("count", ("clean",), "count")
    site.make("count", "1", {"count.txt": b"1"})
    monkeypatch.setattr("penstock.provenance.trace.VERSIONS_MAX", 1)
    site.objects.put(keys(site, "raw", "1")[0], b"oxe")
    steps = site.verify("count", lot="1", upstream=True)
    assert (len(faults(steps)), steps[-1].done.versions) == (1, 3)
