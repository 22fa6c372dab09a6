"""A write that arrives during a commit is answered even if no third write follows."""

import asyncio
import json
from contextlib import closing
from pathlib import Path

from penstock.catalog.commands import ReceiveEvent
from penstock.catalog.events.parse import Limits, read_event
from penstock.catalog.writes import open_write_queue
from penstock.clock import system_clock
from penstock.db import open_database
from penstock.store.write_queue import WriteQueue
from tests.patience import HANG_SECONDS

ROUNDS = 600


def write(number: int) -> ReceiveEvent:
    document = {
        "eventTime": "2026-11-15T10:00:00Z",
        "eventType": "COMPLETE",
        "run": {"runId": f"run {number}"},
        "job": {"namespace": "jobs", "name": f"job {number % 3}"},
        "outputs": [{"namespace": "s3://lake", "name": f"dataset {number % 4}"}],
    }
    return ReceiveEvent(read_event(json.dumps(document).encode(), Limits()))


async def submit_pairs(catalog: WriteQueue) -> None:
    """Submit two writes, each pair a little further apart than the pair before."""
    for number in range(ROUNDS):
        first = catalog.submit_async(write(2 * number))
        for _ in range(number % 100):
            await asyncio.sleep(0)
        second = catalog.submit_async(write(2 * number + 1))
        _, waiting = await asyncio.wait([first, second], timeout=HANG_SECONDS)
        assert not waiting, f"{len(waiting)} of two writes were not answered in round {number}"


def test_no_write_waits_for_a_later_one(tmp_path: Path) -> None:
    with closing(open_database(f"sqlite:///{tmp_path / 'penstock.db'}")) as database:
        database.migrate()
        catalog = open_write_queue(
            database, clock=system_clock, batch_events_max=8, queue_length_max=8
        )
        catalog.start()
        asyncio.run(submit_pairs(catalog))
        catalog.stop()
