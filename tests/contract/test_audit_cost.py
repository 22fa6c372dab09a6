"""Filters of a long audit log: their results, and that each one uses an index."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest

from penstock.access import audit
from penstock.access.audit import AuditEntry, ChainedEntry
from penstock.db import Transaction, open_database
from penstock.db.folders import capability_folders
from penstock.db.statements import load_statements
from tests.plans import costly_steps, filled_database, is_parameter_scan
from tests.simulation.tables import STATEMENTS

# One worker fills each database once.
pytestmark = pytest.mark.xdist_group("audit_cost")

COUNT = 20_000
USUAL = ("hold lot", "release lot", "resubmit", "priority 5")
# Long ago, so that a scan by time reaches them last.
RARE = [
    AuditEntry(1, "boss", "key create", "etl", ""),
    AuditEntry(2, "boss", "key revoke", "etl", ""),
    AuditEntry(2, "chief", "key create", "etl", "again"),
]
ENTRIES = RARE + [
    AuditEntry(n, "local", USUAL[n % len(USUAL)], f"lot {n}", "") for n in range(3, COUNT)
]
NEWEST = ENTRIES[::-1]
PAGE = {"limit": 100, "offset": 0, "since": 0}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Twenty thousand actions, three of which differ from the others."""
    with filled_database(request, tmp_path_factory, _fill, extra=[STATEMENTS]) as url:
        yield url


def _fill(tx: Transaction) -> None:
    rows = [msgspec.convert(entry, ChainedEntry, from_attributes=True) for entry in ENTRIES]
    tx.write("put_audit_entries", rows)


FILTERS: list[tuple[dict[str, Any], list[AuditEntry]]] = [
    ({}, NEWEST),
    ({"since": COUNT - 5}, NEWEST[:5]),
    ({"who": "boss"}, RARE[1::-1]),
    ({"who": "boss", "since": 2}, [RARE[1]]),
    ({"who": "boss", "action": "revoke"}, [RARE[1]]),
    ({"who": "local", "action": "key"}, []),
    ({"who": "local", "action": "resubmit"}, [e for e in NEWEST if e.action == "resubmit"]),
    ({"who": "nobody"}, []),
    ({"action": "key"}, RARE[::-1]),
    ({"action": "create"}, [RARE[2], RARE[0]]),
    ({"action": "create", "since": 2}, [RARE[2]]),
    ({"action": "hold"}, [entry for entry in NEWEST if "hold" in entry.action]),
    ({"action": "Hold"}, []),
    ({"action": "%"}, []),
]


@pytest.mark.parametrize(
    ("filters", "entries"), FILTERS, ids=[str(filters) for filters, _ in FILTERS]
)
def test_each_filter_returns_its_entries_newest_first(
    url: str, filters: dict[str, Any], entries: list[AuditEntry]
) -> None:
    with closing(open_database(url)) as database, database.read() as tx:
        assert _plain(audit.entries(tx, 100, **filters)) == entries[:100]
        assert _plain(audit.entries(tx, 7, 150, **filters)) == entries[150:157]
        assert _plain(audit.entries(tx, 1, 1, **filters)) == entries[1:2]
        assert audit.entries(tx, 0, **filters) == []


def _plain(entries: list[AuditEntry]) -> list[AuditEntry]:
    """Return the entries without the columns of the chain."""
    return [msgspec.structs.replace(entry, id=0, hash="") for entry in entries]


FILTERED_STATEMENTS: list[tuple[str, dict[str, Any]]] = [
    ("audit_entries", {}),
    ("audit_entries_of", {"who": "boss"}),
    ("audit_entries_of", {"who": "local"}),
    ("audit_actions", {}),
    ("audit_export", {"at": 0, "id": 0}),
    ("audit_chain_after", {"after": COUNT // 2, "most": 100}),
    ("audit_entries_by_action", {"actions": ["key create", "hold lot"]}),
    ("audit_entries_of_by_action", {"who": "local", "actions": ["key create", "hold lot"]}),
    ("audit_entries_of_by_action", {"who": "boss", "actions": ["key create", "hold lot"]}),
]


@pytest.mark.parametrize(("name", "filters"), FILTERED_STATEMENTS, ids=str)
def test_no_filter_scans_entries_that_it_does_not_return(
    url: str, name: str, filters: dict[str, Any]
) -> None:
    statement = load_statements(url.partition(":")[0], capability_folders())[name]
    assert costly_steps(url, statement, {**PAGE, **filters}, _is_small, 2 * PAGE["limit"]) == []


def _is_small(step: str) -> bool:
    return is_parameter_scan(step) or step == "SCAN kinds"
