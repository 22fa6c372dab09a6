"""What tests of what all databases do alike have in common."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from penstock.db import Database, open_database


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """The database that a module fills for all of its tests."""
    with closing(open_database(url)) as opened:
        yield opened
