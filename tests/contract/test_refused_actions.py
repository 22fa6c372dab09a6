"""What an action that is refused has written by itself goes with it, as from the audit log."""

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.access import audit
from penstock.errors import NotFound
from penstock.locks.commands import PrioritizeWork, ResubmitLots
from tests.contract.lot_site import Site, open_site


@pytest.fixture
def site(database_url: str) -> Iterator[Site]:
    """a: raw → clean, with two lots."""
    with open_site(database_url) as site:
        site.wire("a", ["raw"], ["clean"])
        site.register("raw", ["1", "2"])
        yield site


def told(site: Site) -> list[tuple[str, str]]:
    with site.database.read() as tx:
        return [(entry.action, entry.target) for entry in audit.entries(tx, 10)]


@pytest.mark.parametrize(
    ("refused", "done"),
    [
        (
            ResubmitLots("ann", "bug", "ns", "a", ("1", "9")),
            ResubmitLots("ann", "bug", "ns", "a", ("2",)),
        ),
        (
            PrioritizeWork("ann", "hurry", "ns", "a", ("1", "9"), 5),
            PrioritizeWork("ann", "hurry", "ns", "a", ("2",), 5),
        ),
    ],
    ids=["resubmit", "priority"],
)
def test_of_lots_that_are_all_refused_the_audit_log_tells_none(
    site: Site, refused: Any, done: Any
) -> None:
    with pytest.raises(NotFound, match="has never met lot 9"):
        site.do(refused)
    assert told(site) == []
    site.do(done)
    assert [target for _, target in told(site)] == ["job:ns:a lot 2"]
