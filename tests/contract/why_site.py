"""A catalog whose time is set by hand, and what it says when it is asked why."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from penstock import ids
from penstock.catalog.commands import DatasetName
from penstock.catalog.events.parse import Limits, read_event
from penstock.catalog.writes import open_write_queue
from penstock.clock import Micros, format_time, parse_time
from penstock.db import open_database
from penstock.locks.commands import (
    ClaimedLot,
    ClaimLots,
    ClaimRef,
    CompleteClaims,
    FailClaims,
    LockingEvent,
    RegisterLots,
    WireJob,
)
from penstock.locks.explain.no_work import explain_no_work
from penstock.locks.explain.why import explain_work
from penstock.schema.locks import NoWorkReason, Reason, Why
from penstock.store.write_queue import Command, WriteQueue

T = TypeVar("T")
NOON = parse_time("2026-11-15T12:00:00Z")


@dataclass
class Site:
    """A catalog whose time stands still unless it is moved."""

    catalog: WriteQueue
    now: Micros = NOON

    def do(self, command: Command[T]) -> T:
        return self.catalog.submit(command).result()

    def wire(self, job: str, reads: Sequence[str], writes: Sequence[str], **how: Any) -> None:
        inputs, outputs = (tuple(DatasetName("ns", d) for d in side) for side in (reads, writes))
        self.do(WireJob("ns", job, inputs, outputs, **how))

    def register(self, dataset: str, lot: str = "9") -> None:
        self.do(RegisterLots("ns", dataset, (lot,), "ann", renew=True))

    def claim(self, job: str, lot: str = "9", owner: str = "w1") -> ClaimedLot:
        (claimed,) = self.do(ClaimLots("ns", job, owner, lots=(lot,)))
        return claimed

    def complete(self, job: str, lot: str = "9") -> None:
        claim = self.claim(job, lot)
        (ended,) = self.do(CompleteClaims((ClaimRef(claim.id, claim.token),)))
        assert ended.refused is None

    def fail(self, job: str, lot: str = "9", error: str = "disk full") -> None:
        claim = self.claim(job, lot)
        (ended,) = self.do(FailClaims((ClaimRef(claim.id, claim.token),), error))
        assert ended.refused is None

    def why(self, job: str, lot: str = "9", only: str | None = None) -> Why:
        with self.catalog.read() as tx:
            return explain_work(tx, "ns", job, lot, self.now, only=only)

    def nothing(self, job: str) -> NoWorkReason:
        with self.catalog.read() as tx:
            return explain_no_work(tx, "ns", job)

    def report(
        self, event_type: str, job: str, reads: str, writes: str, lot: str = "9", run: str = ""
    ) -> str:
        """A run that others started tells what it does with a lot; returned is the run."""
        run = run or ids.new_id()
        event = {
            "eventType": event_type,
            "eventTime": format_time(self.now),
            "producer": "airflow",
            "run": {"runId": run},
            "job": {"namespace": "ns", "name": job},
            "inputs": [_named(reads, lot)],
            "outputs": [_named(writes, lot)],
        }
        self.do(LockingEvent(read_event(msgspec.json.encode(event), Limits())))
        return run


def _named(dataset: str, lot: str) -> Mapping[str, Any]:
    return {"namespace": "ns", "name": dataset, "facets": {"penstock_lot": {"lots": [lot]}}}


@contextmanager
def open_site(url: str) -> Iterator[Site]:
    """A site on an empty database."""
    database = open_database(url)
    database.migrate()
    made: list[Site] = []
    catalog = open_write_queue(
        database, clock=lambda: made[0].now, batch_events_max=8, queue_length_max=1000
    )
    made.append(Site(catalog))
    catalog.start()
    yield made[0]
    catalog.stop()
    database.close()


def kinds(found: Why) -> list[str]:
    return [reason.kind for reason in found.reasons]


def only_reason(found: Why) -> Reason:
    (reason,) = found.reasons
    return reason
