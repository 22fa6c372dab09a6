"""The memory that large events take while they are folded."""

import json

import pytest

from penstock.catalog.events.apply import receive
from penstock.catalog.events.parse import Limits, read_event
from penstock.catalog.unit_of_work import HEAVY, HEAVY_KEPT_MAX, UnitOfWork
from penstock.db import Database
from tests.contract.catalog_rows import NOW


@pytest.fixture
def url(database_url: str) -> str:
    """An empty database."""
    return database_url


def test_large_events_fill_a_unit_of_work(database: Database) -> None:
    uow = UnitOfWork()
    for number, length in enumerate((HEAVY // 2, HEAVY_KEPT_MAX, 2 * HEAVY)):
        fold(uow, database, number, length)
        assert uow.is_full == (number > 0)
    uow.forget()
    assert not uow.is_full


def fold(uow: UnitOfWork, database: Database, number: int, length: int) -> None:
    """Fold an event with a description of this length and treat it as written."""
    event = {
        "eventTime": f"2026-11-16T09:00:0{number}Z",
        "producer": "p",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/JobEvent",
        "job": {
            "namespace": "n",
            "name": "j",
            "facets": {"documentation": {"description": "x" * length}},
        },
    }
    with database.read() as tx:
        uow.open(tx)
        uow.undo.begin()
        receive(uow, read_event(json.dumps(event).encode(), Limits()), NOW)
    uow.mark_sent()
