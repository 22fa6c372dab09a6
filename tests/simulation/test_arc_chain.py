"""A chain of arcs whose engines and workers are killed ends complete and correct.

Long searches (`make stress`) take their seed from PENSTOCK_SEED, or choose and print one.
"""

import random
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.config import Settings
from penstock.db import open_database
from penstock.plane import Plane
from penstock.states import RunState
from tests.checked import assert_all_holds
from tests.dask_cluster import Cluster
from tests.patience import HANG_SECONDS
from tests.servers import PostgresServer
from tests.simulation import arc_chain
from tests.simulation.arc_chain import Arrivals
from tests.simulation.arc_workforce import EngineProcess
from tests.simulation.lock_tables import LockTables, broken_promises
from tests.simulation.tables import STATEMENTS
from tests.simulation.test_kill import made_up_seed

LOOK_SECONDS = 0.1
CLOCK = "clock"


class Plan(NamedTuple):
    """The size of a run, and its disturbances."""

    lots: int
    engines: int
    kills: int  # of engines, one after so much of the work
    failures: int  # runs of a workload in a hundred; a tenth of that kill their process
    lease_seconds: int = 3


SHORT = Plan(lots=24, engines=2, kills=2, failures=5)
LONG = Plan(lots=2000, engines=2, kills=25, failures=5)


@pytest.fixture
def postgresql_url(postgres: PostgresServer) -> Iterator[str]:
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


class Fire:
    """Engines on one database that watch arrivals, and a thread that kills them."""

    def __init__(
        self,
        plane: Plane,
        folder: Path,
        plan: Plan,
        seed: int,
        arrivals: Arrivals,
        cluster: Cluster | None,
    ) -> None:
        self._plane = plane
        self._arrivals = arrivals
        self._cluster = cluster
        self._folder = folder
        self._plan = plan
        self._chance = random.Random(seed)
        self._engines: list[EngineProcess] = []
        self._hired = 0
        self.killed = self.workers_killed = 0

    def run(self, total: int) -> None:
        """Return when everything is done."""
        try:
            for _ in range(self._plan.engines):
                self._hire()
            self._disturb(total)
            for engine in self._engines:
                engine.stop()
        finally:
            for engine in self._engines:
                engine.kill()

    def _disturb(self, total: int) -> None:
        last, since = -1, time.monotonic()
        while (done := arc_chain.done(self._plane)) < total:
            self._arrivals.go_on(done, self._chance)
            if done > last:
                last, since = done, time.monotonic()
            assert time.monotonic() - since < HANG_SECONDS, self._engines[0].log()[-5000:]
            if self.killed < self._plan.kills and done >= self._next_kill(total):
                self._kill_one()
            if self._cluster is not None:
                self.workers_killed += self._cluster.replace_lost()
            time.sleep(LOOK_SECONDS)

    def _next_kill(self, total: int) -> float:
        return total * (self.killed + 0.5) / (self._plan.kills + 1)

    def _kill_one(self) -> None:
        """A worker of one engine, or of the cluster; and another engine whole."""
        if self._cluster is not None:
            self._cluster.kill_any()
        engine = self._chance.choice(self._engines)
        engine.wait_until_ready()
        for worker in engine.workers()[:1]:
            worker.kill()
            self.workers_killed += 1
        victim = self._chance.choice(self._engines)
        victim.wait_until_ready()
        victim.kill()
        self._engines.remove(victim)
        self.killed += 1
        self._hire()

    def _hire(self) -> None:
        settings = self._plane.settings
        owner = f"engine-{self._hired}"
        self._hired += 1
        engine = EngineProcess(
            self._folder,
            owner,
            database=settings.database,
            objects=settings.objects,
            clock=str(self._folder / CLOCK),
            concurrency=6,
            executor=f"dask://{self._cluster.address}" if self._cluster else "local",
            lease_from_work=self._cluster is not None,
        )
        self._engines.append(engine)


def stress(
    url: str,
    store: str,
    folder: Path,
    plan: Plan,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
    cluster: Cluster | None = None,
) -> None:
    """Let objects arrive for the chain, disturb it, and check everything."""
    monkeypatch.setenv(arc_chain.FAILURES, f"{plan.failures}/{seed}")
    settings = Settings(
        database=url, objects=f"{store}/own", ingest_folder=str(folder / "ingest"), sweep_seconds=1
    )
    fed = arc_chain.lots(plan.lots)
    began = time.monotonic()
    with Plane.open(settings) as plane:
        arc_chain.declare(plane, plan.lease_seconds)
        arrivals = Arrivals(plane, f"{store}/landing", folder / CLOCK, fed)
        fire = Fire(plane, folder, plan, seed, arrivals, cluster)
        fire.run(plan.lots * len(arc_chain.MADE_BY))
        seconds = time.monotonic() - began
        with closing(open_database(url, extra=[STATEMENTS])) as database, database.read() as tx:
            tables = LockTables(tx)
        assert list(broken_promises(tables)) == []
        arc_chain.check(plane, tables, fed)
        assert list(arc_chain.orphans(plane, tables)) == []
        wrong, removed = arc_chain.clean_up(plane, tables, fed)
        assert_all_holds(settings)
    assert fire.killed == plan.kills
    failed = sum(run.state == RunState.FAILED for run in tables.runs.values())
    print(
        f"{plan.lots} lots through 3 arcs in {seconds:.0f} s: {len(tables.runs)} runs, {failed} of "
        f"them failed, {fire.killed} engines and {fire.workers_killed} workers killed beside those "
        f"that killed themselves; {removed} objects were left and {wrong} keys out of date"
    )


def test_disturbed_chain_ends_correctly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite with local files."""
    url = f"sqlite:///{tmp_path / 'penstock.db'}"
    stress(url, str(tmp_path), tmp_path, SHORT, 1, monkeypatch)


def test_disturbed_chain_on_s3_ends_correctly(
    postgresql_url: str, bucket_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stress(postgresql_url, bucket_url, tmp_path, SHORT, 1, monkeypatch)


@pytest.mark.stress
def test_disturbed_chain_of_2000_lots_ends_correctly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'penstock.db'}"
    stress(url, str(tmp_path), tmp_path, LONG, made_up_seed(), monkeypatch)


@pytest.mark.stress
def test_disturbed_chain_on_a_cluster_ends_correctly(
    postgresql_url: str, bucket_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL with an S3 server, and Dask."""
    seed = made_up_seed()
    monkeypatch.setenv(arc_chain.FAILURES, f"{LONG.failures}/{seed}")
    cluster = Cluster(tmp_path / "dask")
    try:
        cluster.wait_for_workers()
        plan = LONG._replace(lease_seconds=10)
        stress(postgresql_url, bucket_url, tmp_path, plan, seed, monkeypatch, cluster)
    finally:
        cluster.stop()
