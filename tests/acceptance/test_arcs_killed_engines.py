"""Killed engines: their keys are repaired, and their data is listed and removed."""

import pytest

from penstock.access.audit import entries
from penstock.provenance.checks.run import check
from penstock.states import ArcState, WorkState
from tests.acceptance.arc_site import NS, ONCE, ArcSite
from tests.acceptance.doomed_engine import run_to_death
from tests.doors.commands import Outcome, Terminal
from tests.invariants import open_grounds

LOT = "20230227PT5M287"
pytestmark = pytest.mark.xdist_group("doomed")


def kill_engine(arcs: ArcSite, *moment: str) -> None:
    settings = arcs.plane.settings
    run_to_death(settings.database, settings.objects, *moment)


def broken(arcs: ArcSite) -> set[str]:
    """The invariants that `penstock check --deep` reports."""
    with open_grounds(arcs.plane.settings, deep=True) as ground:
        return {verdict.name for verdict in check(ground) if not verdict.holds}


def sweep(arcs: ArcSite, penstock: Terminal, *arguments: str) -> Outcome:
    settings = arcs.plane.settings
    where = ("--database", settings.database, "--objects", settings.objects)
    return penstock("objects", "sweep", *where, *arguments)


def has_well_known_manifest(arcs: ArcSite) -> bool:
    return "state=complete/manifest.json" in arcs.manifests("loud", LOT)


@pytest.mark.parametrize(
    "moment",
    [
        ("put", "/complete.arc"),
        ("delete", "/running.arc"),
        ("put", "/state=complete/manifest.json"),
    ],
    ids=" ".join,
)
def test_next_engine_repairs_keys_of_a_killed_one(arcs: ArcSite, moment: tuple[str, str]) -> None:
    arcs.arc("shout", "raw", "loud", retry=ONCE)
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    kill_engine(arcs, *moment)
    assert arcs.state("shout", LOT) == ArcState.COMPLETE
    assert arcs.shown("shout", LOT) != ["complete.arc"] or not has_well_known_manifest(arcs)
    assert broken(arcs) == {"state-keys"}

    with arcs.engine():
        arcs.until(lambda: arcs.shown("shout", LOT) == ["complete.arc"])
        arcs.until(lambda: has_well_known_manifest(arcs))

    assert broken(arcs) == set()
    assert len(arcs.ran()) == 1


def die_in_workload(arcs: ArcSite) -> None:
    """Kill an engine after its workload has written, and let its lease expire."""
    arcs.arc("shout", "raw", "loud", retry=ONCE)
    arcs.order(LOT, "die")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    kill_engine(arcs)
    arcs.clock.pass_seconds(ONCE.lease_seconds + 1)
    arcs.until(lambda: arcs.lot("shout", LOT).work is WorkState.HELD)


def test_sweep_removes_data_of_a_killed_engine(
    arcs: ArcSite, capsys: pytest.CaptureFixture[str]
) -> None:
    penstock = Terminal(capsys)
    die_in_workload(arcs)
    assert arcs.data("loud", LOT) == ["junk.txt"]
    assert "orphans" in broken(arcs)

    listed = sweep(arcs, penstock, "--dry-run", "--json").document
    assert (listed["count"], arcs.data("loud", LOT)) == (1, ["junk.txt"])
    assert listed["orphans"][0]["key"].endswith("/junk.txt")
    text = sweep(arcs, penstock, "--why", "killed").text

    assert "1 object, " in text
    assert arcs.data("loud", LOT) == []
    assert "orphans" not in broken(arcs)
    with arcs.catalog.read() as tx:
        (entry,) = [each for each in entries(tx, 10) if each.action == "sweep objects"]
    assert entry.target == f"{NS}/loud"
    assert entry.detail.endswith("junk.txt: killed")


def test_sweep_leaves_data_of_live_claims(
    arcs: ArcSite, capsys: pytest.CaptureFixture[str]
) -> None:
    arcs.arc("shout", "raw", "loud", retry=ONCE)
    arcs.order(LOT, "die")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    kill_engine(arcs)
    assert arcs.state("shout", LOT) == ArcState.RUNNING

    assert sweep(arcs, Terminal(capsys), "--json").document["count"] == 0

    assert arcs.data("loud", LOT) == ["junk.txt"]


def test_sweep_leaves_published_data(arcs: ArcSite, capsys: pytest.CaptureFixture[str]) -> None:
    arcs.arc("shout", "raw", "loud", retry=ONCE)
    arcs.feed("raw", LOT, {"a.txt": b"hello", "b.txt": b"hello"})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)

    assert sweep(arcs, Terminal(capsys), "--json").document["count"] == 0

    assert arcs.content("shout", LOT) == {"a.txt": b"HELLO", "b.txt": b"HELLO"}


def test_next_engine_lists_data_of_a_killed_one(arcs: ArcSite) -> None:
    die_in_workload(arcs)
    assert "running.arc" in arcs.shown("shout", LOT)

    with arcs.engine():
        arcs.until(lambda: arcs.shown("shout", LOT) == ["partial.arc"])

    assert [each.keys for each in arcs.lot("shout", LOT).failed_attempts] != []
    assert broken(arcs) == set()
