"""Replays and held lots: a step that waits for a person fails with the reason."""

from collections.abc import Iterator

import pytest

from penstock.arcs.commands import PublishLot
from penstock.catalog.commands import DatasetName
from penstock.locks.commands import ClaimRef, HoldLot, HoldWork, ResubmitLots
from penstock.lots.manifests import QualityCheck
from penstock.operations.replays.rules import ON_HOLD
from penstock.operations.replays.target import ReplayTarget
from penstock.schema.operations import ReplayAction
from penstock.states import ReplayState
from tests.contract.replay_site import ReplaySite, open_replays

pytestmark = pytest.mark.one_database


@pytest.fixture
def site(database_url: str) -> Iterator[ReplaySite]:
    """Lots a and b went through the diamond."""
    with open_replays(database_url) as opened:
        opened.all_done("a", "b")
        yield opened


def test_held_work_fails_with_a_note(site: ReplaySite) -> None:
    site.site.do(HoldWork("boss", "odd", "ns", "left", "a"))
    site.start(dataset="left", lot="a")
    ended = site.step()
    assert (ended.state, ended.failed, ended.blocked) == (ReplayState.FAILED, 1, 1)
    assert ended.failures[0].note == ON_HOLD


def test_step_on_a_held_lot_fails_and_is_left_in_plans(site: ReplaySite) -> None:
    site.site.do(HoldLot("boss", "wrong", "ns", "left", "a"))
    held = "lot a of ns/left is on hold; release it with `penstock lots release`"
    found = {step.job: (step.action, step.note) for step in site.plan(dataset="raw", lot="a").steps}
    assert found == {
        "clean": (ReplayAction.RERUN, ""),
        "left": (ReplayAction.LEAVE, held),
        "right": (ReplayAction.RERUN, ""),
        "join": (ReplayAction.BLOCKED, held),
    }
    site.start(dataset="raw", lot="a")
    ended = site.finish(ReplayState.FAILED)
    assert (ended.done, ended.failed, ended.blocked) == (2, 1, 1)
    assert [(each.job, each.note) for each in ended.failures] == [("left", held)]


def test_released_lot_is_replayed(site: ReplaySite) -> None:
    site.site.do(HoldLot("boss", "bad", "ns", "clean", "a"))
    site.start(dataset="clean", lot="a")
    ended = site.step()
    assert (ended.state, ended.failed, ended.blocked) == (ReplayState.FAILED, 1, 3)
    assert (
        ended.failures[0].note
        == "lot a of ns/clean is on hold; release it with `penstock lots release`"
    )


def test_work_on_a_held_external_lot_is_left(site: ReplaySite) -> None:
    site.site.do(HoldLot("boss", "bad", "ns", "raw", "a"))
    notes = {step.note for step in site.plan(dataset="raw", lot="a").steps}
    assert notes == {"lot a of ns/raw is on hold; release it with `penstock lots release`"}
    site.start(dataset="raw", lot="a")
    assert site.step().state is ReplayState.FAILED


def test_failed_checks_are_repeated_and_release_downstream(
    site: ReplaySite,
) -> None:
    site.site.do(ResubmitLots("ann", "by hand", "ns", "right", ("a",)))
    claim = site.site.claim("right", "a")
    bad = ((DatasetName("ns", "right"), (QualityCheck("not empty", success=False),)),)
    site.site.do(PublishLot(ClaimRef(claim.id, claim.token), (), bad))
    assert site.output("right", "a").status == "HOLD"
    assert [step.action for step in site.plan(dataset="right", lot="a").steps] == [
        ReplayAction.RERUN
    ]
    site.start(dataset="right", lot="a")
    assert site.finish().done == 1


def test_step_fails_if_its_input_fails_checks(site: ReplaySite) -> None:
    site.start(dataset="right", lot="a")
    site.step()
    claim = site.site.claim("right", "a")
    bad = ((DatasetName("ns", "right"), (QualityCheck("not empty", success=False),)),)
    site.site.do(PublishLot(ClaimRef(claim.id, claim.token), (), bad))
    ended = site.step()
    assert (ended.state, ended.done, ended.failed) == (ReplayState.FAILED, 1, 1)
    assert (
        ended.failures[0].note
        == "lot a of ns/right is on hold; release it with `penstock lots release`"
    )


def test_second_replay_completes_a_failed_one(
    site: ReplaySite,
) -> None:
    bad = site.output("clean", "a").version_id
    site.start(dataset="clean", lot="a")
    site.step()
    site.done("clean", "a")
    site.step()
    site.done("right", "a")
    for _ in range(2):
        site.site.fail("left", "a")
    assert site.step().state is ReplayState.FAILED
    found = site.plan(dataset="clean", lot="a", version=bad)
    assert [(step.job, step.action, step.note) for step in found.steps] == [
        ("left", ReplayAction.RERUN, "is out of tries: disk full"),
        ("join", ReplayAction.RERUN, ""),
    ]
    again = "0199aaaa-0000-7000-8000-000000000008"
    target = ReplayTarget(namespace="ns", dataset="clean", lot="a", version=bad)
    site.replays.start(again, "ann", "mended", target)
    for job in ("left", "join"):
        site.replays.step(again)
        site.done(job, "a")
    assert site.replays.step(again).state is ReplayState.DONE
