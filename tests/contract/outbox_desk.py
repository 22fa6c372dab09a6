"""A catalog with lots to tell of, and receivers that note what they are told."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from penstock.catalog.events.known_facets import DatasetName
from penstock.catalog.writes import open_write_queue
from penstock.clock import SECOND, Micros, parse_time
from penstock.db import Database, open_database
from penstock.locks.commands import (
    ClaimLots,
    ClaimRef,
    CompleteClaims,
    FailClaims,
    RegisterLots,
    WireJob,
)
from penstock.lots.rows import SubscriberRow
from penstock.schema.subscribers import SubscriberKind
from penstock.subscribers.commands import SetSubscriber, get_subscriber
from penstock.subscribers.delivery import Deliverer
from tests.doors.waiting import until
from tests.patience import HANG_SECONDS
from tests.web import Request

NOW: Micros = parse_time("2026-11-15T09:30:00Z")
RAW, CLEAN = DatasetName("shop", "raw"), DatasetName("shop", "clean")
NEVER = 36_000.0  # seconds: what happens later than that happens by a wake, or not at all


class IngestService:
    """A catalog on one database, whose clock stands where it is told."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now = NOW
        self.catalog = open_write_queue(
            database, clock=lambda: self.now, batch_events_max=100, queue_length_max=1000
        )
        self.catalog.start()
        self.catalog.submit(WireJob("shop", "tidy", (RAW,), (CLEAN,))).result()

    def pass_seconds(self, seconds: float) -> None:
        """Let time go on."""
        self.now += round(seconds * SECOND)

    def publish(self, *lots: str, dataset: DatasetName = RAW) -> None:
        """Have lots come from outside."""
        self.catalog.submit(RegisterLots(dataset.namespace, dataset.name, lots, "me")).result()

    def publish_each(self, *lots: str) -> None:
        """Have lots come from outside, one after the other."""
        for lot in lots:
            self.publish(lot)

    def work(self, *, fails: bool = False) -> str:
        """Claim one lot of the job, and complete or fail it: the run's id."""
        [claim] = self.catalog.submit(ClaimLots("shop", "tidy", "worker", 1)).result()
        refs = (ClaimRef(claim.id, claim.token),)
        end: Any = FailClaims(refs, "it broke") if fails else CompleteClaims(refs)
        [ended] = self.catalog.submit(end).result()
        assert ended.refused is None
        return claim.id

    def subscribe(
        self, url: str, name: str = "pager", kind: str = "webhook", **more: Any
    ) -> SubscriberRow:
        """Make or change a subscriber."""
        command = SetSubscriber("admin", name, SubscriberKind(kind), url, **more)
        return self.catalog.submit(command).result()

    def subscriber(self, name: str = "pager") -> SubscriberRow:
        """How a subscriber stands."""
        with self.catalog.read() as tx:
            return get_subscriber(tx, name)

    def wait_for(self, cursor: int, *names: str) -> None:
        """Return when these subscribers have had all events up to one."""
        for name in names or ("pager",):
            until(partial(self._has_had, name, cursor))

    def _has_had(self, name: str, cursor: int) -> bool:
        return self.subscriber(name).cursor == cursor

    @contextmanager
    def deliverer(self, **more: Any) -> Iterator[Deliverer]:
        """A deliverer for the length of the block."""
        deliverer = Deliverer(self.catalog, self.database, lambda: self.now, **more)
        deliverer.start()
        try:
            yield deliverer
        finally:
            deliverer.stop()


@contextmanager
def opened(database_url: str) -> Iterator[IngestService]:
    """A desk on a database, new or known."""
    database = open_database(database_url)
    database.migrate()
    desk = IngestService(database)
    try:
        yield desk
    finally:
        desk.catalog.stop()
        database.close()


@pytest.fixture
def desk(database_url: str) -> Iterator[IngestService]:
    with opened(database_url) as found:
        yield found


def deliveries(requests: Sequence[Request]) -> list[str]:
    """The names of deliveries, in the order in which they came."""
    return [request.headers["penstock-delivery"] for request in requests]


def lots(requests: Sequence[Request]) -> list[str]:
    """The lots that were told of, in the order in which that came."""
    return [json.loads(request.body)["lot"] for request in requests]


def firsts(names: Sequence[str]) -> list[str]:
    """What is left when doubles are dropped as a receiver drops them."""
    return list(dict.fromkeys(names))


class Gate:
    """Holds an answer back until it is opened."""

    def __init__(self) -> None:
        self._opened = threading.Event()

    def open(self) -> None:
        self._opened.set()

    def wait(self) -> None:
        assert self._opened.wait(HANG_SECONDS)
