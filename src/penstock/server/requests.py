"""One request on its way through the door."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec, TypeVar

from penstock.access.keys import Key
from penstock.catalog.events.parse import Limits, check_name, check_text
from penstock.catalog.queries.catalog import get_dataset, get_run
from penstock.clock import SECOND, Micros
from penstock.db import Transaction
from penstock.errors import Busy, NotFound
from penstock.ingest.collections import Collection, all_collections, find_collection
from penstock.ingest.context import IngestContext
from penstock.ingest.models import Batch, IngestHold, IngestHoldKind, IngestJob
from penstock.ingest.queue.port import IngestStore
from penstock.ingest.service import AdminAction, IngestService
from penstock.plane import Plane
from penstock.server.auth import NO_HEADING, NO_SENDER, Gate, Heading, Rates, Sender
from penstock.server.content import Budget, Stream
from penstock.server.epochs import Epochs
from penstock.server.metrics import Metrics
from penstock.server.relay import Relay
from penstock.server.responses import Header, Page
from penstock.store.write_queue import Command
from penstock.subscribers.delivery import Deliverer

P = ParamSpec("P")
T = TypeVar("T")

READERS = 8
# The queue may be kept in ZooKeeper: whoever waits for it must not hold up those who read.
CLERKS = 8
UPLOADS_MAX = 16


@dataclass
class Door:
    """What every call of one server works with."""

    plane: Plane
    gate: Gate
    metrics: Metrics
    limits: Limits
    openapi: Callable[[], bytes]
    docs: Callable[[], Page]
    readers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(READERS, thread_name_prefix="reader")
    )
    clerks: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(CLERKS, thread_name_prefix="ingest")
    )
    porters: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(UPLOADS_MAX, thread_name_prefix="upload")
    )
    parser: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="parser")
    )
    budget: Budget = field(init=False)
    rates: Rates = field(init=False)
    uploads: int = 0
    stopping: bool = False
    relay: Relay = field(init=False)
    epochs: Epochs = field(init=False)
    deliverer: Deliverer = field(init=False)

    def __post_init__(self) -> None:
        plane = self.plane
        settings = plane.settings
        self.budget = Budget(settings.bodies_bytes_max)
        self.rates = Rates(settings.key_requests_per_second, settings.key_bytes_per_second)
        self.relay = Relay(plane.database)
        self.epochs = Epochs(plane.database, self.readers)
        self.deliverer = Deliverer(
            plane.catalog, plane.database, plane.clock, secrets=plane.secrets
        )

    async def in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run something that blocks where it does not hold up other calls; it knows the caller."""
        loop = asyncio.get_running_loop()
        context = copy_context()
        return await loop.run_in_executor(self.readers, lambda: context.run(work, *args, **kwargs))

    async def parse(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Unpack or parse a large body. One at a time: both are work for the processor."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.parser, lambda: work(*args, **kwargs))

    async def by_clerk(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run something that may have to wait for the ingest queue; it knows who called."""
        loop = asyncio.get_running_loop()
        here = copy_context()
        return await loop.run_in_executor(self.clerks, lambda: here.run(work, *args, **kwargs))

    async def carry(self, stream: Stream, work: Callable[[], T]) -> T:
        """Run something that takes a body while it arrives; it ends when the caller is gone."""
        if self.uploads >= UPLOADS_MAX:
            raise Busy(f"{self.uploads} uploads are under way, and no more at once; try again")
        self.uploads += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.porters, work)
        finally:
            self.uploads -= 1
            stream.close()

    def close(self) -> None:
        """End all threads."""
        self.deliverer.stop()
        self.relay.close()
        for threads in (self.readers, self.clerks, self.porters, self.parser):
            threads.shutdown()


@dataclass
class Call:
    """A call that writes: who makes it, and the ways to the catalog."""

    door: Door
    key: Key
    head: Heading = NO_HEADING
    sender: Sender = NO_SENDER
    headers: list[Header] = field(default_factory=list)

    async def submit(self, command: Command[T], size: int = 0) -> T:
        """Write, and go on once it is committed; `size` is that of a body kept with the write."""
        return await self.door.plane.catalog.submit_async(command, size)

    async def read(
        self, look: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Read in a transaction of its own, in a thread."""

        def work() -> T:
            with self.door.plane.catalog.read() as tx:
                return look(tx, *args, **kwargs)

        return await self.door.in_thread(work)

    def not_ahead(self, at: Micros) -> Micros:
        """The time that a caller states, or now where it is too far ahead of our clock."""
        now = self.door.plane.clock()
        return at if at <= now + self.door.plane.settings.event_ahead_seconds * SECOND else now

    async def require_run(self, run_id: str | None) -> None:
        """Refuse a key that is for one namespace when the run belongs to another."""
        if run_id is not None and self.key.namespace is not None:
            run = await self.read(get_run, run_id)
            self.key.require_own(run.job.namespace)

    async def require_dataset(self, namespace: str, dataset: str) -> None:
        """Refuse a key that is for one namespace a second name of a dataset of another."""
        if self.key.namespace is None:
            return
        with suppress(NotFound):
            found = await self.read(get_dataset, namespace, dataset, include_deleted=True)
            self.key.require_own(found.namespace)

    def check_names(self, **names: str | None) -> None:
        """Refuse names in a body that nothing can have."""
        for what, name in names.items():
            if name is not None:
                check_name(name, what, self.door.limits.name_length_max)

    def check_texts(self, **texts: str | None) -> None:
        """Refuse texts in a body that are empty, too long or hold a NUL."""
        for what, text in texts.items():
            if text is not None:
                check_text(text, what, self.door.limits.name_length_max)


@dataclass
class IngestRequest:
    """A call that works on the queue; it may wait, so it has one of ingest's own threads.

    A key that is for one namespace touches the collections of that namespace, their batches,
    jobs and objects, and nothing else. `status` replaces the route's.
    """

    plane: Plane
    key: Key
    limits: Limits
    status: int | None = None

    @property
    def desk(self) -> IngestService:
        """What depositors and administrators can ask for."""
        return self.plane.desk

    @property
    def context(self) -> IngestContext:
        """Where objects are kept."""
        return self.plane.context

    @property
    def store(self) -> IngestStore:
        """The queue."""
        return self.plane.context.store

    def act(self, why: str) -> AdminAction:
        """Something done by hand, for the audit log."""
        return AdminAction(self.key.name, why)

    def write(self, command: Command[Collection] | Command[None]) -> None:
        """Write to the catalog, and go on once it is committed."""
        self.plane.catalog.submit(command).result()

    def batch(self, batch_id: str) -> Batch:
        """A batch that the key may touch."""
        batch = self.store.batch(batch_id)
        self.require(batch.collection)
        return batch

    def job(self, job_id: str) -> IngestJob:
        """An ingest job that the key may touch."""
        job = self.store.job(job_id)
        self.require(job.configuration.profile_name)
        return job

    def collection(self, name: str) -> Collection:
        """A collection that the key may touch, as it is now."""
        with self.plane.catalog.read() as tx:
            found = find_collection(tx, name)
        self.key.require_own(found.namespace)
        return found

    def require_dataset(self, namespace: str, dataset: str) -> None:
        """Refuse a key that is for one namespace a second name of a dataset of another."""
        if self.key.namespace is None:
            return
        with suppress(NotFound), self.plane.catalog.read() as tx:
            found = get_dataset(tx, namespace, dataset, include_deleted=True)
            self.key.require_own(found.namespace)

    def collections(self) -> list[Collection]:
        """Every collection that the key may touch, by name."""
        with self.plane.catalog.read() as tx:
            found = all_collections(tx)
        own = self.key.namespace
        return [each for each in found if own is None or each.namespace == own]

    def require(self, collection: str) -> None:
        """Refuse a key that is for one namespace a collection of another."""
        if self.key.namespace is not None:
            self.collection(collection)

    def narrowed(self, collection: str | None) -> frozenset[str] | None:
        """The collections that a list is about; None is all, even those that are gone."""
        if collection is not None:
            self.require(collection)
            return frozenset({collection})
        if self.key.namespace is None:
            return None
        return frozenset(each.name for each in self.collections())

    def held_collections(self) -> Mapping[str, IngestHold]:
        """The collections that somebody has stopped."""
        return {h.name: h for h in self.store.holds() if h.kind is IngestHoldKind.COLLECTION}

    def check_names(self, **names: str | None) -> None:
        """Refuse names in a body that nothing can have."""
        for what, name in names.items():
            if name is not None:
                check_name(name, what, self.limits.name_length_max)

    def check_texts(self, **texts: str | None) -> None:
        """Refuse texts in a body that are empty, too long or hold a NUL."""
        for what, text in texts.items():
            if text is not None:
                check_text(text, what, self.limits.name_length_max)
