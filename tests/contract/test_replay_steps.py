"""The steps of a replay: in order, good work untouched, paused, cancelled, failed."""

import logging
from collections.abc import Iterator

import pytest

from penstock.access import audit
from penstock.catalog.commands import DeleteJob
from penstock.clock import SECOND
from penstock.errors import Conflict, NotFound
from penstock.locks.commands import (
    ClaimedLot,
    ClaimRef,
    FailClaims,
    HoldJob,
    RegisterLots,
    ResubmitLots,
    WireJob,
)
from penstock.operations.replays.commands import BeginStep
from penstock.schema.locks import Stale
from penstock.states import ReplayState, StepState
from penstock.telemetry.logs import TextLines
from tests.contract.replay_site import REPLAY, ReplaySite, open_replays

pytestmark = pytest.mark.one_database

STEPS = ("clean a", "left a", "right a", "join a")


@pytest.fixture
def site(database_url: str) -> Iterator[ReplaySite]:
    """Lots a and b went through the diamond."""
    with open_replays(database_url) as opened:
        opened.all_done("a", "b")
        yield opened


def test_replay_runs_affected_work_only(
    site: ReplaySite,
) -> None:
    before = site.runs("a", "b")
    begun = site.start(dataset="clean", lot="a")
    assert (begun.state, begun.steps, begun.pending) == (ReplayState.RUNNING, 4, 4)
    assert site.runs("a", "b") == before
    ended = site.finish()
    assert (ended.done, ended.failed, ended.blocked, ended.going) == (4, 0, 0, 0)
    after = site.runs("a", "b")
    assert {key for key in before if before[key] != after[key]} == set(STEPS)
    shown = site.replays.steps(REPLAY)
    assert [step.run for step in shown] == [after[f"{step.job} {step.lot}"] for step in shown]
    assert [step.run_before for step in shown] == [
        before[f"{step.job} {step.lot}"] for step in shown
    ]


def test_step_begins_after_earlier_steps(
    site: ReplaySite,
) -> None:
    old = {name: site.output(name, "a") for name in ("clean", "left", "right", "join")}
    site.start(dataset="clean", lot="a")
    site.step()
    assert site.ready() == {"clean a"}
    assert {name for name in old if site.output(name, "a") != old[name]} == {"clean"}
    site.done("clean", "a")
    site.step()
    assert site.ready() == {"left a", "right a"}
    assert site.output("join", "a") == old["join"]
    site.done("left", "a")
    site.step()
    assert site.ready() == {"right a"}
    assert site.states()["join a"] == StepState.PENDING
    site.done("right", "a")
    site.step()
    assert site.ready() == {"join a"}
    site.done("join", "a")
    assert site.step().state is ReplayState.DONE
    # What was there before is not overwritten: each version has its own id.
    assert {old[name].version_id for name in old}.isdisjoint(
        site.output(name, "a").version_id for name in old
    )


def test_at_most_max_running_steps_run(site: ReplaySite) -> None:
    site.all_done("c", "d")
    site.start(job="left", max_running=2)
    site.step()
    assert site.ready() == {"left a", "left b"}
    site.step()
    assert site.ready() == {"left a", "left b"}
    for number in (5, 7):  # somebody else who looked earlier
        refused = site.site.do(BeginStep(REPLAY, number))
        assert refused.state == StepState.PENDING
    site.done("left", "a")
    assert site.step().going == 2
    assert len(site.ready()) == 2
    assert site.finish().done == 8


def test_second_start_of_a_replay_changes_nothing(site: ReplaySite) -> None:
    site.start(dataset="raw", lot="a")
    site.step()
    again = site.start(dataset="raw", lot="a")
    assert (again.steps, again.going) == (4, 1)
    with pytest.raises(Conflict, match="is of lot a of dataset ns/raw"):
        site.start(dataset="raw", lot="b")
    assert len(site.replays.last()) == 1
    with site.site.catalog.read() as tx:
        lines = [each for each in audit.entries(tx, 100) if each.action == "start replay"]
    assert [(line.who, line.target) for line in lines] == [("ann", "lot a of dataset ns/raw")]
    assert lines[0].detail == f"{REPLAY}: 4 steps: bad digest"


def test_replay_without_steps_is_done_at_once(site: ReplaySite) -> None:
    ended = site.start(dataset="join", lot="a", downstream_only=True)
    assert (ended.state, ended.steps) == (ReplayState.DONE, 0)


def test_refused_resubmission_fails_the_step_with_the_reason(site: ReplaySite) -> None:
    site.start(dataset="clean", lot="a")
    site.step()
    site.done("clean", "a")
    site.site.do(DeleteJob("ns", "left", "ann"))
    now = site.step()
    assert [(each.job, each.note) for each in now.failures] == [
        ("left", "there is no job 'left' in namespace 'ns'")
    ]
    assert (now.blocked, site.ready()) == (1, {"right a"})


def test_running_work_is_followed_not_repeated(site: ReplaySite) -> None:
    site.site.do(ResubmitLots("ann", "by hand", "ns", "clean", ("a",)))
    live = site.site.claim("clean", "a", "w9")
    site.start(dataset="raw", lot="a")
    site.step()
    assert site.states()["clean a"] == StepState.GOING
    site.publish(live)
    site.step()
    assert site.states()["clean a"] == StepState.DONE
    assert site.work("clean", "a").run_id == live.id


def test_run_with_earlier_inputs_is_repeated(
    site: ReplaySite,
) -> None:
    site.site.do(ResubmitLots("ann", "by hand", "ns", "left", ("a",)))
    live = site.site.claim("left", "a", "w9")
    site.start(dataset="clean", lot="a")
    site.step()
    site.done("clean", "a")
    now = site.step()
    assert now.going == 1  # right
    [left] = [step for step in site.replays.steps(REPLAY) if step.job == "left"]
    assert (left.state, left.note) == (
        StepState.PENDING,
        "w9 is running it with earlier inputs",
    )
    site.publish(live)
    site.step()
    assert site.ready() == {"left a", "right a"}
    assert site.finish().done == 4
    assert site.work("left", "a").run_id != live.id


def test_work_done_meanwhile_counts(site: ReplaySite) -> None:
    site.start(dataset="clean", lot="a")
    site.step()
    site.done("clean", "a")
    site.site.do(ResubmitLots("ann", "by hand", "ns", "left", ("a",)))
    site.done("left", "a")
    run = site.work("left", "a").run_id
    site.step()
    assert (site.states()["left a"], site.ready()) == ("done", {"right a"})
    site.finish()
    assert site.work("left", "a").run_id == run


def test_late_readers_become_steps(
    site: ReplaySite,
) -> None:
    site.site.wire("late", ["clean"], ["late"])
    site.start(dataset="clean", lot="a")
    site.done("late", "a")  # before its turn has come, and so of what was bad
    bad = site.work("late", "a").run_id
    site.done("late", "b")
    for job in ("clean", "left", "right", "join"):
        site.step()
        site.done(job, "a")
    now = site.step()
    assert (now.state, now.steps, now.done) == (ReplayState.RUNNING, 5, 4)
    site.step()
    site.done("late", "a")
    assert site.step().state is ReplayState.DONE
    assert site.work("late", "a").run_id != bad
    assert site.states()["late a"] == "done"


def test_lot_without_input_is_not_resubmitted(site: ReplaySite) -> None:
    site.start(dataset="left", lot="a")
    site.step()
    site.done("left", "a")
    site.site.do(ResubmitLots("ann", "by hand", "ns", "right", ("a",)))
    site.step()
    assert (site.states()["join a"], site.output("join", "a").status) == ("pending", "READY")
    [waiting] = site.replays.steps(REPLAY, state=StepState.PENDING)
    assert waiting.note == "an input is RESUBMIT"
    site.done("right", "a")
    site.site.do(HoldJob("boss", "no power", "ns", "join"))
    site.step()
    assert site.output("join", "a").status == "READY"
    site.site.do(HoldJob("boss", "power", "ns", "join", hold=False))
    assert site.finish().done == 2


def at_work(site: ReplaySite, lot: str) -> ClaimedLot:
    """Claim a lot of `apart` with the earlier inputs."""
    site.site.do(ResubmitLots("ann", "by hand", "ns", "apart", (lot,)))
    claim = site.site.claim("apart", lot)
    site.site.register("other", [lot])
    return claim


def test_log_has_begun_steps_only(site: ReplaySite, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "penstock.operations.replays")
    at_work(site, "a")
    site.start(job="apart")
    for _ in range(3):
        site.step()
    [waiting] = site.replays.steps(REPLAY, state=StepState.PENDING)
    [begun] = site.replays.steps(REPLAY, state=StepState.GOING)
    assert (waiting.lot, begun.lot) == ("a", "b")
    assert caplog.messages == [f"step {begun.number} of replay {REPLAY} is going"]


def test_log_has_job_and_lot_of_done_steps(
    site: ReplaySite, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "penstock.operations.replays")
    caplog.handler.setFormatter(TextLines())
    site.start(dataset="left", lot="a")
    site.finish()
    told = [line.partition(" INFO ")[2] for line in caplog.text.splitlines()]
    assert [line for line in told if " is done" in line] == [
        f"step {number} of replay {REPLAY} is done [replay={REPLAY} job=ns/{job} lot=a]"
        for number, job in enumerate(("left", "join"), start=1)
    ]


def test_waiting_step_delays_no_other(site: ReplaySite) -> None:
    site.all_done("c")
    claim = at_work(site, "a")
    site.start(job="apart", max_running=1)
    site.site.now += SECOND
    site.step()
    assert site.ready() == {"apart b"}
    site.done("apart", "b")
    site.step()
    assert site.ready() == {"apart c"}
    site.done("apart", "c")
    assert site.step().state is ReplayState.RUNNING
    site.publish(claim)
    assert site.finish().done == 3


def test_corrected_external_lot_is_read_again(
    site: ReplaySite,
) -> None:
    bad = site.output("raw", "a").version_id
    site.site.do(RegisterLots("ns", "raw", ("a",), "ann", renew=True))
    site.start(dataset="raw", lot="a", version=bad)
    assert site.finish().done == 4


def test_work_held_for_a_newer_input_is_repeated(site: ReplaySite) -> None:
    site.site.do(WireJob("ns", "left", stale=Stale.HOLD))
    site.site.now += SECOND
    bad = site.output("clean", "a").version_id
    site.site.do(ResubmitLots("ann", "by hand", "ns", "clean", ("a",)))
    site.done("clean", "a")
    found = site.plan(dataset="clean", lot="a", version=bad)
    assert {(step.job, step.now, step.action) for step in found.steps} == {
        ("left", "HELD", "rerun"),
        ("right", "DONE", "rerun"),
        ("join", "DONE", "rerun"),
    }
    site.start(dataset="clean", lot="a", version=bad)
    assert site.finish().done == 3


def test_steps_survive_a_claim_that_fails_once(site: ReplaySite) -> None:
    site.start(dataset="clean", lot="a")
    site.step()
    claim = site.site.claim("clean", "a")
    site.site.do(FailClaims((ClaimRef(claim.id, claim.token),), "a hiccup"))
    site.step()
    assert site.states()["clean a"] == "going"
    assert site.finish().done == 4


def test_unknown_replay_is_not_found(site: ReplaySite) -> None:
    with pytest.raises(NotFound, match="there is no replay"):
        site.replays.status("nothing")
    with pytest.raises(NotFound, match="there is no replay"):
        site.replays.cancel("nothing", "bob", "x")
