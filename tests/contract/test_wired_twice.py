"""A job that is wired twice in one transaction: what it reads and writes is what was said last."""

from penstock.catalog.commands import DatasetName
from penstock.catalog.writes import open_write_queue
from penstock.db import open_database
from penstock.locks.commands import WireJob
from tests.contract.lot_site import NOON
from tests.invariants import broken_invariants

RAW, CLEAN = (DatasetName("ns", "raw"),), (DatasetName("ns", "clean"),)


def test_no_dataset_knows_a_job_that_was_wired_to_it_for_a_moment(database_url: str) -> None:
    database = open_database(database_url)
    database.migrate()
    catalog = open_write_queue(database, clock=lambda: NOON, batch_events_max=8, queue_length_max=8)
    sides = [(RAW, CLEAN), (CLEAN, RAW), (RAW, CLEAN), (CLEAN, RAW)]
    sent = [catalog.submit(WireJob("ns", "a", reads, writes)) for reads, writes in sides]
    catalog.start()  # only now, so that all are in one batch
    for each in sent:
        each.result()
    catalog.stop()
    assert broken_invariants(database, lambda: NOON) == []
    database.close()
