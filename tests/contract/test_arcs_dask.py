"""Arcs on a real Dask cluster: a scheduler and two worker processes."""

from collections.abc import Callable, Iterator

import pytest

from penstock.arcs.executors import open_executor
from penstock.arcs.executors.dask import DaskCluster
from penstock.arcs.spec import Parts, Retry
from penstock.errors import Unavailable
from penstock.locks.queries.claims import get_lot_job
from penstock.locks.rows import RELEASE_PREFIX, WorkRow
from penstock.states import ArcState
from penstock.store.write_queue import WriteQueue
from tests.acceptance.arc_site import NS, ONCE, ArcSite, arcs
from tests.acceptance.arc_workloads import ran
from tests.dask_cluster import Cluster
from tests.wire import Wire, wired

__all__ = ["arcs"]

pytestmark = [pytest.mark.one_database, pytest.mark.xdist_group("dask")]

LOT = "20230227PT5M287"
BY_DAY = Parts(pattern="day={day}/")
DAYS = {f"{day}.txt": f"day {day}".encode() for day in (1, 2, 3)}
LOUD = {name: data.upper() for name, data in DAYS.items()}


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One cluster for all tests; a test that needs all workers replaces lost ones."""
    running = Cluster(tmp_path_factory.mktemp("cluster") / "dask")
    yield running
    running.stop()


@pytest.fixture
def cluster(arcs: ArcSite, processes: Cluster) -> Iterator[Cluster]:
    """The workers have the environment of the site, with its orders and objects."""
    processes.share_environment()
    yield processes
    arcs.go()  # no worker is left waiting where a test has failed


def feed_days(site: ArcSite) -> None:
    site.feed("raw", LOT, {f"day={name[0]}/{name}": data for name, data in DAYS.items()})


def test_whole_lots_and_parts_run_on_the_workers(arcs: ArcSite, cluster: Cluster) -> None:
    arcs.arc("whole", "raw", "whole")
    arcs.arc("shout", "raw", "loud", parts=BY_DAY)
    feed_days(arcs)
    with open_executor(f"dask://{cluster.address}", 1) as executor:
        assert isinstance(executor, DaskCluster)
        with arcs.engine(executor):
            arcs.until_state("whole", LOT, ArcState.COMPLETE)
            arcs.until_state("shout", LOT, ArcState.COMPLETE)
    assert arcs.content("whole", LOT) == arcs.content("shout", LOT) == LOUD
    pids = {line["pid"] for line in ran(arcs.folder)}
    assert pids <= {worker.pid for worker in cluster.workers}


def test_part_of_a_killed_worker_is_run_by_another(arcs: ArcSite, cluster: Cluster) -> None:
    """The half-written data is not read: the second run has its own location."""
    arcs.arc("shout", "raw", "loud", parts=BY_DAY)
    arcs.order(LOT, "wait", part="day=2")
    feed_days(arcs)
    with open_executor(f"dask://{cluster.address}", 1) as executor, arcs.engine(executor):
        arcs.until(lambda: any(part == "day=2" for _, part in arcs.ran()))
        [held] = [line for line in ran(arcs.folder) if line["part"] == "day=2"]
        cluster.kill(held["pid"])
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    runs = [line for line in ran(arcs.folder) if line["part"] == "day=2"]
    assert len({line["pid"] for line in runs}) == len({line["location"] for line in runs}) == 2
    assert arcs.content("shout", LOT) == LOUD
    assert arcs.lot("shout", LOT).attempts == 1


def test_worker_renews_the_lease(arcs: ArcSite, cluster: Cluster) -> None:
    """The engine does not renew it here, but it is extended."""
    arcs.arc("shout", "raw", "loud", retry=Retry(tries=1, lease_seconds=10))
    arcs.order(LOT, "wait")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    url = arcs.plane.settings.database
    with (
        open_executor(f"dask://{cluster.address}", 1) as executor,
        arcs.engine(executor, database=url) as engine,
    ):
        engine._beat_seconds = lambda: 3600.0  # type: ignore[method-assign]
        arcs.until(arcs.ran)
        first = lease_until(arcs.catalog, LOT)
        arcs.until(lambda: lease_until(arcs.catalog, LOT) > first + 5_000_000)
        arcs.go()
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    assert arcs.ran() == [(LOT, "")]


def lease_until(catalog: WriteQueue, lot: str) -> int:
    with catalog.read() as tx:
        job = get_lot_job(tx, NS, "shout")
        [row] = tx.rows(WorkRow, "lot_work_by_lots", job_id=job.job_id, lots=[lot])
    return row.lease_until


@pytest.fixture
def way(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """A connection to the scheduler whose loss is noticed soon."""
    monkeypatch.setattr("penstock.arcs.engine.outage.REST_SECONDS", 1)
    for name, seconds in {"_CONNECT": 5, "_RECONNECT": 5, "_PROBE": 0, "_ANSWER": 3}.items():
        monkeypatch.setattr(f"penstock.arcs.executors.dask.{name}_SECONDS", seconds)
    with wired(cluster.address) as wire:
        yield wire


@pytest.mark.parametrize("lose", [Wire.cut, Wire.stall])
def test_a_scheduler_that_is_lost_costs_no_try_and_is_found_again(
    arcs: ArcSite, way: Wire, lose: Callable[[Wire], None]
) -> None:
    arcs.arc("shout", "raw", "loud", retry=ONCE)
    arcs.order(LOT, "wait")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with open_executor(f"dask://{way.address}", 1) as executor, arcs.engine(executor):
        arcs.until(arcs.ran)
        lose(way)
        arcs.until(lambda: str(arcs.lot("shout", LOT).error).startswith(RELEASE_PREFIX))
        assert arcs.lot("shout", LOT).attempts == 0
        assert isinstance(executor, DaskCluster)
        if lose is Wire.cut:  # a client that has given up never comes back by itself
            arcs.until(lambda: executor._client.status == "closed")
        arcs.go()
        way.mend()
        arcs.until_state("shout", LOT, ArcState.COMPLETE)
    assert arcs.content("shout", LOT) == {"a.txt": b"HELLO"}
    assert arcs.lot("shout", LOT).attempts == 1


@pytest.mark.parametrize("lose", [Wire.cut, Wire.stall])
def test_an_engine_whose_scheduler_is_lost_stops_and_gives_back_what_it_has(
    arcs: ArcSite, way: Wire, lose: Callable[[Wire], None]
) -> None:
    arcs.arc("shout", "raw", "loud", retry=ONCE)
    arcs.order(LOT, "wait")
    arcs.feed("raw", LOT, {"a.txt": b"hello"})
    with open_executor(f"dask://{way.address}", 1) as executor, arcs.engine(executor) as engine:
        arcs.until(arcs.ran)
        lose(way)
        engine.stop()
        assert engine.running == 0
    assert arcs.lot("shout", LOT).attempts == 0


def test_unreachable_scheduler_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.arcs.executors.dask._CONNECT_SECONDS", 1)
    executor = open_executor("dask://127.0.0.1:1", 1)
    with pytest.raises(Unavailable, match="cannot be reached"), executor:
        pass
