"""The closure of a replay is exact: all work that is affected, and no other."""

from collections.abc import Iterator

import pytest

from penstock import ids
from penstock.clock import HOUR, SECOND
from penstock.errors import Invalid, NotFound
from penstock.ingest.lots import BatchLotRow
from penstock.locks.commands import HoldJob, HoldWork, ResubmitLots
from penstock.operations.replays.target import ReplayTarget
from penstock.schema.operations import ReplayAction
from penstock.states import ManifestState, WorkState
from tests.contract.replay_site import ReplaySite, names, open_replays, steps


@pytest.fixture
def site(database_url: str) -> Iterator[ReplaySite]:
    """Lots a and b went through the diamond."""
    with open_replays(database_url) as opened:
        opened.all_done("a", "b")
        yield opened


def resubmit(site: ReplaySite, job: str, lot: str) -> None:
    site.site.do(ResubmitLots("ann", "once more", "ns", job, (lot,)))


def test_bad_lot_and_everything_downstream_are_steps(
    site: ReplaySite,
) -> None:
    found = site.plan(dataset="clean", lot="a")
    assert steps(found) == [
        ("clean a", 0, []),
        ("left a", 1, [1]),
        ("right a", 1, [1]),
        ("join a", 2, [2, 3]),
    ]
    assert [step.is_root for step in found.steps] == [True, False, False, False]
    assert [step.run for step in found.steps] == [
        site.work(step.job, "a").run_id for step in found.steps
    ]
    assert {step.action for step in found.steps} == {ReplayAction.RERUN}


def test_downstream_only_begins_with_the_consumers(site: ReplaySite) -> None:
    found = site.plan(dataset="clean", lot="a", downstream_only=True)
    assert steps(found) == [("left a", 0, []), ("right a", 0, []), ("join a", 1, [1, 2])]


def test_external_lot_has_no_step_of_its_own(site: ReplaySite) -> None:
    found = site.plan(dataset="raw", lot="b")
    assert names(found) == {"clean b", "left b", "right b", "join b"}
    assert not any(step.is_root for step in found.steps)
    assert names(site.plan(dataset="other", lot="b")) == {"apart b"}
    assert names(site.plan(dataset="join", lot="b", downstream_only=True)) == set()


def test_consumer_of_an_older_version_is_not_affected(
    site: ReplaySite,
) -> None:
    first = site.output("clean", "a").version_id
    resubmit(site, "clean", "a")
    site.done("clean", "a")
    resubmit(site, "left", "a")
    site.done("left", "a")
    # right consumed the first version of clean, left the second; join what right and left made
    # before, both of the first.
    assert names(site.plan(dataset="clean", lot="a")) == {"clean a", "left a"}
    assert names(site.plan(dataset="clean", lot="a", version=first)) == {"right a", "join a"}
    assert names(site.plan(dataset="clean", lot="a", any_version=True)) == {
        *("clean a", "left a", "right a", "join a"),
    }


def test_outputs_of_old_runs_are_followed(site: ReplaySite) -> None:
    bad = site.output("raw", "a").version_id
    site.site.register("raw", ["a"])
    for job in ("clean", "left", "right"):
        resubmit(site, job, "a")
        site.done(job, "a")
    assert names(site.plan(dataset="raw", lot="a", version=bad)) == {"join a"}
    resubmit(site, "join", "a")
    site.done("join", "a")
    assert names(site.plan(dataset="raw", lot="a", version=bad)) == set()


def test_failed_retry_leaves_work_affected(site: ReplaySite) -> None:
    resubmit(site, "left", "a")
    site.site.fail("left", "a")
    site.site.fail("left", "a")
    [left] = [step for step in site.plan(dataset="raw", lot="a").steps if step.job == "left"]
    assert (left.now, left.action) == (WorkState.HELD, ReplayAction.RERUN)
    assert "disk full" in left.note


def test_running_and_held_work_has_a_note(site: ReplaySite) -> None:
    resubmit(site, "left", "a")
    site.site.claim("left", "a", "w7")
    resubmit(site, "right", "a")
    site.site.do(HoldWork("boss", "odd", "ns", "join", "a"))
    site.site.do(HoldJob("boss", "no power", "ns", "clean"))
    found = {step.job: step for step in site.plan(dataset="raw", lot="a").steps}
    assert {job: step.action for job, step in found.items()} == {
        "clean": ReplayAction.RERUN,
        "left": ReplayAction.FOLLOW,
        "right": ReplayAction.FOLLOW,
        "join": ReplayAction.LEAVE,
    }
    assert found["left"].note == "w7 is running it"
    assert found["right"].note == "is ready already"
    assert found["clean"].note == "job ns/clean is held by boss: no power"


def test_first_run_under_way_is_affected(site: ReplaySite) -> None:
    site.site.wire("late", ["clean"], ["late"])
    site.site.claim("late", "a")
    [late] = [step for step in site.plan(dataset="clean", lot="a").steps if step.job == "late"]
    assert (late.now, late.action, late.run) == (WorkState.RUNNING, ReplayAction.FOLLOW, None)


def test_work_that_never_read_the_lot_is_not_affected(site: ReplaySite) -> None:
    site.site.wire("late", ["clean"], ["late"])
    assert "late a" not in names(site.plan(dataset="clean", lot="a"))


def test_target_is_a_job_with_or_without_a_range(site: ReplaySite) -> None:
    all_of_it = {f"{job} {lot}" for job in ("left", "join") for lot in "ab"}
    assert names(site.plan(job="left")) == all_of_it
    middle = site.site.now
    site.site.now += HOUR
    site.all_done("c")
    assert names(site.plan(job="left", start=middle + SECOND)) == {"left c", "join c"}
    assert names(site.plan(job="left", end=middle + SECOND)) == all_of_it
    assert names(site.plan(dataset="left", start=middle + SECOND)) == {"left c", "join c"}
    assert names(site.plan(dataset="raw", start=middle + SECOND)) == {
        *("clean c", "left c", "right c", "join c"),
    }


def test_target_is_a_job_version(site: ReplaySite) -> None:
    [before] = {step.job_version for step in site.plan(job="left").steps if step.job == "left"}
    site.site.now += HOUR
    site.site.wire("left", ["clean", "raw"], ["left"])
    site.all_done("c")
    [after] = {
        step.job_version for step in site.plan(dataset="left", lot="c").steps if step.job == "left"
    }
    assert before is not None
    assert names(site.plan(job="left", job_version=after)) == {"left c", "join c"}
    assert names(site.plan(job="left", job_version=before)) == {
        *("left a", "left b", "join a", "join b"),
    }
    with pytest.raises(NotFound, match="has no version"):
        site.plan(job="right", job_version=before)


def test_target_is_a_deposit(site: ReplaySite) -> None:
    row = BatchLotRow(
        batch_id="bid0000000001",
        collection="orders",
        submitter="ann",
        dataset_id=ids.dataset_id("ns", "raw"),
        lot="b",
        report=1,
        state=ManifestState.COMPLETE,
        key="",
        uris=1,
        bytes=1,
        digest="",
        attempt="",
        due_at=0,
        at=site.site.now,
    )
    with site.site.database.write() as tx:
        tx.write("put_batch_lots", [row])
    found = site.plan(namespace="", batch="bid0000000001")
    assert names(found) == {"clean b", "left b", "right b", "join b"}
    assert found.target == "the lot of batch bid0000000001"
    begun = site.start(namespace="", batch="bid0000000001")
    assert (begun.namespace, begun.steps) == ("ns", 4)
    with pytest.raises(NotFound, match=r"batch nothing has no lot: .* when no job of it is failed"):
        site.plan(namespace="", batch="nothing")


def test_costs_are_those_of_past_runs(database_url: str) -> None:
    with open_replays(database_url) as site:
        site.site.register("raw", ["a"])
        site.site.register("other", ["a"])
        for job, seconds in (("clean", 1), ("left", 2), ("right", 3), ("join", 4), ("apart", 5)):
            site.done(job, "a", seconds=seconds)
        wide = site.plan(dataset="raw", lot="a").totals
        assert (wide.steps, wide.cost_seconds, wide.critical_path_seconds) == (4, 10, 8)
        assert wide.wall_seconds == 8
        assert site.plan(dataset="raw", lot="a", at_once=1).totals.wall_seconds == 10
        assert {each.job: each.seconds for each in wide.jobs} == {
            **{"clean": 1, "left": 2, "right": 3, "join": 4},
        }


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({}, "name what is bad"),
        ({"dataset": "raw"}, "name the bad lots"),
        ({"dataset": "raw", "job": "clean"}, "name what is bad"),
        ({"dataset": "raw", "lot": "a", "start": 1}, "name the bad lots"),
        ({"job": "clean", "lot": "a"}, "a lot needs its dataset"),
        ({"job": "clean", "version": "x"}, "a version needs its lot"),
        ({"dataset": "raw", "lot": "a", "job_version": "x"}, "a job version needs its job"),
        ({"job": "clean", "start": 5, "end": 5}, "ends before it begins"),
    ],
)
def test_contradictory_targets_are_refused(target: dict[str, str], said: str) -> None:
    with pytest.raises(Invalid, match=said):
        ReplayTarget(namespace="ns", **target).check()  # type: ignore[arg-type]


def test_unknown_targets_are_not_found(site: ReplaySite) -> None:
    with pytest.raises(NotFound, match="there is no dataset 'x'"):
        site.plan(dataset="x", lot="a")
    with pytest.raises(NotFound, match="has no lot z"):
        site.plan(dataset="raw", lot="z")
    with pytest.raises(NotFound, match="there is no job 'x'"):
        site.plan(job="x")
    other = site.output("other", "a").version_id
    with pytest.raises(NotFound, match=f"has no version {other} of lot a"):
        site.plan(dataset="raw", lot="a", version=other)
    of_another_lot = site.output("raw", "b").version_id
    with pytest.raises(NotFound, match="of lot a"):
        site.plan(dataset="raw", lot="a", version=of_another_lot)
