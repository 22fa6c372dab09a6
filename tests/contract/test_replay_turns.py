"""Unbegun work of a replay is reserved for it, whatever the stale rule of its job."""

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.locks.commands import HoldWork, ResubmitLots, WireJob
from penstock.operations.replays.target import ReplayTarget
from penstock.schema.locks import Stale
from penstock.states import ReplayState
from tests.contract.replay_site import DIAMOND, REPLAY, ReplaySite, open_replays

pytestmark = pytest.mark.one_database

OTHER = "0199aaaa-0000-7000-8000-000000000009"
THIRD = "0199aaaa-0000-7000-8000-00000000000a"
# Takes a database back to before there were turns.


@pytest.fixture
def site(database_url: str) -> Iterator[ReplaySite]:
    """Lots a and b went through the diamond."""
    with open_replays(database_url) as opened:
        opened.all_done("a", "b")
        yield opened


@pytest.fixture(params=[Stale.RERUN, Stale.HOLD])
def ruled(site: ReplaySite, request: pytest.FixtureRequest) -> ReplaySite:
    """All jobs have a stale rule, as arcs do."""
    for job in DIAMOND:
        site.site.do(WireJob("ns", job, stale=request.param))
    return site


def begin(site: ReplaySite, **how: Any) -> None:
    """Begin a replay and complete its first step."""
    site.start(dataset="clean", lot="a", **how)
    site.step()
    site.done("clean", "a")


def test_only_the_replay_starts_reserved_work(ruled: ReplaySite) -> None:
    old = {name: ruled.output(name, "a") for name in ("left", "right", "join")}
    begin(ruled, max_running=1)
    assert ruled.ready() == set()  # nobody has moved the replay on
    assert ruled.work("left", "a").state == "DONE"
    assert {name: ruled.output(name, "a") for name in old} == old
    assert [ruled.work(job, "a").stale_since > 0 for job in ("left", "right", "join")] == [
        *(True, True, False),
    ]
    ruled.step()
    assert ruled.ready() == {"left a"}
    assert ruled.step().going == 1
    ruled.done("left", "a")
    ruled.step()
    assert ruled.ready() == {"right a"}
    assert ruled.output("join", "a") == old["join"]
    assert ruled.finish().done == 4
    assert ruled.turns() == {}


def test_stale_work_waits_while_the_replay_is_paused(ruled: ReplaySite) -> None:
    ruled.start(dataset="clean", lot="a")
    ruled.step()
    ruled.replays.pause(REPLAY, "bob", "too much load")
    ruled.done("clean", "a")
    now = ruled.step()
    assert (now.state, now.done, now.pending) == (ReplayState.PAUSED, 1, 3)
    assert ruled.ready() == set()
    said = ruled.why("left", "a")
    assert "Since then ns/clean got a newer version" in said
    assert f"its turn in replay {REPLAY}, which is paused" in said
    ruled.replays.resume(REPLAY, "bob", "quiet again")
    assert f"its turn in replay {REPLAY}." in ruled.why("join", "a")
    assert ruled.finish().done == 4
    assert "its turn" not in ruled.why("join", "a")


def test_cancel_applies_the_stale_rule(ruled: ReplaySite) -> None:
    begin(ruled)
    now = ruled.replays.cancel(REPLAY, "bob", "wrong lot")
    assert (now.state, now.pending, now.stale) == (ReplayState.CANCELLED, 3, 2)
    assert ruled.turns() == {}
    states = {job: str(ruled.work(job, "a").state) for job in ("left", "right", "join")}
    if ruled.rule("left") == Stale.RERUN:
        assert states == {"left": "READY", "right": "READY", "join": "DONE"}
    else:
        assert states == {"left": "HELD", "right": "HELD", "join": "DONE"}


def test_stale_rule_applies_after_cancel(
    ruled: ReplaySite,
) -> None:
    ruled.start(dataset="clean", lot="a")
    ruled.step()
    assert ruled.replays.cancel(REPLAY, "bob", "wrong lot").stale == 0
    ruled.done("clean", "a")
    assert ruled.work("left", "a").state in ("READY", "HELD")


def test_work_after_a_failed_step_stays_until_the_end(
    ruled: ReplaySite,
) -> None:
    site, old = ruled, ruled.output("join", "a")
    begin(site)
    site.step()
    site.site.fail("left", "a")
    site.site.fail("left", "a")
    site.replays.pause(REPLAY, "bob", "to look at it")
    site.done("right", "a")
    now = site.step()
    assert (now.failed, now.blocked, now.done) == (1, 1, 2)
    assert (site.output("join", "a"), [*site.turns()]) == (old, ["join a"])
    assert site.work("join", "a").stale_since > 0
    site.replays.resume(REPLAY, "bob", "seen")
    ended = site.step()
    assert (ended.state, ended.stale, site.turns()) == (ReplayState.FAILED, 1, {})
    expected = "WAITING" if site.rule("join") == Stale.RERUN else "HELD"
    assert site.work("join", "a").state == expected


def test_cancel_keeps_holds_of_persons(
    site: ReplaySite,
) -> None:
    site.site.do(WireJob("ns", "left", stale=Stale.HOLD))
    site.site.do(ResubmitLots("ann", "by hand", "ns", "clean", ("a",)))
    site.done("clean", "a")
    site.site.do(HoldWork("boss", "no change", "ns", "left", "a", hold=False))
    site.start(dataset="raw", lot="a")
    site.replays.cancel(REPLAY, "bob", "wrong lot")
    assert site.work("left", "a").state == "DONE"


def test_resubmitted_work_is_done_once(ruled: ReplaySite) -> None:
    begin(ruled)
    ruled.site.do(ResubmitLots("ann", "by hand", "ns", "left", ("a",)))
    ruled.done("left", "a")
    run = ruled.work("left", "a").run_id
    assert ruled.finish().done == 4
    assert ruled.work("left", "a").run_id == run


def test_work_in_two_replays_is_reserved_until_both_end(
    ruled: ReplaySite,
) -> None:
    begin(ruled)
    ruled.replays.start(
        OTHER, "ann", "bad too", ReplayTarget(namespace="ns", dataset="left", lot="a")
    )
    ruled.replays.cancel(REPLAY, "bob", "wrong lot")
    assert ruled.work("left", "a").state == "DONE"
    assert ruled.work("right", "a").state in ("READY", "HELD")
    ruled.replays.cancel(OTHER, "bob", "wrong lot too")
    assert ruled.work("left", "a").state in ("READY", "HELD")


def test_late_readers_are_reserved_too(ruled: ReplaySite) -> None:
    ruled.site.wire("late", ["clean"], ["late"])
    ruled.start(dataset="clean", lot="a")
    ruled.done("late", "a")
    for job in ("clean", "left", "right", "join"):
        ruled.step()
        ruled.done(job, "a")
    assert ruled.step().steps == 5
    assert ruled.turns() == {"late a": [REPLAY]}
