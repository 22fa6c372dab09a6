"""What tests run on: a SQLite file each, one PostgreSQL and one ZooKeeper for the whole run."""

import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterator
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.servers import PostgresServer, ServerError, ZookeeperServer

# A slow machine is no failure, and every run tries the same examples.
settings.register_profile("penstock", deadline=None, derandomize=True)
settings.load_profile("penstock")

_SERVER = pytest.StashKey[PostgresServer]()


def _shared_server(config: pytest.Config) -> PostgresServer:
    """The run's server, started at the first call and stopped when the run ends in any way."""
    if _SERVER not in config.stash:
        folder = Path(tempfile.mkdtemp(prefix="penstock-pg-", dir="/tmp"))
        config.add_cleanup(lambda: shutil.rmtree(folder))
        server = PostgresServer.start(folder)
        config.add_cleanup(server.stop)
        config.stash[_SERVER] = server
    return config.stash[_SERVER]


class _ZookeeperOnDemand:
    """The run's ZooKeeper: nobody waits for it unless a test of the run asks for it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._folder = Path(tempfile.mkdtemp(prefix="penstock-zk-", dir="/tmp"))
        self._turn = threading.Lock()
        self._address: str | None = None
        config.add_cleanup(lambda: shutil.rmtree(self._folder))
        self.door = str(self._folder / "door")

    def address(self) -> str:
        """Host and port of the server, which is started at the first call."""
        with self._turn:
            if self._address is None:
                server = ZookeeperServer.start(self._folder)
                self._config.add_cleanup(server.stop)
                self._address = server.address
            return self._address

    def answer_workers(self) -> None:
        """Let the workers of pytest-xdist ask at the door for the address."""
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


_ZOOKEEPER = pytest.StashKey[_ZookeeperOnDemand]()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist where the controller's servers are."""
    node.workerinput["postgres_folder"] = str(_shared_server(node.config).folder)
    stash = node.config.stash
    if _ZOOKEEPER not in stash:
        stash[_ZOOKEEPER] = _ZookeeperOnDemand(node.config)
        stash[_ZOOKEEPER].answer_workers()
    node.workerinput["zookeeper_door"] = stash[_ZOOKEEPER].door


@pytest.fixture(scope="session")
def postgres(pytestconfig: pytest.Config) -> PostgresServer:
    """The PostgreSQL of this test run, shared by all tests: make databases, do not stop it."""
    workerinput: dict[str, str] | None = getattr(pytestconfig, "workerinput", None)
    if workerinput is not None:
        return PostgresServer(Path(workerinput["postgres_folder"]))
    return _shared_server(pytestconfig)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database of each kind, for one test."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'penstock.db'}"
        return
    postgres: PostgresServer = request.getfixturevalue("postgres")
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture(scope="session")
def zookeeper(pytestconfig: pytest.Config) -> str:
    """Host and port of this run's ZooKeeper, shared by all tests: do not stop it."""
    workerinput: dict[str, str] | None = getattr(pytestconfig, "workerinput", None)
    if workerinput is None:
        return _ZookeeperOnDemand(pytestconfig).address()
    with Client(workerinput["zookeeper_door"], "AF_UNIX") as controller:
        answer: str | ServerError = controller.recv()
    if isinstance(answer, ServerError):
        raise answer
    return answer


@pytest.fixture
def zookeeper_url(zookeeper: str) -> str:
    """The URL of an empty part of the run's ZooKeeper, for one test."""
    return f"zookeeper://{zookeeper}/test-{uuid.uuid4().hex[:16]}"
