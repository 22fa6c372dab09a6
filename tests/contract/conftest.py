"""Fixtures of the contract suites, which every backend must pass."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.db import Database, open_database
from penstock.ingest.queue.port import IngestStore
from tests.ingest_stores import BACKENDS, Backend, open_backend


@pytest.fixture
def url(database_url: str) -> str:
    """The URL of an empty database. A module may override it to fill one for all its tests."""
    return database_url


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    with closing(open_database(url)) as opened:
        yield opened


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """An ingest queue on each database and in ZooKeeper."""
    with open_backend(request.param, request, tmp_path) as backend:
        yield backend


@pytest.fixture
def store(backend: Backend) -> IngestStore:
    return backend.open()
