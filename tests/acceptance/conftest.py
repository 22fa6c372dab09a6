"""What every acceptance test has: a server on each database, and a namespace of its own."""

import uuid
from collections.abc import Iterator

import pytest

from tests.acceptance.arc_site import arcs, local_arcs
from tests.acceptance.calls import Calls
from tests.acceptance.flow_site import flow
from tests.acceptance.ingest_site import site
from tests.running import ServerProcess

__all__ = ["arcs", "calls", "flow", "local_arcs", "site"]


@pytest.fixture
def calls(server: ServerProcess, request: pytest.FixtureRequest) -> Iterator[Calls]:
    """Calls to the server, in a namespace that no other test uses."""
    with server.client() as client:
        yield Calls(client, f"{request.node.originalname}-{uuid.uuid4().hex[:12]}")
