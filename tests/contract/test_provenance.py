"""Provenance: pinned inputs, as of any time, down to files and digests."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.catalog.commands import DatasetName
from penstock.catalog.events.parse import Limits, read_event
from penstock.clock import SECOND, format_time
from penstock.db import open_database
from penstock.errors import NotFound
from penstock.locks.commands import WireJob
from penstock.locks.events.reported_runs import LockingEvent
from tests.contract.provenance_site import NS, START, Site, open_site, title, tree

HERE = Path(__file__).parent / "broken"


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Site]:
    with open_site(database_url, tmp_path) as opened:
        yield opened


def diamond(site: Site) -> None:
    """raw → clean → report, and raw → stats → report."""
    site.wire("clean", ("raw",), "clean")
    site.wire("stats", ("raw",), "stats")
    site.wire("report", ("clean", "stats"), "report")


def make_all(site: Site, lot: str, text: bytes) -> None:
    for job in ("clean", "stats", "report"):
        site.make(job, lot, {f"{job}.txt": text})


def test_lot_is_traced_to_its_inputs(site: Site) -> None:
    diamond(site)
    site.feed("raw", "1", {"a.txt": b"one", "b.txt": b"two"})
    make_all(site, "1", b"first")
    site.feed("raw", "2", {"a.txt": b"other"})
    found = site.provenance("report", "1")
    assert tree(found) == {
        "report/1 V2": {"clean/1 V2", "stats/1 V2"},
        "clean/1 V2": {"raw/1 V2"},
        "stats/1 V2": {"raw/1 V2"},
        "raw/1 V2": set(),
    }
    assert [version.depth for version in found.versions] == [0, 1, 1, 2]
    assert (found.is_current, found.is_whole, found.as_of) == (True, True, None)


def test_version_has_run_job_version_and_owner(site: Site) -> None:
    diamond(site)
    site.feed("raw", "1", {"a.txt": b"one"})
    began = site.clock.now + SECOND
    run = site.make("clean", "1", {"clean.txt": b"done"}, owner="worker 7")
    [version, raw] = site.provenance("clean", "1").versions
    assert version.run is not None
    assert (version.run.id, version.run.owner, version.run.attempt) == (run, "worker 7", 1)
    assert (version.run.job.namespace, version.run.job.name) == (NS, "clean")
    assert version.run.job_version is not None
    assert (version.run.started_at, version.run.duration_ms) == (format_time(began), 1000)
    assert version.outside is None
    assert raw.run is None
    assert raw.outside is not None
    assert raw.outside.registered_by == "ann"


def test_files_have_digests_and_a_limit(site: Site) -> None:
    diamond(site)
    site.feed("raw", "1", {f"{number}.txt": b"x" * number for number in range(1, 6)})
    [version] = site.provenance("raw", "1", files=2).versions
    assert version.contents is not None
    assert [file.size for file in version.contents.files] == [1, 2]
    assert version.contents.files[1].digest == f"sha-256:{hashlib.sha256(b'xx').hexdigest()}"
    assert (version.contents.total_count, version.contents.bytes) == (5, 15)
    [version] = site.provenance("raw", "1", files=0).versions
    assert version.contents is not None
    assert (list(version.contents.files), version.contents.total_count) == ([], 5)


def test_lost_manifest_hides_nothing_else(site: Site) -> None:
    diamond(site)
    site.feed("raw", "1", {"a.txt": b"one"})
    [before] = site.provenance("raw", "1").versions
    assert before.contents is not None
    site.objects.delete(before.contents.key)
    [version] = site.provenance("raw", "1").versions
    assert version.contents is not None
    assert "there is no object" in (version.contents.error or "")
    assert version.contents.digest == before.contents.digest


def test_as_of_returns_the_version_of_that_time(site: Site) -> None:
    diamond(site)
    site.feed("raw", "1", {"a.txt": b"one"})
    make_all(site, "1", b"first")
    first = site.clock.now
    site.feed("raw", "1", {"a.txt": b"better"})
    for job in ("clean", "report"):
        site.again(job, "1")
    site.make("clean", "1", {"clean.txt": b"second"})
    site.make("report", "1", {"report.txt": b"second"})
    then, now = site.provenance("report", "1", first), site.provenance("report", "1")
    assert tree(then)["clean/1 V2"] == {"raw/1 V2"}
    assert (then.is_current, now.is_current) == (False, True)
    assert tree(now) == {
        "report/1 V3": {"clean/1 V3", "stats/1 V2"},
        "clean/1 V3": {"raw/1 V3"},
        "stats/1 V2": {"raw/1 V2"},
        "raw/1 V2": set(),
        "raw/1 V3": set(),
    }
    with pytest.raises(NotFound, match="had no version at 2026-11-15T11"):
        site.provenance("report", "1", START - 1)


def test_as_of_works_for_lots_without_manifests(site: Site) -> None:
    diamond(site)
    names = ("a_b", "aXb", "A_B", "100%", "10")
    times = [site.register("raw", *names) for _ in range(3)]
    for lot in names:
        numbers = []
        for at in times:
            [version] = site.provenance("raw", lot, at).versions
            assert version.lot == lot
            numbers.append(version.number)
        assert numbers == sorted(set(numbers))
        [version] = site.provenance("raw", lot).versions
        assert version.number == numbers[-1]


def test_registered_lot_with_later_facets_is_traced(site: Site, database_url: str) -> None:
    diamond(site)
    at = site.register("raw", "a_b")
    other = open_database(database_url, extra=[HERE])
    with other.write() as tx:
        tx.execute("say_more_of_versions")
    other.close()
    site.register("raw", "a_b")
    first, now = site.provenance("raw", "a_b", at), site.provenance("raw", "a_b")
    assert first.versions[0].number + 1 == now.versions[0].number


def test_rewiring_changes_no_provenance(site: Site) -> None:
    diamond(site)
    site.feed("raw", "1", {"a.txt": b"one"})
    make_all(site, "1", b"first")
    before = tree(site.provenance("report", "1"))
    inputs = (DatasetName(NS, "other"),)
    site.do(WireJob(NS, "report", inputs, (DatasetName(NS, "report"),)))
    site.do(WireJob(NS, "clean", inputs, (DatasetName(NS, "clean"),)))
    assert tree(site.provenance("report", "1")) == before
    assert tree(site.provenance("report", "1", site.clock.now)) == before


def test_depth_limits_the_trace(site: Site) -> None:
    diamond(site)
    site.feed("raw", "1", {"a.txt": b"one"})
    make_all(site, "1", b"first")
    found = site.provenance("report", "1", depth=1)
    assert list(tree(found)) == ["report/1 V2", "clean/1 V2", "stats/1 V2"]
    assert [version.is_cut for version in found.versions] == [False, True, True]
    assert [len(version.inputs) for version in found.versions] == [2, 1, 1]
    [only] = site.provenance("report", "1", depth=0).versions
    assert only.is_cut


def test_cycle_is_visited_once(site: Site, database_url: str) -> None:
    diamond(site)
    site.feed("raw", "1", {"a.txt": b"one"})
    make_all(site, "1", b"first")
    root = site.provenance("report", "1").version
    other = open_database(database_url, extra=[HERE])
    with other.write() as tx:
        tx.execute("read_this_version", version=root, job="clean")
    other.close()
    found = site.provenance("report", "1")
    assert tree(found)["clean/1 V2"] == {"report/1 V2"}
    assert len(found.versions) == len({version.id for version in found.versions}) == 4


def test_a_run_of_several_lots_is_traced_lot_by_lot(site: Site) -> None:
    diamond(site)
    site.register("raw", "1", "2")
    names = {"1": "raw/1 V2", "2": "raw/2 V3"}
    report(site)
    for lot, raw in names.items():
        found = site.provenance("made", lot)
        assert [title(version) for version in found.versions][1:] == [raw]
        assert {version.lot for version in found.versions} == {lot}


@pytest.mark.parametrize("second", [9, 59])  # it is 12:00:30 or so when the events come
def test_provenance_uses_event_times(site: Site, second: int) -> None:
    diamond(site)
    site.register("raw", "1", "2")
    site.clock.now = START + 30 * SECOND
    report(site, second)
    made = START + second * SECOND
    assert site.provenance("made", "1").versions[0].published_at == format_time(made)
    then, now = (site.provenance("made", "2", at) for at in (made, None))
    assert (then.version, then.is_current) == (now.version, True)
    with pytest.raises(NotFound, match="had no version"):
        site.provenance("made", "1", made - 1)


def report(site: Site, second: int = 9) -> None:
    """Report a run of two lots, by events with times."""
    for event_type in ("START", "COMPLETE"):
        site.do(LockingEvent(read_event(_event(event_type, second), Limits())))


def _event(event_type: str, second: int) -> bytes:
    return b"""{"eventType": "%s", "eventTime": "2026-11-15T12:00:%02dZ", "producer": "x",
      "run": {"runId": "01a1e13e-4044-78e6-ac68-e6d7d9dd6c1f",
              "facets": {"penstock_lot": {"lot": "1", "lots": ["1", "2"]}}},
      "job": {"namespace": "ns", "name": "several"},
      "inputs": [{"namespace": "ns", "name": "raw"}],
      "outputs": [{"namespace": "ns", "name": "made"}]}""" % (event_type.encode(), second)
