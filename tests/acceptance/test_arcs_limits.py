"""Engines claim within the limits of arcs, datasets and engines, as declared at that time."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from penstock.arcs.engine.scheduler import Engine
from penstock.arcs.engine.worker import ArcWorker
from penstock.arcs.executors.local import LocalThreads
from penstock.arcs.rows import ArcRow
from penstock.arcs.spec import Input, Output
from penstock.catalog.commands import DeleteJob, RestoreJob
from penstock.states import ArcState
from tests.acceptance.arc_site import NS, ArcSite

LOTS = tuple(str(number) for number in range(12))


class Most:
    """The maximum of lots that ran at once, for each arc and in all engines."""

    def __init__(self) -> None:
        self.by_arc: Counter[str] = Counter()
        self.in_all = 0

    def look(self, arcs: ArcSite) -> None:
        """Count in one reading."""
        with arcs.catalog.read() as tx:
            running = Counter(job for job, _ in tx.fetch("running_lots"))
        self.by_arc |= running
        self.in_all = max(self.in_all, running.total())


@contextmanager
def engines(arcs: ArcSite, count: int, concurrency: int = 4) -> Iterator[Most]:
    """Run several engines, and count running lots all the time."""
    most, over = Most(), threading.Event()

    def watch() -> None:
        while not over.wait(0.002):
            most.look(arcs)

    with ExitStack() as stack:
        for number in range(count):
            stack.enter_context(arcs.engine(owner=f"engine {number}", concurrency=concurrency))
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield most
        finally:
            over.set()
            watcher.join()


def run_all(arcs: ArcSite, *names: str) -> None:
    """Wait until all lots of these arcs are complete."""
    for name in names:
        for lot in LOTS:
            arcs.until_state(name, lot, ArcState.COMPLETE)


def test_the_limit_of_an_arc_holds_for_all_engines_together(arcs: ArcSite) -> None:
    arcs.arc("shout", "raw", "loud", running_max=3)
    for lot in LOTS:
        arcs.order(lot, "wait")
        arcs.feed("raw", lot, {"a.txt": lot.encode()})
    with engines(arcs, 3) as most:
        arcs.until(lambda: len(arcs.ran()) == 3)
        arcs.go()
        run_all(arcs, "shout")
    assert most.in_all == 3


def test_the_limit_of_a_dataset_holds_for_all_arcs_together(arcs: ArcSite) -> None:
    limited = (Input(dataset="raw", running_max=2),)
    arcs.arc("one", limited, "first", running_max=10)
    arcs.arc("two", limited, "second", running_max=10)
    for lot in LOTS:
        arcs.order(lot, "wait", "wait")
        arcs.feed("raw", lot, {"a.txt": lot.encode()})
    with engines(arcs, 2) as most:
        arcs.until(lambda: len(arcs.ran()) == 2)
        arcs.go()
        run_all(arcs, "one", "two")
    assert most.in_all == 2


def test_the_limit_of_an_engine_holds_for_all_its_arcs(arcs: ArcSite) -> None:
    for name in ("one", "two"):
        arcs.arc(name, "raw", f"of {name}", running_max=10)
    for lot in LOTS:
        arcs.order(lot, "wait", "wait")
        arcs.feed("raw", lot, {"a.txt": lot.encode()})
    with engines(arcs, 2, concurrency=2) as most:
        arcs.until(lambda: len(arcs.ran()) == 4)
        arcs.go()
        run_all(arcs, "one", "two")
    assert most.in_all == 4


def test_lot_runs_as_declared_at_its_claim(arcs: ArcSite) -> None:
    """The arc is declared again after the engine has read the arcs."""
    arcs.arc("shout", "raw", "loud")
    arcs.feed("raw", LOTS[0], {"1.txt": b"1"})

    def declared_anew(row: ArcRow) -> bool:
        arcs.arc("shout", "raw", "loud", outputs=(Output(dataset="louder"),))
        return True

    with arcs.engine(arcs=declared_anew):
        arcs.until_state("shout", LOTS[0], ArcState.COMPLETE)
    assert arcs.data("louder", LOTS[0]) == ["1.txt"]
    assert arcs.data("loud", LOTS[0]) == []


def test_arc_with_a_deleted_job_stops_no_other(arcs: ArcSite) -> None:
    for name in ("loud", "other"):
        arcs.arc(name, "raw", f"{name}_out")
    arcs.do(DeleteJob(NS, "loud", "ann"))
    arcs.feed("raw", "1", {"x.txt": b"x"})
    with arcs.engine() as engine:
        arcs.until_state("other", "1", ArcState.COMPLETE)
        station = station_of(arcs)
        assert station.is_idle()
        arcs.do(RestoreJob(NS, "loud", "ann"))
        assert not station.is_idle()
        engine.wake()
        arcs.until_state("loud", "1", ArcState.COMPLETE)


def test_refused_arc_stops_no_other(arcs: ArcSite, caplog: pytest.LogCaptureFixture) -> None:
    arcs.arc("loud", "raw", "loud_out")
    arcs.arc("other", "raw", "other_out")
    arcs.feed("raw", "1", {"x.txt": b"x"})

    def delete(row: ArcRow) -> bool:
        """Somebody deletes the job after the arcs were read."""
        arcs.do(DeleteJob(NS, "loud", "ann"))
        return True

    with LocalThreads(1) as threads:
        clock = arcs.plane.clock
        engine = Engine(arcs.catalog, arcs.objects, threads, clock, owner="engine", arcs=delete)
        try:
            assert engine.look() == 1
            arcs.until_state("other", "1", ArcState.COMPLETE)
        finally:
            engine.stop()
    assert "no lot of ns/loud is claimed: there is no job" in caplog.text


def station_of(arcs: ArcSite) -> ArcWorker:
    """Return a worker that does not run."""
    plane = arcs.plane
    told = (arcs.catalog, plane.database, arcs.objects, LocalThreads(1), plane.clock)
    return ArcWorker(*told, owner="nobody", concurrency=1)
