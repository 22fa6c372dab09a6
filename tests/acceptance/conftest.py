"""Fixtures of the acceptance tests."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.arc_site import arcs, local_arcs
from tests.acceptance.calls import Calls
from tests.acceptance.flow_site import flow
from tests.acceptance.ingest_scene import Scene, frozen_clock
from tests.acceptance.ingest_site import site
from tests.ingest_stores import BACKENDS, open_backend
from tests.running import ServerProcess

__all__ = ["arcs", "calls", "flow", "local_arcs", "site"]


@pytest.fixture
def calls(server: ServerProcess, request: pytest.FixtureRequest) -> Iterator[Calls]:
    """Calls to the server in a namespace that no other test uses."""
    with server.client() as client:
        yield Calls(client, f"{request.node.originalname}-{uuid.uuid4().hex[:12]}")


@pytest.fixture(params=BACKENDS)
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    """An ingest queue whose whole state is compared after each transition."""
    with open_backend(request.param, request, tmp_path, clock=frozen_clock) as backend:
        yield Scene(backend)
