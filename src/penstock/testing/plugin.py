"""The pytest plugin: `def test_it(penstock_server): …`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from penstock.testing import Server


@pytest.fixture
def penstock_server(tmp_path: Path) -> "Iterator[Server]":
    """Return an empty Penstock server of the test's own, with its files in `tmp_path`."""
    from penstock.testing import server

    with server(tmp_path / "penstock") as running:
        yield running
