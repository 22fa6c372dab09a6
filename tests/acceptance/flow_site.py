"""A catalog with jobs that make lots of lots, for tests of what flows and what is stopped."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from penstock.access import audit
from penstock.arcs.commands import PublishLot
from penstock.catalog.commands import DatasetName
from penstock.catalog.rows import DatasetRow
from penstock.catalog.writes import open_write_queue
from penstock.clock import SECOND, Micros, parse_time
from penstock.db import Database, open_database
from penstock.locks.commands import (
    ClaimedLot,
    ClaimLots,
    ClaimRef,
    CompleteClaims,
    HoldLot,
    HoldWork,
    RegisterLots,
    ResubmitLots,
    WireJob,
)
from penstock.locks.explain.facts import HoldEntry
from penstock.locks.explain.why import explain_work
from penstock.locks.queries.lots import get_work, list_log_of_lot, list_stale, show_lot
from penstock.locks.rows import LogRow
from penstock.lots.manifests import QualityCheck
from penstock.lots.outbox import events_after
from penstock.schema.locks import Why, Work
from penstock.schema.lots import Transition
from penstock.schema.subscribers import LotEvent
from penstock.states import WorkState
from penstock.store.write_queue import Command, WriteQueue
from tests.invariants import broken_invariants
from tests.simulation.tables import STATEMENTS

T = TypeVar("T")
NS = "ns"
LOT = "2026-11-15"
NOON = parse_time("2026-11-15T12:00:00Z")


@dataclass
class Flow:
    """Everything is in the namespace `ns`, about one lot; a second passes with each action."""

    database: Database
    catalog: WriteQueue
    now: Micros = NOON

    def do(self, command: Command[T]) -> T:
        self.now += SECOND
        return self.catalog.submit(command).result()

    # What jobs and their workers do.

    def wire(self, job: str, reads: Sequence[str], writes: Sequence[str], **how: Any) -> None:
        inputs, outputs = (tuple(DatasetName(NS, d) for d in side) for side in (reads, writes))
        self.do(WireJob(NS, job, inputs, outputs, **how))

    def register(self, dataset: str, *, renew: bool = True) -> None:
        self.do(RegisterLots(NS, dataset, (LOT,), "ann", renew=renew))

    def claim(self, job: str) -> ClaimedLot:
        [claim] = self.do(ClaimLots(NS, job, "w1", lots=(LOT,)))
        return claim

    def complete(self, claim: ClaimedLot) -> None:
        [ended] = self.do(CompleteClaims((ClaimRef(claim.id, claim.token),)))
        assert ended.refused is None, ended.refused

    def publish(self, claim: ClaimedLot, *checks: QualityCheck) -> None:
        """Complete with what checks said about the first output."""
        name = DatasetName(NS, claim.outputs[0].name)
        self.do(PublishLot(ClaimRef(claim.id, claim.token), (), ((name, checks),)))

    def run(self, *jobs: str) -> None:
        """Jobs work on the lot, one after the other, without a fault."""
        for job in jobs:
            self.complete(self.claim(job))

    # What administrators do.

    def hold(self, dataset: str, why: str = "bad data") -> HoldEntry | None:
        return self.do(HoldLot("ann", why, NS, dataset, LOT))

    def release_hold(self, dataset: str) -> None:
        self.do(HoldLot("ben", "mended", NS, dataset, LOT, hold=False))

    def release_work(self, job: str) -> None:
        self.do(HoldWork("ben", "it is good as it is", NS, job, LOT, hold=False))

    def resubmit(self, job: str) -> None:
        self.do(ResubmitLots("ben", "again", NS, job, (LOT,)))

    # What is there.

    def audited(self, action: str) -> list[str]:
        """Why administrators did something, newest first."""
        with self.catalog.read() as tx:
            lines = audit.entries(tx, limit=100, offset=0)
        return [line.detail for line in lines if line.action == action]

    def status(self, dataset: str) -> str:
        with self.catalog.read() as tx:
            return str(show_lot(tx, NS, dataset, LOT).status)

    def statuses(self, *datasets: str) -> list[str]:
        return [self.status(dataset) for dataset in datasets]

    def work(self, job: str) -> Work:
        with self.catalog.read() as tx:
            return get_work(tx, NS, job, LOT)

    def state(self, job: str) -> WorkState:
        return self.work(job).state

    def stale(self) -> list[str]:
        """The jobs that have stale work."""
        with self.catalog.read() as tx:
            return sorted(work.job for work in list_stale(tx, None, None, 100, 0).lots)

    def why(self, job: str) -> Why:
        with self.catalog.read() as tx:
            return explain_work(tx, NS, job, LOT, self.now)

    def log(self, dataset: str) -> list[Transition]:
        """What happened to the lot of a dataset, oldest first."""
        with self.catalog.read() as tx:
            return list_log_of_lot(tx, NS, dataset, LOT, 100, 0)[::-1]

    def order(self, action: str) -> list[str]:
        """The datasets whose lot was held or let go, in the order of the log."""
        with self.catalog.read() as tx:
            rows = tx.rows(LogRow, "every_lot_log")
            names = {row.id: row.name for row in tx.rows(DatasetRow, "every_dataset")}
        return [names[row.dataset_id] for row in rows if row.dataset_id and row.action == action]

    def events(self) -> list[LotEvent]:
        with self.catalog.read() as tx:
            return list(events_after(tx, 0, 1000))

    def told(self, dataset: str) -> list[str]:
        """The kinds of what subscribers of a dataset were told."""
        return [event.kind for event in self.events() if event.dataset.name == dataset]

    def check(self) -> None:
        assert broken_invariants(self.database, lambda: self.now) == []


@contextmanager
def open_flow(url: str) -> Iterator[Flow]:
    """A flow on an empty database; nothing is broken when it ends."""
    database = open_database(url, extra=[STATEMENTS])
    database.migrate()
    made: list[Flow] = []
    catalog = open_write_queue(
        database, clock=lambda: made[0].now, batch_events_max=64, queue_length_max=1000
    )
    made.append(Flow(database, catalog))
    catalog.start()
    yield made[0]
    made[0].check()
    catalog.stop()
    database.close()


@pytest.fixture
def flow(database_url: str) -> Iterator[Flow]:
    """A flow on each database."""
    with open_flow(database_url) as opened:
        yield opened
