"""A replay carries a correction through a diamond of arcs, run by a real engine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from penstock.arcs.spec import Input
from penstock.locks.queries.lots import list_stale
from penstock.operations.replays.service import Replays
from penstock.operations.replays.target import ReplayTarget
from penstock.schema.locks import Stale
from penstock.schema.operations import Replay
from penstock.states import ArcState, ReplayState, StepState
from tests.acceptance.arc_site import NS, ONCE, ArcSite

REPLAY = "0199aaaa-0000-7000-8000-000000000003"
ARCS = ("clean", "left", "right", "joined")
BAD, GOOD = "bad-lot", "good-lot"
OF_RAW = ReplayTarget(namespace=NS, dataset="raw", lot=BAD, any_version=True)


def run_diamond(arcs: ArcSite, stale: Stale = Stale.IGNORE) -> None:
    """Run two lots through four arcs with a join, then correct the bad one."""
    how: dict[str, Any] = {"retry": ONCE, "stale": stale}
    arcs.arc("clean", "raw", "clean", **how)
    arcs.arc("left", "clean", "left", **how)
    arcs.arc("right", "clean", "right", **how)
    both = (Input(dataset="left"), Input(dataset="right"))
    arcs.arc("joined", both, "joined", "join", **how)
    arcs.feed("raw", BAD, {"a.txt": b"wrong"})
    arcs.feed("raw", GOOD, {"a.txt": b"fine"})
    with arcs.engine():
        for lot in (BAD, GOOD):
            arcs.until_state("joined", lot, ArcState.COMPLETE)
    arcs.feed("raw", BAD, {"a.txt": b"right"})


def made(arcs: ArcSite, lot: str) -> bytes:
    return arcs.content("joined", lot)["joined.txt"]


def versions(arcs: ArcSite, lot: str) -> dict[str, list[str]]:
    """Return every version of a lot that each arc has made."""
    return {arc: [line.version for line in arcs.lot(arc, lot).manifests] for arc in ARCS}


@contextmanager
def replaying(arcs: ArcSite, target: ReplayTarget = OF_RAW) -> Iterator[Replays]:
    """Run an engine and begin a replay."""
    replays = Replays(arcs.catalog, arcs.plane.clock)
    replays.start(REPLAY, "ann", "wrong digest", target)
    with arcs.engine():
        yield replays


def until(arcs: ArcSite, replays: Replays, state: ReplayState) -> Replay:
    arcs.until(lambda: replays.step(REPLAY).state is state)
    return replays.status(REPLAY)


def states(replays: Replays) -> dict[str, StepState]:
    return {step.job: step.state for step in replays.steps(REPLAY)}


def test_correction_reaches_all_derived_lots(
    arcs: ArcSite,
) -> None:
    run_diamond(arcs)
    assert made(arcs, BAD) == b"left/a.txt: WRONG\nright/a.txt: WRONG"
    before = versions(arcs, GOOD)
    with replaying(arcs) as replays:
        ended = until(arcs, replays, ReplayState.DONE)
    assert (ended.steps, ended.done) == (4, 4)
    assert made(arcs, BAD) == b"left/a.txt: RIGHT\nright/a.txt: RIGHT"
    assert versions(arcs, GOOD) == before
    assert {arc: len(all_of) for arc, all_of in versions(arcs, BAD).items()} == dict.fromkeys(
        ARCS, 2
    )


@pytest.mark.parametrize("stale", [Stale.RERUN, Stale.HOLD])
def test_stale_rules_cause_no_double_work(arcs: ArcSite, stale: Stale) -> None:
    run_diamond(arcs, stale)
    with replaying(arcs) as replays:
        ended = until(arcs, replays, ReplayState.DONE)
    assert (ended.steps, ended.done) == (4, 4)
    assert made(arcs, BAD) == b"left/a.txt: RIGHT\nright/a.txt: RIGHT"
    assert {arc: len(all_of) for arc, all_of in versions(arcs, BAD).items()} == dict.fromkeys(
        ARCS, 2
    )


def test_old_versions_stay_readable_meanwhile(arcs: ArcSite) -> None:
    run_diamond(arcs)
    arcs.order(BAD, "wait")
    with replaying(arcs) as replays:
        arcs.until(lambda: replays.step(REPLAY).under_way[0].now == "RUNNING")
        assert made(arcs, BAD) == b"left/a.txt: WRONG\nright/a.txt: WRONG"
        arcs.go()
        until(arcs, replays, ReplayState.DONE)
    assert made(arcs, BAD) == b"left/a.txt: RIGHT\nright/a.txt: RIGHT"


def test_cancelled_replay_leaves_unbegun_lots(arcs: ArcSite) -> None:
    run_diamond(arcs)
    before = versions(arcs, BAD)
    arcs.order(BAD, "wait")
    with replaying(arcs) as replays:
        arcs.until(lambda: replays.step(REPLAY).under_way[0].now == "RUNNING")
        replays.cancel(REPLAY, "bob", "wrong lot")
        arcs.go()
        arcs.until(lambda: replays.step(REPLAY).going == 0)
    after = versions(arcs, BAD)
    assert len(after.pop("clean")) == 2
    assert after == {arc: before[arc] for arc in ("left", "right", "joined")}
    assert made(arcs, BAD) == b"left/a.txt: WRONG\nright/a.txt: WRONG"
    assert states(replays) == {
        "clean": StepState.DONE,
        "left": StepState.PENDING,
        "right": StepState.PENDING,
        "joined": StepState.PENDING,
    }


def test_paused_replay_suspends_stale_rules(arcs: ArcSite) -> None:
    run_diamond(arcs, Stale.RERUN)
    with replaying(arcs) as replays:
        arcs.until(lambda: replays.status(REPLAY).done or _step_once(arcs, replays))
        replays.pause(REPLAY, "bob", "too much load")
        arcs.until(lambda: replays.step(REPLAY).done == 1)
        with arcs.catalog.read() as tx:
            stale = list_stale(tx, NS, None, 10, 0).lots
        assert {each.job: each.state for each in stale} == dict.fromkeys(("left", "right"), "DONE")
        assert made(arcs, BAD) == b"left/a.txt: WRONG\nright/a.txt: WRONG"
        replays.resume(REPLAY, "bob", "quiet again")
        until(arcs, replays, ReplayState.DONE)
    assert made(arcs, BAD) == b"left/a.txt: RIGHT\nright/a.txt: RIGHT"


def test_failed_step_leaves_later_lots(arcs: ArcSite) -> None:
    run_diamond(arcs)
    with replaying(arcs) as replays:
        arcs.until(lambda: replays.status(REPLAY).done or _step_once(arcs, replays))
        arcs.order(BAD, "fail")
        ended = until(arcs, replays, ReplayState.FAILED)
    assert (ended.done, ended.failed, ended.blocked) == (2, 1, 1)
    [failure] = ended.failures
    assert failure.job in ("left", "right")
    assert "no luck" in failure.note
    assert states(replays)["joined"] is StepState.BLOCKED
    assert made(arcs, BAD) == b"left/a.txt: WRONG\nright/a.txt: WRONG"


def _step_once(arcs: ArcSite, replays: Replays) -> bool:
    """Begin the first step only."""
    if not replays.status(REPLAY).going:
        replays.step(REPLAY)
    return len(versions(arcs, BAD)["clean"]) == 2
