"""Backfills repair what can be repaired, a few lots at a time, and leave good lots."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.access import audit
from penstock.arcs.commands import PublishLot
from penstock.clock import HOUR, SECOND
from penstock.errors import Conflict, Invalid, NotFound
from penstock.locks.commands import ClaimLots, ClaimRef, HoldLot, HoldWork, Sweep
from penstock.operations.backfills.commands import StepBackfill
from penstock.operations.backfills.rows import BackfillCounts
from penstock.schema.gaps import GapKind
from penstock.schema.operations import Backfill, BackfillAction, Scope, Standing
from penstock.states import BackfillState, ManifestState
from tests.contract import backfill_site
from tests.contract.backfill_site import ArcSite, open_arcs, wait_for
from tests.contract.lot_site import hours

LOTS = hours(0, 12)
FIRST, LAST = LOTS[0], LOTS[-1]


@pytest.fixture
def arcs(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ArcSite]:
    """copy: raw → up; top: up → top."""
    with open_arcs(database_url, tmp_path, monkeypatch) as site:
        site.apply("top", "up", "top")
        yield site


def start(arcs: ArcSite, arc: str = "copy", **how: object) -> Backfill:
    return arcs.backfills.start("ann", "repair", "ns", arc, FIRST, LAST, **how)  # type: ignore[arg-type]


def finish(arcs: ArcSite, backfill_id: str) -> Backfill:
    """Step a backfill to its end, with an engine running."""
    with arcs.engine():
        wait_for(lambda: arcs.backfills.step(backfill_id).state is BackfillState.DONE)
    return arcs.backfills.status(backfill_id)


def broken_chain(arcs: ArcSite) -> None:
    """Lots of every kind: 0 and 1 are good, the others are not."""
    arcs.site.register("raw", LOTS[:3])
    arcs.break_lots(LOTS[2])
    arcs.run_until_idle()
    arcs.site.now += HOUR
    arcs.site.do(Sweep())
    arcs.run_until_idle()  # the second try of 2: it is held now
    arcs.site.register("raw", [LOTS[3], LOTS[10]])
    arcs.break_lots(LOTS[3])
    arcs.run_until_idle()  # 3 is tried again later, 10 is good
    arcs.site.register("raw", [LOTS[10]])  # 10 is stale
    arcs.site.register("raw", [*LOTS[4:7], LOTS[8], LOTS[9], LOTS[11]])
    arcs.site.do(HoldWork("boss", "odd", "ns", "copy", LOTS[4]))
    arcs.site.claim("copy", LOTS[5], "somebody")
    arcs.site.complete("copy", [LOTS[8]], ManifestState.REMOVED)
    arcs.site.complete("copy", [LOTS[9]], ManifestState.EMPTY)
    arcs.site.complete("copy", [LOTS[11]])
    arcs.site.do(HoldLot("boss", "wrong", "ns", "up", LOTS[11]))


def test_plan_has_condition_and_action_of_each_lot(arcs: ArcSite) -> None:
    broken_chain(arcs)
    found = arcs.backfills.plan("ns", "copy", FIRST, LAST)
    assert [(line.lot[12:], line.now, line.action) for line in found.lines] == [
        ("02", Standing.OUT_OF_TRIES, BackfillAction.RELEASE),
        ("03", Standing.FAILED, BackfillAction.RETRY),
        ("04", Standing.HELD, BackfillAction.LEAVE),
        ("05", Standing.RUNNING, BackfillAction.FOLLOW),
        ("06", Standing.READY, BackfillAction.RUN),
        ("07", Standing.WAITING, BackfillAction.WAIT),
        ("08", Standing.REMOVED, BackfillAction.RERUN),
        ("11", Standing.HELD, BackfillAction.LEAVE),
    ]
    said = {line.lot: line.cause for line in found.lines}
    assert "it is broken" in said[LOTS[2]]
    assert said[LOTS[7]] == f"input ns/raw has no lot {LOTS[7]}"
    assert (found.count, found.totals[Standing.GOOD], found.totals[Standing.STALE]) == (
        12,
        3,
        1,
    )
    assert found.actions[BackfillAction.LEAVE] == 6
    newest = arcs.backfills.plan("ns", "copy", FIRST, LAST, newest_first=True)
    assert newest.lines == found.lines[::-1]
    assert arcs.backfills.last() == []


def test_scope_decides_which_lots_are_resubmitted(arcs: ArcSite) -> None:
    broken_chain(arcs)

    def anew(scope: Scope) -> list[str]:
        lines = arcs.backfills.plan("ns", "copy", FIRST, LAST, scope=scope).lines
        return [line.lot[12:] for line in lines if line.action is BackfillAction.RERUN]

    assert anew(Scope.FAILED_AND_MISSING) == ["08"]
    assert anew(Scope.NOT_GOOD) == ["08", "10"]
    assert anew(Scope.ALL) == ["00", "01", "08", "09", "10"]


def test_backfill_repairs_only_repairable_lots(arcs: ArcSite) -> None:
    broken_chain(arcs)
    arcs.mend(LOTS[2], LOTS[3])
    before = arcs.versions("up", LOTS)
    good = [LOTS[n] for n in (0, 1, 9, 10)]
    ended = finish(arcs, _started_with_the_claim_done(arcs))
    after = arcs.versions("up", LOTS)
    assert arcs.states("copy", LOTS) == [
        *("DONE", "DONE", "DONE", "DONE", "HELD", "DONE", "DONE", "-"),
        *("DONE", "DONE", "DONE", "DONE"),
    ]
    assert {lot: after[lot] for lot in good} == {lot: before[lot] for lot in good}
    assert after[LOTS[8]] != before[LOTS[8]]
    assert after[LOTS[11]] == before[LOTS[11]]
    assert (ended.good, ended.held, ended.waiting) == (4, 2, 1)
    assert (ended.done, ended.failed, ended.going) == (5, 0, 0)
    assert (ended.looked_at, ended.count) == (12, 12)
    found = arcs.site.gaps("up", FIRST, LAST)
    assert [(gap.first[12:], gap.kind) for gap in found.ranges] == [
        ("04", GapKind.HELD),
        ("07", GapKind.MISSING),
        ("09", GapKind.EMPTY),
        ("11", GapKind.HELD),
    ]


def _started_with_the_claim_done(arcs: ArcSite) -> str:
    """Start, set the first lots going, and let the worker of lot 5 end its claim."""
    backfill_id = start(arcs).id
    arcs.backfills.step(backfill_id)
    [held] = [row for row in arcs.work("copy", LOTS) if row.owner == "somebody"]
    assert held.run_id is not None
    arcs.site.do(PublishLot(ClaimRef(held.run_id, held.token), ()))
    return backfill_id


def test_lot_out_of_tries_waits_for_missing_input(
    arcs: ArcSite,
) -> None:
    arcs.apply("copy", "raw", "up", tries=1)
    arcs.site.register("raw", LOTS[:1])
    arcs.break_lots(LOTS[0])
    arcs.run_until_idle()
    arcs.site.do(HoldLot("boss", "wrong", "ns", "raw", LOTS[0]))
    line = arcs.backfills.plan("ns", "copy", FIRST, LAST).lines[0]
    assert (line.now, line.action) == (Standing.OUT_OF_TRIES, BackfillAction.WAIT)
    assert line.cause == f"input ns/raw: lot {LOTS[0]} is HOLD"
    ended = finish(arcs, start(arcs).id)
    assert (ended.waiting, arcs.states("copy", LOTS[:1])) == (12, ["HELD"])


def test_touched_lots_are_in_the_audit_log(arcs: ArcSite) -> None:
    broken_chain(arcs)
    backfill_id = start(arcs, max_running=12).id
    arcs.backfills.step(backfill_id)
    with arcs.site.catalog.read() as tx:
        entries = audit.entries(tx, 100)
    told = {
        (entry.action, entry.target.rpartition(" ")[2])
        for entry in entries
        if backfill_id in entry.detail
    }
    assert told == {
        ("start backfill", "ns/copy"),
        ("work release hold", LOTS[2]),
        ("lot resubmit", LOTS[3]),
        ("lot resubmit", LOTS[8]),
    }
    assert all(entry.who == "ann" for entry in entries if backfill_id in entry.detail)


def test_lot_that_fails_again_is_shown_with_its_error(arcs: ArcSite) -> None:
    arcs.apply("copy", "raw", "up", tries=1)
    arcs.site.register("raw", LOTS[:3])
    arcs.break_lots(LOTS[1])
    arcs.run_until_idle()
    ended = finish(arcs, start(arcs).id)
    assert (ended.state, ended.done, ended.failed) == (BackfillState.DONE, 0, 1)
    assert [(each.lot, "it is broken" in each.error) for each in ended.failures] == [
        (LOTS[1], True)
    ]
    assert (ended.good, ended.waiting) == (2, 9)


def test_backfill_of_the_broken_arc_repairs_its_chain(arcs: ArcSite) -> None:
    arcs.apply("copy", "raw", "up", tries=1)
    arcs.site.register("raw", [lot for lot in LOTS if lot != LOTS[7]])
    arcs.break_lots(LOTS[2], LOTS[5])
    with arcs.engine():
        wait_for(lambda: arcs.states("top", LOTS).count("DONE") == 9)
    held = arcs.site.gaps("top", FIRST, LAST)
    roots = {
        gap.first: [(root.dataset, root.job and root.job.name) for root in gap.cause.roots]
        for gap in held.ranges
        if gap.cause is not None
    }
    assert roots == {
        LOTS[2]: [("up", "copy")],
        LOTS[5]: [("up", "copy")],
        LOTS[7]: [("raw", None)],
    }
    waits = arcs.backfills.plan("ns", "top", FIRST, LAST).lines
    assert [(line.lot, line.action) for line in waits] == [
        (LOTS[n], BackfillAction.WAIT) for n in (2, 5, 7)
    ]
    assert [line.cause for line in waits] == [
        f"input ns/up: lot {LOTS[2]} is HOLD",
        f"input ns/up: lot {LOTS[5]} is HOLD",
        f"input ns/up has no lot {LOTS[7]}",
    ]
    before = arcs.versions("top", LOTS)
    arcs.mend(LOTS[2], LOTS[5])
    ended = start(arcs)
    with arcs.engine():
        wait_for(lambda: arcs.backfills.step(ended.id).state is BackfillState.DONE)
        wait_for(lambda: arcs.states("top", LOTS).count("DONE") == 11)
    after = arcs.versions("top", LOTS)
    assert {lot: after[lot] for lot in before} == before
    assert arcs.site.gaps("top", FIRST, LAST).totals == {GapKind.MISSING: 1}
    assert {row.rank for row in arcs.work("top", [LOTS[2], LOTS[5]])} == {1000}


def test_backfill_sets_at_most_max_running_lots_going(arcs: ArcSite) -> None:
    arcs.site.register("raw", LOTS)
    arcs.site.complete("copy", LOTS)
    backfill_id = start(arcs, scope=Scope.ALL, max_running=2).id
    for _ in range(3):
        assert arcs.backfills.step(backfill_id).going == 2
    assert arcs.states("copy", LOTS)[:3] == ["READY", "READY", "DONE"]
    arcs.site.complete("copy", [LOTS[0]])
    told = arcs.backfills.step(backfill_id)
    assert (told.going, told.done, told.looked_at) == (2, 1, 3)
    assert arcs.states("copy", LOTS)[:4] == ["DONE", "READY", "READY", "DONE"]


def test_engine_runs_at_most_max_running_lots(arcs: ArcSite) -> None:
    arcs.site.register("raw", LOTS)
    arcs.site.complete("copy", LOTS)
    before = arcs.versions("up", LOTS)
    ended = finish(arcs, start(arcs, scope=Scope.ALL, max_running=2).id)
    assert (ended.done, ended.good) == (12, 0)
    assert 1 <= backfill_site.most_at_once[0] <= 2
    after = arcs.versions("up", LOTS)
    assert all(after[lot] != before[lot] for lot in LOTS)


def test_concurrent_steps_do_no_harm(arcs: ArcSite) -> None:
    arcs.site.register("raw", LOTS)
    arcs.site.complete("copy", LOTS)
    backfill_id = start(arcs, scope=Scope.ALL, max_running=3).id
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(arcs.backfills.step, [backfill_id] * 12))
    assert {each.going for each in told} == {3}
    assert arcs.states("copy", LOTS).count("READY") == 3
    late = StepBackfill(backfill_id, 0, 1, (LOTS[9],), BackfillCounts(good=7))
    assert arcs.site.do(late).lot_counts == BackfillCounts()
    assert arcs.states("copy", [LOTS[9]]) == ["DONE"]


@pytest.mark.parametrize("newest_first", [False, True])
def test_lots_are_set_going_in_the_requested_order(arcs: ArcSite, newest_first: bool) -> None:
    arcs.site.register("raw", LOTS)
    arcs.site.complete("copy", LOTS)
    backfill_id = start(arcs, scope=Scope.ALL, max_running=1, newest_first=newest_first).id
    seen = []
    while arcs.backfills.step(backfill_id).state is BackfillState.RUNNING:
        [lot] = [row.lot for row in arcs.work("copy", LOTS) if row.state == "READY"]
        seen.append(lot)
        arcs.site.complete("copy", [lot])
    assert seen == sorted(LOTS, reverse=newest_first)


def test_fresh_lots_come_before_backfills_by_default(arcs: ArcSite) -> None:
    arcs.site.register("raw", LOTS)
    arcs.site.complete("copy", LOTS)
    [fresh] = hours(0, 1, "20261115")

    def next_lot() -> str:
        [claim] = arcs.site.do(ClaimLots("ns", "copy", "w", manager="arcs"))
        return claim.lot

    backfill_id = start(arcs, scope=Scope.ALL, max_running=1).id
    arcs.backfills.step(backfill_id)
    arcs.site.register("raw", [fresh])
    assert (next_lot(), next_lot()) == (fresh, LOTS[0])
    arcs.backfills.cancel(backfill_id, "ann")
    urgent = start(arcs, scope=Scope.ALL, max_running=2, priority=5).id
    arcs.backfills.step(urgent)
    arcs.site.register("raw", hours(1, 2, "20261115"))
    assert next_lot() == LOTS[1]


def test_a_backfill_is_paused_resumed_and_cancelled(arcs: ArcSite) -> None:
    arcs.site.register("raw", LOTS)
    arcs.site.complete("copy", LOTS)
    backfill_id = start(arcs, scope=Scope.ALL, max_running=1).id
    arcs.backfills.step(backfill_id)
    arcs.site.now += 10 * SECOND
    paused = arcs.backfills.pause(backfill_id, "ann", "too loud")
    arcs.site.now += 1000 * SECOND
    arcs.site.complete("copy", [LOTS[0]])
    assert (paused.state, arcs.backfills.step(backfill_id).seconds) == ("paused", 10)
    assert arcs.states("copy", LOTS).count("READY") == 0
    arcs.backfills.resume(backfill_id, "ann")
    arcs.site.now += 10 * SECOND
    told = arcs.backfills.step(backfill_id)
    assert (told.done, told.going, told.seconds, told.lots_per_hour) == (1, 1, 20, 180)
    over = arcs.backfills.cancel(backfill_id, "ann")
    assert (over.state, arcs.backfills.step(backfill_id).looked_at) == ("cancelled", 2)
    with pytest.raises(Conflict, match="cancelled is final"):
        arcs.backfills.resume(backfill_id, "ann")
    assert [each.id for each in arcs.backfills.last()] == [backfill_id]
    assert arcs.backfills.step_all() == 0


def test_lot_whose_input_is_removed_counts_as_waiting(arcs: ArcSite) -> None:
    arcs.site.register("raw", LOTS[:2])
    arcs.site.complete("copy", LOTS[:2])
    backfill_id = start(arcs, scope=Scope.ALL, max_running=2).id
    arcs.backfills.step(backfill_id)
    arcs.site.do(HoldLot("boss", "wrong", "ns", "raw", LOTS[0]))
    arcs.site.complete("copy", [LOTS[1]])
    arcs.backfills.step(backfill_id)
    ended = arcs.backfills.step(backfill_id)
    assert (ended.state, ended.done, ended.waiting) == ("done", 1, 11)


def test_impossible_backfills_are_refused(arcs: ArcSite) -> None:
    with pytest.raises(NotFound, match="no arc ns/nobody"):
        arcs.backfills.plan("ns", "nobody", FIRST, LAST)
    with pytest.raises(NotFound, match="no backfill"):
        arcs.backfills.step("nothing")
    with pytest.raises(Invalid, match="at least one lot"):
        start(arcs, max_running=0)
    with pytest.raises(Invalid, match="end it later"):
        arcs.backfills.start("ann", "", "ns", "copy", LAST, FIRST)
    with pytest.raises(Invalid, match="name the first time"):
        arcs.backfills.start("ann", "", "ns", "copy", None, LAST)


def test_range_comes_from_inputs_if_outputs_have_none(arcs: ArcSite) -> None:
    arcs.site.register("raw", LOTS[3:])
    found = arcs.backfills.plan("ns", "copy", None, LAST)
    assert (found.first, found.last, found.actions) == (LOTS[3], LAST, {BackfillAction.RUN: 9})
