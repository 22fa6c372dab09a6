"""Lots with parts: each part is a child run, and good parts are reused after a failure."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.arcs.executors.local import LocalProcesses
from penstock.arcs.outputs.leftovers import tidy
from penstock.arcs.queries import find_arc, manifest_rows, output_refs, read_manifest
from penstock.arcs.spec import Output, Parts, Retry
from penstock.catalog.queries.jobs import list_runs
from penstock.locks.commands.admin import ResubmitLots
from penstock.locks.commands.holds import HoldWork
from penstock.lots.manifests import PartLine, encode
from penstock.objects import Objects
from penstock.schema.arcs import EmptyOutput
from penstock.states import ArcState, ManifestState, RunState
from tests.acceptance.arc_site import NS, ONCE, ArcSite
from tests.acceptance.arc_workloads import ran

LOT = "20230227PT5M287"
DAYS = {f"{day}.txt": f"day {day}".encode() for day in (1, 2, 3)}
LOUD = {name: data.upper() for name, data in DAYS.items()}
BY_DAY = Parts(pattern="day={day}/")


def feed_days(arcs: ArcSite) -> None:
    """Publish a lot whose objects are in folders by day."""
    arcs.feed("raw", LOT, {f"day={name[0]}/{name}": data for name, data in DAYS.items()})


def objects_of(arcs: ArcSite) -> dict[str, bytes]:
    """Return all objects that arcs wrote for the lot, data and manifests."""
    found = [*arcs.objects.list("data"), *arcs.objects.list("datasets")]
    return {entry.key: arcs.objects.get(entry.key) for entry in found}


def test_each_part_has_a_child_run_and_a_manifest(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud", parts=BY_DAY)
    feed_days(arcs)
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    assert sorted(arcs.ran()) == [(LOT, f"day={day}") for day in (1, 2, 3)]
    assert arcs.content("shout", LOT) == LOUD
    [manifest] = arcs.lot("shout", LOT).manifests
    root = f"state=complete/attempt={manifest.attempt}"
    assert arcs.manifests("loud", LOT) == sorted(
        [
            f"{root}/manifest.json",
            *(f"{root}/part=day%3D{day}/manifest.json" for day in (1, 2, 3)),
            "state=complete/manifest.json",
        ]
    )
    assert (manifest.uris, manifest.bytes) == (3, sum(map(len, LOUD.values())))


def test_only_failed_parts_run_again(arcs: ArcSite) -> None:
    """Good parts keep their data; data of the failed one is removed later."""
    arcs.arc("shout", "raw", "loud", parts=BY_DAY, retry=ONCE)
    arcs.order(LOT, "fail", "fail", part="day=2")
    feed_days(arcs)
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.PARTIAL)
        first = objects_of(arcs)
        parts = {part.part: part for part in arcs.lot("shout", LOT).parts}
        assert {name: part.state for name, part in parts.items()} == {
            "day=1": "complete", "day=2": "failed", "day=3": "complete",
        }  # fmt: skip
        assert "1 of 3 parts failed; part day=2" in str(arcs.lot("shout", LOT).error)
        assert arcs.content("shout", LOT) == {}
        assert "state=complete/manifest.json" not in arcs.manifests("loud", LOT)

        arcs.do(ResubmitLots("ann", "again", NS, "shout", (LOT,)))
        arcs.until(lambda: len(arcs.lot("shout", LOT).failed_attempts) == 2)
        arcs.do(ResubmitLots("ann", "and again", NS, "shout", (LOT,)))
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
        arcs.until(lambda: {a.state for a in _attempts(arcs)} == {"removed"})
    assert sorted(arcs.ran()) == [(LOT, f"day={day}") for day in (1, 2, 2, 2, 3)]
    assert arcs.content("shout", LOT) == LOUD
    last = objects_of(arcs)
    good = [key for key in first if "part=day%3D1/" in key or "part=day%3D3/" in key]
    assert len(good) == 4
    assert {key: last[key] for key in good} == {key: first[key] for key in good}
    assert arcs.data("loud", LOT) == ["1.txt", "2.txt", "3.txt"]
    assert not [key for key in last if "junk" in key or "state=partial" in key]
    removed = [last[attempt.keys[0]] for attempt in _attempts(arcs)]
    assert [b"junk.txt" in text for text in removed] == [True, True]
    assert not any(b"1.txt" in text for text in removed)


def _attempts(arcs: ArcSite) -> list[Any]:
    return list(arcs.lot("shout", LOT).failed_attempts)


def test_visible_data_is_always_complete(arcs: ArcSite) -> None:
    """A concurrent reader never sees data of a failed attempt."""
    arcs.arc("shout", "raw", "loud", parts=BY_DAY, retry=Retry(tries=9, back_off_seconds=0))
    for day in (1, 2, 3):
        arcs.order(LOT, *["fail"] * day, part=f"day={day}")
    feed_days(arcs)
    seen: list[dict[str, bytes]] = []

    def look() -> bool:
        seen.append(arcs.content("shout", LOT))
        return bool(seen[-1])

    with arcs.engine():
        arcs.until(look)
    assert [content for content in seen if content] == [LOUD]
    assert sorted(arcs.ran()) == sorted((LOT, f"day={d}") for d in (1, 2, 3) for _ in range(d + 1))


def test_parts_by_size_and_by_a_function(arcs: ArcSite) -> None:
    arcs.arc("small", "raw", "small", parts=Parts(bytes_max=5))
    function = "tests.acceptance.arc_workloads:one_part_each"
    arcs.arc("each", "raw", "each", parts=Parts(function=function, running_max=1))
    feed_days(arcs)
    with arcs.engine():
        arcs.until_state("small", LOT, ArcState.COMPLETE)
        arcs.until_state("each", LOT, ArcState.COMPLETE)
    assert arcs.content("small", LOT) == arcs.content("each", LOT) == LOUD
    parts = sorted(part for _, part in arcs.ran())
    assert parts == ["00000", "00001", "00002", "1.txt", "2.txt", "3.txt"]


def test_parts_with_other_members_run_again(arcs: ArcSite) -> None:
    """A part of the same name may have other members: its result cannot be reused."""
    arcs.arc("shout", "raw", "loud", parts=Parts(bytes_max=10), retry=ONCE)
    arcs.order(LOT, "fail", part="00001")
    arcs.feed("raw", LOT, {f"{n}.txt": f"{n}234".encode() for n in range(8)})
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.PARTIAL)
        arcs.arc("shout", "raw", "loud", parts=Parts(bytes_max=20), retry=ONCE)
        arcs.do(HoldWork("ann", "cut otherwise", NS, "shout", LOT, hold=False))
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    assert sorted(arcs.content("shout", LOT)) == [f"{n}.txt" for n in range(8)]
    assert sorted(part for _, part in arcs.ran()[-2:]) == ["00000", "00001"]


def test_a_part_without_a_name_fails_the_lot(arcs: ArcSite) -> None:
    function = "tests.acceptance.arc_workloads:parts_as_ordered"
    arcs.arc("shout", "raw", "loud", parts=Parts(function=function), retry=ONCE)
    (arcs.folder / "groups.json").write_text('{"": ["1.txt"], "y": ["2.txt", "3.txt"]}')
    feed_days(arcs)
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.PARTIAL)
    assert "'' cannot be the name of one" in str(arcs.lot("shout", LOT).error)
    assert arcs.ran() == []


def test_manifest_that_lists_itself_is_cleaned(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud", parts=BY_DAY)
    feed_days(arcs)
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    [line] = arcs.lot("shout", LOT).manifests
    with arcs.catalog.read() as tx:
        [row] = manifest_rows(tx, [line.version]).values()
        arc = find_arc(tx, NS, "shout")
    root = read_manifest(arcs.objects, row.key)
    itself = PartLine("", row.key, ManifestState.COMPLETE)
    endless = msgspec.structs.replace(root, parts=(*root.parts, itself))
    arcs.objects.put(row.key, encode(endless))
    tidy(arcs.catalog, arcs.objects, output_refs(arc.arc), arc.job_id, LOT)
    assert arcs.data("loud", LOT) == ["1.txt", "2.txt", "3.txt"]


def test_parts_regrouped_by_a_function_run_again(arcs: ArcSite) -> None:
    function = "tests.acceptance.arc_workloads:parts_as_ordered"
    arcs.arc("shout", "raw", "loud", parts=Parts(function=function), retry=ONCE)
    groups = arcs.folder / "groups.json"
    groups.write_text('{"x": ["1.txt", "2.txt"], "y": ["3.txt"], "z": []}')
    arcs.order(LOT, "fail", part="y")
    feed_days(arcs)
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.PARTIAL)
        groups.write_text('{"x": ["1.txt"], "y": ["2.txt", "3.txt"], "z": []}')
        arcs.do(ResubmitLots("ann", "grouped otherwise", NS, "shout", (LOT,)))
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    assert arcs.content("shout", LOT) == LOUD
    assert sorted(part for _, part in arcs.ran()) == ["x", "x", "y", "y", "z"]


@pytest.mark.parametrize("now", [("loud", "copy"), ("copy",)])
def test_parts_for_other_outputs_run_again(arcs: ArcSite, now: tuple[str, ...]) -> None:
    arcs.arc("shout", "raw", "loud", "shout_everywhere", parts=BY_DAY, retry=ONCE)
    arcs.order(LOT, "fail", part="day=2")
    (arcs.folder / "outputs").write_text("loud")
    feed_days(arcs)
    outputs = tuple(Output(dataset=name) for name in now)
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.PARTIAL)
        (arcs.folder / "outputs").write_text(" ".join(now))
        arcs.arc("shout", "raw", "", "shout_everywhere", parts=BY_DAY, outputs=outputs, retry=ONCE)
        arcs.do(ResubmitLots("ann", "other outputs", NS, "shout", (LOT,)))
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    lines = {line.dataset: line.uris for line in arcs.lot("shout", LOT).manifests}
    assert lines == dict.fromkeys(now, 3)
    assert arcs.content("shout", LOT) == LOUD


def test_two_outputs_have_a_root_manifest_each(arcs: ArcSite) -> None:
    outputs = (Output(dataset="loud"), Output(dataset="nothing", empty=EmptyOutput.ALLOW))
    arcs.arc("shout", "raw", "", parts=BY_DAY, outputs=outputs)
    feed_days(arcs)
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    states = {line.dataset: line.state for line in arcs.lot("shout", LOT).manifests}
    assert states == {"loud": "complete", "nothing": "empty"}
    assert arcs.content("shout", LOT) == LOUD


def test_part_of_a_killed_process_runs_in_another(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud", parts=BY_DAY, retry=ONCE)
    arcs.order(LOT, "die", part="day=2")
    feed_days(arcs)
    with LocalProcesses(2) as processes, arcs.engine(processes):
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
        arcs.until(lambda: arcs.data("loud", LOT) == ["1.txt", "2.txt", "3.txt"])
    runs = [line for line in ran(arcs.folder) if line["part"] == "day=2"]
    assert len({line["pid"] for line in runs}) == len({line["location"] for line in runs}) == 2
    assert len(arcs.ran()) == 4
    assert arcs.content("shout", LOT) == LOUD
    assert arcs.lot("shout", LOT).attempts == 1


def test_part_that_kills_every_process_fails(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud", parts=BY_DAY, retry=ONCE)
    arcs.order(LOT, "die", "die", "die", part="day=2")
    feed_days(arcs)
    with LocalProcesses(1) as processes, arcs.engine(processes):
        arcs.until_state("shout", LOT, ArcState.PARTIAL)
    assert "workers were lost" in str(arcs.lot("shout", LOT).error)
    states = {part.part: part.state for part in arcs.lot("shout", LOT).parts}
    assert states == {"day=1": "complete", "day=2": "failed", "day=3": "complete"}


def test_the_runs_of_parts_end_as_the_parts_do(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud", parts=BY_DAY)
    arcs.order(LOT, "fail", part="day=2")
    feed_days(arcs)
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    with arcs.catalog.read() as tx:
        runs = list_runs(tx, NS, "shout.part", 100, 0).items
    states = sorted(run.state for run in runs)
    assert states == [RunState.COMPLETED] * 3 + [RunState.FAILED]


def test_moved_store_keeps_published_data(local_arcs: ArcSite, tmp_path: Path) -> None:
    """The folder was moved behind a link: old manifests have the former URL."""
    arcs = local_arcs
    arcs.arc("shout", "raw", "loud", parts=BY_DAY, retry=ONCE)
    arcs.order(LOT, "fail", part="day=2")
    feed_days(arcs)
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.PARTIAL)
    (tmp_path / "moved").symlink_to(tmp_path / "objects", target_is_directory=True)
    arcs.objects = Objects.open(str(tmp_path / "moved"))
    arcs.do(ResubmitLots("ann", "again", NS, "shout", (LOT,)))
    with arcs.engine():
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
        arcs.until(lambda: {a.state for a in _attempts(arcs)} == {"removed"})
    assert arcs.data("loud", LOT) == ["1.txt", "2.txt", "3.txt"]
