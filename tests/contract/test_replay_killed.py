"""A replay continues after its process was killed at any moment."""

from pathlib import Path

import pytest

from penstock import ids
from penstock.clock import system_clock
from penstock.locks.commands import Sweep
from penstock.operations.backfills.service import Backfills
from penstock.operations.replays.service import Replays
from penstock.operations.replays.target import ReplayTarget
from penstock.states import ReplayState, WorkState
from tests.contract.backfill_site import LEASE_SECONDS, ArcSite, open_arcs, wait_for
from tests.contract.doomed_worker import doomed_worker
from tests.contract.lot_site import hours, open_site

GOOD, BAD = hours(0, 6, "20261113"), hours(0, 16)
REPLAY = "0199aaaa-0000-7000-8000-000000000002"
MAX_RUNNING = 3


@pytest.mark.xdist_group("doomed")
def test_replay_continues_after_kill_9(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lots = [*GOOD, *BAD]
    with open_arcs(database_url, tmp_path, monkeypatch) as arcs:
        arcs.apply("copy", "raw", "up", tries=5, lease_seconds=LEASE_SECONDS)
        arcs.apply("top", "up", "top", tries=5, lease_seconds=LEASE_SECONDS)
        arcs.site.register("raw", lots)
        arcs.site.complete("copy", GOOD)
        arcs.site.now += 1_000_000
        arcs.site.complete("copy", BAD)
        arcs.site.complete("top", lots)
        before = {name: arcs.versions(name, lots) for name in ("up", "top")}
        target = ReplayTarget(namespace="ns", job="copy", start=arcs.site.now)
        replays = Replays(arcs.site.catalog, lambda: arcs.site.now)
        begun = replays.start(REPLAY, "ann", "bad code", target, max_running=MAX_RUNNING)
        assert begun.steps == 2 * len(BAD)
    with open_site(database_url) as site:
        site.now = system_clock()
        again = ArcSite(site, arcs.objects, arcs.broken, Backfills(site.catalog, system_clock))
        replays = Replays(site.catalog, system_clock)
        for least in (5, 15):
            _work_until_killed(again, replays, least, database_url)
        _go_on(again, replays)
        ended = replays.status(REPLAY)
        assert (ended.steps, ended.done, ended.failed, ended.blocked) == (32, 32, 0, 0)
        after = {name: again.versions(name, lots) for name in ("up", "top")}
        changed = {
            (name, lot)
            for name, versions in after.items()
            for lot in lots
            if versions[lot] != before[name][lot]
        }
        assert changed == {(name, lot) for name in ("up", "top") for lot in BAD}
        assert _times_published(again, lots) == [1] * len(GOOD) + [2] * len(BAD)
        # What was made again was made of what was made again.
        assert all(_pinned(again, lot) == after["up"][lot] for lot in BAD)


def _times_published(arcs: ArcSite, lots: list[str]) -> list[int]:
    top = ids.dataset_id("ns", "top")
    with arcs.site.catalog.read() as tx:
        return [len(tx.fetch("lot_manifests_of_lot", dataset_id=top, lot=lot)) for lot in lots]


def _pinned(arcs: ArcSite, lot: str) -> str | None:
    wanted = {"dataset_id": ids.dataset_id("ns", "up"), "job_id": ids.job_id("ns", "top")}
    with arcs.site.catalog.read() as tx:
        [(*_, version_id, _)] = tx.fetch("lot_inputs", **wanted, lots=[lot])
    return str(version_id)


def _work_until_killed(arcs: ArcSite, replays: Replays, least: int, url: str) -> None:
    """Let another process do some steps within its limit, and kill it."""

    def has_done_enough() -> bool:
        status = replays.status(REPLAY)
        # A step whose work is done is under way until somebody notes it, and hinders no other.
        unfinished = [step for step in status.under_way if step.now is not WorkState.DONE]
        assert len(unfinished) <= MAX_RUNNING, unfinished
        return status.done >= least

    with doomed_worker(url, str(arcs.broken.parent / "objects"), str(arcs.broken)):
        wait_for(has_done_enough)


def _go_on(arcs: ArcSite, replays: Replays) -> None:
    def is_done() -> bool:
        arcs.site.now = system_clock()
        arcs.site.do(Sweep())  # the claims of the dead run out
        return replays.step(REPLAY).state is ReplayState.DONE

    with arcs.engine():
        wait_for(is_done)
