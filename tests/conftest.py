"""Databases and servers for tests:

one SQLite file per test; shared PostgreSQL, ZooKeeper and S3.
"""

import gc
import os
import shutil
import signal
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import settings

from tests.databases import Pool, migrated_database, sqlite_database
from tests.object_server import ObjectServer, environment, new_bucket
from tests.one_database import keep_one
from tests.running import guarded_server, server
from tests.servers import PostgresServer, ServerError, ZookeeperServer
from tests.wire import Wire, wired

__all__ = ["guarded_server", "server"]

# Without the cached bytecode every server and worker would compile all modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A background job of a shell ignores Ctrl-C, and its child processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Use a memory file system if it has space: each commit waits for its disk.
_MEMORY, _ROOM_BYTES = Path("/dev/shm"), 4 << 30
QUICK = "/tmp"
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM_BYTES:
    QUICK = str(_MEMORY)
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", QUICK)

# Pytest keeps thousands of collected tests. Scanning them takes a tenth of the run's time.
_GC_THRESHOLD = (50_000, 20, 100)

# Servers on PostgreSQL store the key of their secrets in the data folder. Keep it out of the
# developer's own folder.
_DATA = tempfile.TemporaryDirectory(prefix="penstock-data-", dir=QUICK)
os.environ["XDG_DATA_HOME"] = _DATA.name

# A slow machine is not a failure, and every run uses the same examples.
settings.register_profile("penstock", deadline=None, derandomize=True)
settings.load_profile("penstock")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --both, which runs every test on both databases."""
    parser.addoption("--both", action="store_true", help="run every test on both databases")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks that one_database.py reads."""
    config.addinivalue_line("markers", "both_databases: run on both databases")
    config.addinivalue_line("markers", "one_database: run on one database, chosen by the name")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one database variant of each test above the database layer."""
    if not config.getoption("both"):
        keep_one(config, items)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fail if groups are not kept together: every worker would fill every database."""
    if getattr(session.config.option, "loadgroup", False):
        grouped = [item for item in session.items if item.get_closest_marker("xdist_group")]
        if any("@" not in item.nodeid for item in grouped):
            raise pytest.UsageError("this pytest-xdist does not group tests with this pytest")
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLD)


_SERVER = pytest.StashKey[PostgresServer]()


def _shared_server(config: pytest.Config) -> PostgresServer:
    """Start a server at the first call and stop it when the run ends for any reason."""
    if _SERVER not in config.stash:
        folder = Path(tempfile.mkdtemp(prefix="penstock-pg-", dir=QUICK))
        config.add_cleanup(lambda: shutil.rmtree(folder))
        server = PostgresServer.start(folder, fsync="off", full_page_writes="off")
        config.add_cleanup(server.stop)
        config.stash[_SERVER] = server
    return config.stash[_SERVER]


class _Server(Protocol):
    """A server that tests may need."""

    @property
    def address(self) -> str: ...

    def stop(self) -> None: ...


class _OnDemand:
    """A server of the run that starts when a test first needs it."""

    def __init__(self, config: pytest.Config, start: Callable[[Path], _Server]) -> None:
        self._config = config
        self._start = start
        self._folder = Path(tempfile.mkdtemp(prefix="penstock-server-", dir=QUICK))
        self._turn = threading.Lock()
        self._address: str | None = None
        config.add_cleanup(lambda: shutil.rmtree(self._folder))
        self.door = str(self._folder / "door")

    def address(self) -> str:
        """Return the server's host and port. Start it at the first call."""
        with self._turn:
            if self._address is None:
                server = self._start(self._folder)
                self._config.add_cleanup(server.stop)
                self._address = server.address
            return self._address

    def answer_workers(self) -> None:
        """Listen for pytest-xdist workers that ask for the address."""
        listener = Listener(self.door, "AF_UNIX")
        self._config.add_cleanup(listener.close)
        threading.Thread(target=self._answer, args=(listener,), daemon=True).start()

    def _answer(self, listener: Listener) -> None:
        while True:
            with listener.accept() as worker:
                try:
                    worker.send(self.address())
                except ServerError as error:
                    worker.send(error)


_STARTS: dict[str, Callable[[Path], _Server]] = {
    "zookeeper": ZookeeperServer.start,
    "objects": ObjectServer.start,
}
_ON_DEMAND = pytest.StashKey[dict[str, _OnDemand]]()


def _on_demand(config: pytest.Config) -> dict[str, _OnDemand]:
    """Return the servers that this run may need, by name."""
    if _ON_DEMAND not in config.stash:
        config.stash[_ON_DEMAND] = {
            name: _OnDemand(config, start) for name, start in _STARTS.items()
        }
    return config.stash[_ON_DEMAND]


def _address(config: pytest.Config, name: str) -> str:
    """Return the host and port of a server of this run."""
    workerinput: dict[str, str] | None = getattr(config, "workerinput", None)
    if workerinput is None:
        return _on_demand(config)[name].address()
    with Client(workerinput[f"{name}_door"], "AF_UNIX") as controller:
        answer: str | ServerError = controller.recv()
    if isinstance(answer, ServerError):
        raise answer
    return answer


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the addresses of the controller's servers to a pytest-xdist worker."""
    node.workerinput["postgres_folder"] = str(_shared_server(node.config).folder)
    is_first = _ON_DEMAND not in node.config.stash
    for name, on_demand in _on_demand(node.config).items():
        if is_first:
            on_demand.answer_workers()
        node.workerinput[f"{name}_door"] = on_demand.door


@pytest.fixture(scope="session")
def postgres(pytestconfig: pytest.Config) -> PostgresServer:
    """The PostgreSQL of this run, shared by all tests: create databases, do not stop it."""
    workerinput: dict[str, str] | None = getattr(pytestconfig, "workerinput", None)
    if workerinput is not None:
        return PostgresServer(Path(workerinput["postgres_folder"]))
    return _shared_server(pytestconfig)


@pytest.fixture(scope="session")
def postgres_pool(postgres: PostgresServer) -> Iterator[Pool]:
    """Databases that are emptied between tests."""
    pool = Pool(postgres)
    yield pool
    pool.close()


@pytest.fixture
def postgres_url(postgres_pool: Pool) -> Iterator[str]:
    """The URL of a migrated PostgreSQL database for one test."""
    url = postgres_pool.take()
    yield url
    postgres_pool.give_back(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a migrated database of each kind for one test."""
    if request.param == "sqlite":
        return sqlite_database(tmp_path / "penstock.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def blank_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a new, unopened database of each kind for one test."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'penstock.db'}"
        return
    postgres: PostgresServer = request.getfixturevalue("postgres")
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def own_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a migrated database of each kind that the test may change in any way."""
    with migrated_database(request.param, request, tmp_path) as url:
        yield url


@pytest.fixture(scope="session")
def zookeeper(pytestconfig: pytest.Config) -> str:
    """Host and port of this run's ZooKeeper, shared by all tests: do not stop it."""
    return _address(pytestconfig, "zookeeper")


@pytest.fixture(scope="session")
def object_server(pytestconfig: pytest.Config) -> str:
    """Host and port of this run's S3 server, shared by all tests: create your own buckets."""
    return _address(pytestconfig, "objects")


@pytest.fixture
def bucket_url(object_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty bucket that this process and its children can use."""
    for name, value in environment(object_server).items():
        monkeypatch.setenv(name, value)
    return new_bucket(object_server)


@pytest.fixture
def wire(object_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """A proxy to the S3 server for this process and its children. Clients do not retry there."""
    monkeypatch.setattr("penstock.objects.store._RETRIES", 0)
    with wired(object_server) as wire:
        for name, value in environment(wire.address).items():
            monkeypatch.setenv(name, value)
        yield wire


@pytest.fixture
def zookeeper_url(zookeeper: str) -> str:
    """The URL of an empty path in the run's ZooKeeper for one test."""
    return f"zookeeper://{zookeeper}/test-{uuid.uuid4().hex[:16]}"
