"""A backfill sets the next lot going when one ends, without waiting for a tick."""

from penstock.arcs.engine.worker import ArcWorker
from penstock.arcs.executors.local import LocalThreads
from penstock.arcs.spec import Output
from penstock.clock import HOUR, parse_time
from penstock.operations.backfills.service import Backfills
from penstock.schema.lot_ids import Interval
from penstock.schema.operations import Scope
from penstock.states import ArcState, BackfillState
from tests.acceptance.arc_site import NS, ArcSite

NEVER = 10.0**6
START = parse_time("2026-01-01T00:00:00Z")
LOTS = tuple(Interval.HOUR.lots(START, START + 5 * HOUR))


def test_backfill_refills_when_a_lot_ends(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud", outputs=(Output(dataset="loud", interval="PT1H"),))
    for lot in LOTS:
        arcs.feed("raw", lot, {"a.txt": b"hello"})
    with arcs.engine():
        for lot in LOTS:
            arcs.until_state("shout", lot, ArcState.COMPLETE)
    plane = arcs.plane
    backfills = Backfills(plane.catalog, plane.clock)
    started = backfills.start(
        "ann", "again", NS, "shout", LOTS[0], LOTS[-1], scope=Scope.ALL, max_running=1
    )
    with (
        LocalThreads(2) as executor,
        ArcWorker(
            plane.catalog, plane.database, arcs.objects, executor, plane.clock,
            owner="engine", concurrency=2, step_seconds=NEVER, steppers=(backfills.step_all,),
        ) as station,
    ):  # fmt: skip
        station.is_idle()  # which takes the first step

        arcs.until(lambda: backfills.status(started.id).state is BackfillState.DONE)

    assert sorted(lot for lot, _ in arcs.ran()) == sorted(LOTS * 2)
