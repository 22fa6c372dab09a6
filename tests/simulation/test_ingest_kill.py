"""Ingest workers killed at random and at every step: every file is ingested exactly once.

Long searches (`make stress`) use the seed in PENSTOCK_SEED, or draw one and print it.
"""

import random
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.servers import PostgresServer, ZookeeperServer
from tests.simulation.ingest_promises import check_promises
from tests.simulation.ingest_site import Site, open_site, site_settings
from tests.simulation.ingest_workforce import Nursery, Plan, Watch, Workforce
from tests.simulation.test_kill import random_seed

SHORT = Plan(workers=2, files=14, crashes=4, every=30)
LONG = Plan(workers=4, files=40, crashes=300, every=60)
SHORT_STEPS = (4, 19, 41, 66, 90, 120)
LANES = 4  # steps tried at the same time, each at a site of its own
UNREACHED_MAX = 3  # steps after the last one reached

Settings = dict[str, Any]


class Backend:
    """Makes empty sites on one kind of queue."""

    def __init__(self, kind: str, request: pytest.FixtureRequest) -> None:
        self._kind = kind
        self._request = request

    @property
    def workers(self) -> int:
        """Return the number of workers: on SQLite they wait for each other."""
        return 2 if self._kind == "sqlite" else 4

    @contextmanager
    def settings(self, folder: Path, session_seconds: int = 2) -> Iterator[Settings]:
        """Return the settings of an empty site in an empty folder."""
        with ExitStack() as stack:
            database, queue = f"sqlite:///{folder / 'penstock.db'}", "database"
            if "postgresql" in self._kind:
                postgres: PostgresServer = self._request.getfixturevalue("postgres")
                database = postgres.create_database()
                stack.callback(postgres.drop_database, database)
            if "zookeeper" in self._kind:
                address: str = self._request.getfixturevalue("zookeeper")
                queue = f"zookeeper://{address}/kill-{uuid.uuid4().hex[:16]}"
            yield site_settings(folder, database, queue, session_seconds)


@pytest.fixture(params=["sqlite", "postgresql", "zookeeper", "zookeeper+postgresql"])
def backend(request: pytest.FixtureRequest) -> Backend:
    return Backend(request.param, request)


quickly = pytest.mark.parametrize("backend", ["sqlite", "zookeeper+postgresql"], indirect=True)


def stress(
    settings: Settings,
    folder: Path,
    plan: Plan,
    seed: int,
    outage: Callable[[], None] | None = None,
) -> None:
    """Work while processes are killed, then check the result."""
    with open_site(settings, callback=True) as site, Nursery(folder, settings) as nursery:
        workforce = Workforce(site, nursery, plan, seed, outage)
        workforce.run()
        nursery.check_logs()
        jobs = check_promises(site, somebody_slept=workforce.stopped > 0)
        assert (workforce.crashes, workforce.outages) == (plan.crashes, plan.outages)
        print(
            f"{workforce.killed} workers killed, {workforce.stopped} stopped for a while, "
            f"{workforce.outages} outages, {len(site.batches)} batches, {len(jobs)} jobs, "
            f"{len(site.delivered)} callbacks"
        )


@quickly
def test_workers_killed_at_random_ingest_everything_once(backend: Backend, tmp_path: Path) -> None:
    with backend.settings(tmp_path) as settings:
        stress(settings, tmp_path, SHORT._replace(workers=backend.workers), seed=1)


@pytest.mark.stress
def test_workers_killed_hundreds_of_times_ingest_everything_once(
    backend: Backend, tmp_path: Path
) -> None:
    with backend.settings(tmp_path) as settings:
        stress(settings, tmp_path, LONG._replace(workers=backend.workers), seed=random_seed())


@pytest.mark.stress
def test_workers_that_outsleep_their_locks_do_no_harm(backend: Backend, tmp_path: Path) -> None:
    plan = LONG._replace(workers=backend.workers, crashes=60, stopped_share=0.7)
    with backend.settings(tmp_path, session_seconds=1) as settings:
        stress(settings, tmp_path, plan, seed=random_seed())


@pytest.fixture
def own_folder() -> Iterator[Path]:
    """A folder that the user of a server can enter."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-kill-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def own_zookeeper(own_folder: Path) -> Iterator[ZookeeperServer]:
    """A ZooKeeper of this test's own, to be killed."""
    server = ZookeeperServer.start(own_folder)
    yield server
    server.stop()


@pytest.fixture
def own_postgres(own_folder: Path) -> Iterator[PostgresServer]:
    """A PostgreSQL of this test's own, to be killed."""
    server = PostgresServer.start(own_folder)
    yield server
    server.stop()


def kill_zookeeper(server: ZookeeperServer, folder: Path, plan: Plan, seed: int) -> None:
    database = f"sqlite:///{folder / 'penstock.db'}"
    settings = site_settings(folder, database, f"zookeeper://{server.address}/kill", 2)

    def outage() -> None:
        server.kill()
        server.restart()

    stress(settings, folder, plan, seed, outage)


def kill_postgres(server: PostgresServer, folder: Path, plan: Plan, seed: int) -> None:
    settings = site_settings(folder, server.create_database(), "database", 2)

    def outage() -> None:
        server.kill()
        server.restart()

    stress(settings, folder, plan, seed, outage)


def test_zookeeper_killed_in_the_middle_loses_nothing(
    own_zookeeper: ZookeeperServer, tmp_path: Path
) -> None:
    kill_zookeeper(own_zookeeper, tmp_path, SHORT._replace(workers=4, outages=1), seed=2)


def test_postgresql_killed_in_the_middle_loses_nothing(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    kill_postgres(own_postgres, tmp_path, SHORT._replace(workers=4, outages=1), seed=3)


@pytest.mark.stress
def test_zookeeper_killed_many_times_loses_nothing(
    own_zookeeper: ZookeeperServer, tmp_path: Path
) -> None:
    plan = LONG._replace(crashes=60, outages=20)
    kill_zookeeper(own_zookeeper, tmp_path, plan, seed=random_seed())


@pytest.mark.stress
def test_postgresql_killed_many_times_loses_nothing(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    plan = LONG._replace(crashes=100, outages=40)
    kill_postgres(own_postgres, tmp_path, plan, seed=random_seed())


def crash_at(site: Site, nursery: Nursery, step: int) -> bool:
    """Make a worker kill itself at a step and another one finish.

    Return False if the work ended first.
    """
    site.submit_files(3)
    watch = Watch(site)
    crashing = nursery.start(concurrency=1, crash_at=step)
    while crashing.is_alive and site.open_batches:
        watch.look([])
    has_crashed = not crashing.is_alive
    crashing.kill()
    fresh = nursery.start(concurrency=1)
    while site.open_batches:
        watch.look([fresh])
    fresh.kill()
    return has_crashed


def crash_at_each(settings: Settings, folder: Path, steps: range) -> int:
    """Crash at one step after the other until the work ends first; return the number of crashes."""
    with open_site(settings, callback=True) as site, Nursery(folder, settings) as nursery:
        crashes = unreached = 0
        for step in steps:
            has_crashed = crash_at(site, nursery, step)
            crashes += has_crashed
            unreached = 0 if has_crashed else unreached + 1
            if unreached == UNREACHED_MAX:
                break
        nursery.check_logs()
        check_promises(site)
        return crashes


@quickly
def test_workers_that_crash_at_some_steps_are_replaced(backend: Backend, tmp_path: Path) -> None:
    with (
        backend.settings(tmp_path, session_seconds=1) as settings,
        open_site(settings, callback=True) as site,
        Nursery(tmp_path, settings) as nursery,
    ):
        site.submit_files(6)
        site.submit_container()
        watch = Watch(site)
        chance = random.Random(4)
        crashing = [
            nursery.start(concurrency=chance.choice([1, 2]), crash_at=step) for step in SHORT_STEPS
        ]
        while any(worker.is_alive for worker in crashing) and site.open_batches:
            watch.look([])
        fresh = nursery.start()
        while site.open_batches:
            watch.look([fresh])
        for worker in (*crashing, fresh):
            worker.kill()
        nursery.check_logs()
        check_promises(site)
        assert any("killed at step" in worker.log() for worker in crashing)


@pytest.mark.stress
def test_a_worker_that_crashes_at_any_step_is_replaced(backend: Backend, tmp_path: Path) -> None:
    with ExitStack() as stack, ThreadPoolExecutor(LANES) as pool:
        lanes = []
        for lane in range(LANES):
            folder = tmp_path / str(lane)
            folder.mkdir()
            settings = stack.enter_context(backend.settings(folder, session_seconds=1))
            steps = range(1 + lane, 10_000, LANES)
            lanes.append(pool.submit(crash_at_each, settings, folder, steps))
        crashes = sum(lane.result() for lane in lanes)
    print(f"{crashes} steps, each the last of a worker")
    assert crashes > 100
