"""Backfills of lots with free ids: named lots, or all that failed or are missing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.arcs.commands import ApplyArc
from penstock.arcs.spec import Arc, Input, Output, Retry, Workload
from penstock.clock import HOUR
from penstock.errors import Invalid, NotFound
from penstock.locks.commands import HoldWork, Sweep
from penstock.operations.backfills import lots as backfill_lots
from penstock.schema.locks import Stale
from penstock.schema.operations import Backfill, BackfillAction, Scope, Standing
from penstock.states import BackfillState, ManifestState
from tests.contract.backfill_site import ArcSite, copy, open_arcs, wait_for

pytestmark = pytest.mark.one_database

GOOD, FAILED, LATER, HELD, FRESH, PARTIAL = "ada", "bob", "cid", "dan", "eve", "fay"
REMOVED = "gus"
HALF = "hal"  # one of the two inputs lacks it
KNOWN = [GOOD, FAILED, LATER, HELD, FRESH, PARTIAL, REMOVED]


@pytest.fixture
def arcs(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ArcSite]:
    """letters: mail and stamps → letters; lots are named by their senders."""
    with open_arcs(database_url, tmp_path, monkeypatch) as site:
        arc = Arc(
            name="letters",
            namespace="ns",
            inputs=(Input(dataset="mail"), Input(dataset="stamps")),
            outputs=(Output(dataset="letters"),),
            workload=Workload(function=f"{copy.__module__}:copy"),
            retry=Retry(tries=2, back_off_seconds=3600),
            stale=Stale.IGNORE,
        )
        site.site.do(ApplyArc("ann", arc))
        yield site


def register(arcs: ArcSite, *lots: str) -> None:
    for dataset in ("mail", "stamps"):
        arcs.site.register(dataset, lots)


def broken(arcs: ArcSite) -> None:
    """Lots of every kind; the first is good."""
    register(arcs, GOOD, FAILED)
    arcs.break_lots(FAILED, LATER)
    arcs.run_until_idle()
    arcs.site.now += HOUR
    arcs.site.do(Sweep())
    arcs.run_until_idle()  # the second try of FAILED: it is out of tries
    register(arcs, LATER, PARTIAL, REMOVED)
    arcs.site.complete("letters", [PARTIAL], ManifestState.PARTIAL)
    arcs.site.complete("letters", [REMOVED], ManifestState.REMOVED)
    arcs.run_until_idle()
    register(arcs, HELD, FRESH)
    arcs.site.do(HoldWork("boss", "odd", "ns", "letters", HELD))
    arcs.site.register("mail", [HALF])


def finish(arcs: ArcSite, backfill_id: str) -> Backfill:
    """Step a backfill to its end, with an engine running."""
    with arcs.engine():
        wait_for(lambda: arcs.backfills.step(backfill_id).state is BackfillState.DONE)
    return arcs.backfills.status(backfill_id)


def test_plan_has_all_failed_and_missing_lots(arcs: ArcSite) -> None:
    broken(arcs)

    plan = arcs.backfills.plan("ns", "letters")

    assert [(line.lot, line.now, line.action) for line in plan.lines] == [
        (FAILED, Standing.OUT_OF_TRIES, BackfillAction.RELEASE),
        (LATER, Standing.FAILED, BackfillAction.RETRY),
        (HELD, Standing.HELD, BackfillAction.LEAVE),
        (FRESH, Standing.READY, BackfillAction.RUN),
        (PARTIAL, Standing.REMOVED, BackfillAction.RERUN),
    ]
    assert (plan.interval, plan.first, plan.last) == (None, FAILED, PARTIAL)
    assert (plan.count, plan.is_cut) == (5, False)
    newest = arcs.backfills.plan("ns", "letters", newest_first=True)
    assert newest.lines == plan.lines[::-1]
    assert arcs.backfills.last() == []


def test_a_backfill_repairs_free_lots_and_leaves_good_ones(arcs: ArcSite) -> None:
    broken(arcs)
    arcs.mend(FAILED, LATER)
    before = arcs.versions("letters", KNOWN)

    backfill_id = arcs.backfills.start("ann", "repair", "ns", "letters").id
    assert arcs.backfills.step(backfill_id).going == 4
    ended = finish(arcs, backfill_id)

    after = arcs.versions("letters", KNOWN)
    states = dict(zip(KNOWN, arcs.states("letters", KNOWN), strict=True))
    assert states == {**dict.fromkeys(KNOWN, "DONE"), HELD: "HELD"}
    assert after[GOOD] == before[GOOD]
    assert after[REMOVED] == before[REMOVED]
    assert after[PARTIAL] != before[PARTIAL]
    assert arcs.states("letters", [HALF]) == ["WAITING"]
    assert (ended.done, ended.held, ended.failed, ended.waiting) == (4, 1, 0, 0)
    assert (ended.looked_at, ended.count) == (5, 5)
    again = arcs.backfills.plan("ns", "letters")
    assert [line.lot for line in again.lines] == [HELD]


def test_named_lots_are_repaired_and_no_others(arcs: ArcSite) -> None:
    broken(arcs)
    arcs.site.complete("letters", [FRESH])  # or the engine would work on it beside the backfill
    arcs.mend(FAILED, LATER)
    before = arcs.versions("letters", KNOWN)

    named = [REMOVED, FAILED, GOOD, FAILED]
    ended = finish(arcs, arcs.backfills.start("ann", "these", "ns", "letters", lots=named).id)

    after = arcs.versions("letters", KNOWN)
    assert [lot for lot in KNOWN if after.get(lot) != before.get(lot)] == [FAILED, REMOVED]
    assert (ended.count, ended.done, ended.good) == (3, 2, 1)
    assert (ended.first, ended.last, ended.interval) == (GOOD, REMOVED, None)


def test_a_named_lot_without_all_inputs_waits(arcs: ArcSite) -> None:
    broken(arcs)

    [line] = arcs.backfills.plan("ns", "letters", lots=[HALF]).lines
    ended = finish(arcs, arcs.backfills.start("ann", "", "ns", "letters", lots=[HALF]).id)

    assert (line.now, line.action) == (Standing.WAITING, BackfillAction.WAIT)
    assert line.cause == f"input ns/stamps has no lot {HALF}"
    assert (ended.waiting, ended.done) == (1, 0)


def test_a_good_named_lot_is_made_again_only_with_all(arcs: ArcSite) -> None:
    register(arcs, GOOD, FRESH)
    arcs.run_until_idle()
    before = arcs.versions("letters", [GOOD, FRESH])

    def run(scope: Scope) -> Backfill:
        begun = arcs.backfills.start("ann", "", "ns", "letters", lots=[GOOD], scope=scope)
        return finish(arcs, begun.id)

    kept = run(Scope.FAILED_AND_MISSING)
    assert (kept.good, kept.done) == (1, 0)
    assert arcs.versions("letters", [GOOD, FRESH]) == before
    made = run(Scope.ALL)
    assert (made.good, made.done) == (0, 1)
    after = arcs.versions("letters", [GOOD, FRESH])
    assert after[GOOD] != before[GOOD]
    assert after[FRESH] == before[FRESH]


def test_interval_lots_can_be_named_too(arcs: ArcSite) -> None:
    lots = ["20261114PT1H00", "20261114PT1H02"]
    arcs.site.register("raw", lots)

    plan = arcs.backfills.plan("ns", "copy", lots=lots[1:])

    assert [(line.lot, line.action) for line in plan.lines] == [(lots[1], BackfillAction.RUN)]


def test_stale_free_lots_are_repaired_on_request(arcs: ArcSite) -> None:
    register(arcs, GOOD, FRESH)
    arcs.run_until_idle()
    arcs.site.now += HOUR
    arcs.site.register("mail", [FRESH])

    assert arcs.backfills.plan("ns", "letters").lines == []
    [line] = arcs.backfills.plan("ns", "letters", scope=Scope.NOT_GOOD).lines
    assert (line.lot, line.now, line.action) == (FRESH, Standing.STALE, BackfillAction.RERUN)
    everything = arcs.backfills.plan("ns", "letters", scope=Scope.ALL)
    assert [line.lot for line in everything.lines] == [GOOD, FRESH]


def test_lot_missing_in_a_new_output_is_missing(arcs: ArcSite) -> None:
    register(arcs, GOOD)
    arcs.run_until_idle()
    arcs.site.wire("letters", ["mail", "stamps"], ["letters", "copies"])

    [line] = arcs.backfills.plan("ns", "letters").lines

    assert (line.lot, line.now, line.action) == (GOOD, Standing.MISSING, BackfillAction.RERUN)


def test_a_list_of_lots_has_a_limit(arcs: ArcSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill_lots, "LISTED_MAX", 3)
    register(arcs, *KNOWN)

    plan = arcs.backfills.plan("ns", "letters")
    begun = arcs.backfills.start("ann", "", "ns", "letters")

    assert (plan.count, plan.is_cut) == (3, True)
    assert (begun.count, begun.is_cut) == (3, True)
    assert arcs.backfills.step(begun.id).going == 3
    arcs.site.complete("letters", KNOWN)
    rest = arcs.backfills.plan("ns", "letters")
    assert (rest.count, rest.is_cut) == (0, False)
    with pytest.raises(Invalid, match="name 3 at most"):
        arcs.backfills.plan("ns", "letters", lots=KNOWN)
    with pytest.raises(Invalid, match="more than 3 lots"):
        arcs.backfills.plan("ns", "letters", scope=Scope.ALL)


def test_wrong_lots_and_ranges_are_refused(arcs: ArcSite) -> None:
    register(arcs, GOOD)
    with pytest.raises(NotFound, match=r"ns/letters has lot boob, moe; `penstock lots list"):
        arcs.backfills.start("ann", "", "ns", "letters", lots=[GOOD, "moe", "boob"])
    with pytest.raises(Invalid, match="named lots or for a range"):
        arcs.backfills.start("ann", "", "ns", "letters", "2026-11-14", lots=[GOOD])
    with pytest.raises(Invalid, match="free ids, so they have no range"):
        arcs.backfills.start("ann", "", "ns", "letters", "2026-11-14", "2026-11-15")
    with pytest.raises(Invalid, match="use no slash"):
        arcs.backfills.start("ann", "", "ns", "letters", lots=["a/b"])
    assert arcs.backfills.last() == []
