"""The databases that tests run on: a SQLite file each, and one PostgreSQL for the whole run."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.servers import PostgresServer

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


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist where the controller's server is."""
    node.workerinput["postgres_folder"] = str(_shared_server(node.config).folder)


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
