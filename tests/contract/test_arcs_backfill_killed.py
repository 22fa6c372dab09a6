"""A backfill continues after its process was killed at any moment."""

from pathlib import Path

import pytest

from penstock import ids
from penstock.clock import system_clock
from penstock.locks.commands import Sweep
from penstock.operations.backfills.service import Backfills
from penstock.schema.operations import Scope
from penstock.states import BackfillState
from tests.contract.backfill_site import LEASE_SECONDS, ArcSite, open_arcs, wait_for
from tests.contract.doomed_worker import doomed_worker
from tests.contract.lot_site import hours, open_site

GOOD, REDONE = hours(0, 12, "20261113"), [*hours(12, 24, "20261113"), *hours(0, 24)]


@pytest.mark.xdist_group("doomed")
def test_backfill_continues_after_kill_9(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_arcs(database_url, tmp_path, monkeypatch) as arcs:
        arcs.apply("copy", "raw", "up", tries=5, lease_seconds=LEASE_SECONDS)
        arcs.site.register("raw", [*GOOD, *REDONE])
        arcs.site.complete("copy", [*GOOD, *REDONE])
        before = arcs.versions("up", [*GOOD, *REDONE])
        backfill_id = arcs.backfills.start(
            "ann", "new code", "ns", "copy", REDONE[0], REDONE[-1], scope=Scope.ALL, max_running=3
        ).id
    with open_site(database_url) as site:
        site.now = system_clock()
        again = ArcSite(site, arcs.objects, arcs.broken, Backfills(site.catalog, system_clock))
        for least in (5, 15):
            _work_until_killed(again, backfill_id, least, database_url)
        _go_on(again, backfill_id)
        ended = again.backfills.status(backfill_id)
        assert (ended.done, ended.failed, ended.good, ended.going) == (len(REDONE), 0, 0, 0)
        after = again.versions("up", [*GOOD, *REDONE])
        assert [after[lot] for lot in GOOD] == [before[lot] for lot in GOOD]
        assert all(after[lot] != before[lot] for lot in REDONE)
        up = ids.dataset_id("ns", "up")
        with site.catalog.read() as tx:
            published = [
                len(tx.fetch("lot_manifests_of_lot", dataset_id=up, lot=lot)) for lot in REDONE
            ]
        assert published == [2] * len(REDONE)


def _work_until_killed(arcs: ArcSite, backfill_id: str, least: int, url: str) -> None:
    """Let another process complete some lots, and kill it."""
    with doomed_worker(url, str(arcs.broken.parent / "objects"), str(arcs.broken)):
        wait_for(lambda: arcs.backfills.status(backfill_id).done >= least)
        assert arcs.backfills.status(backfill_id).going <= 3


def _go_on(arcs: ArcSite, backfill_id: str) -> None:
    def is_done() -> bool:
        arcs.site.now = system_clock()
        arcs.site.do(Sweep())  # the claims of the dead run out
        return arcs.backfills.step(backfill_id).state is BackfillState.DONE

    with arcs.engine():
        wait_for(is_done)
