"""The state of a server, what a handler gets of a request, and the log of changes to lots."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec, TypeVar

from penstock.access.keys import Key
from penstock.catalog.events.parse import Limits, check_name, check_text
from penstock.catalog.queries.datasets import get_dataset
from penstock.catalog.queries.runs import get_run
from penstock.clock import SECOND, Micros
from penstock.db import Transaction
from penstock.errors import Busy, NotFound
from penstock.ingest.collections import all_collections, find_collection
from penstock.ingest.context import IngestContext
from penstock.ingest.models import Batch, IngestHold, IngestHoldKind, IngestJob
from penstock.ingest.queue.port import IngestStore
from penstock.ingest.service import AdminAction, IngestService
from penstock.locks.commands import ClaimedLot
from penstock.locks.commands.claims import ClaimResult
from penstock.plane import Plane
from penstock.schema.ingest import Collection
from penstock.server.auth import NO_HEADING, NO_SENDER, Gate, Heading, Rates, Sender
from penstock.server.content import Budget, Stream
from penstock.server.metrics import Metrics
from penstock.server.relay import Epochs, Relay
from penstock.server.responses import Header, PlainAnswer
from penstock.store.write_queue import Command
from penstock.subscribers.delivery import Deliverer
from penstock.telemetry import logs, tracing

P = ParamSpec("P")
T = TypeVar("T")

READER_THREADS = 8
# The queue may be in ZooKeeper: a wait for it must not occupy the reader threads.
INGEST_THREADS = 8
UPLOADS_MAX = 16


@dataclass
class ServerState:
    """The parts of one server that all requests share."""

    plane: Plane
    gate: Gate
    metrics: Metrics
    limits: Limits
    openapi: Callable[[], bytes]
    docs: Callable[[], PlainAnswer]
    reader_pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(READER_THREADS, thread_name_prefix="reader")
    )
    ingest_pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(INGEST_THREADS, thread_name_prefix="ingest")
    )
    upload_pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(UPLOADS_MAX, thread_name_prefix="upload")
    )
    parser_pool: ThreadPoolExecutor = field(
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
        self.epochs = Epochs(plane.database, self.reader_pool)
        self.deliverer = Deliverer(
            plane.catalog, plane.database, plane.clock, secrets=plane.secrets
        )

    async def in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that blocks in a reader thread, with the caller's context variables."""
        return await _run_in(self.reader_pool, work, *args, **kwargs)

    async def in_ingest_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that may wait for the ingest queue, in an ingest thread."""
        return await _run_in(self.ingest_pool, work, *args, **kwargs)

    async def parse(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Unpack or parse a large body. One at a time, because both use the processor."""
        return await _run_in(self.parser_pool, work, *args, **kwargs)

    async def in_upload_thread(self, stream: Stream, work: Callable[[], T]) -> T:
        """Run a function that reads a body while it arrives, until it ends or the caller leaves."""
        if self.uploads >= UPLOADS_MAX:
            raise Busy(f"{self.uploads} uploads are under way, and no more at once; try again")
        self.uploads += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.upload_pool, work)
        finally:
            self.uploads -= 1
            stream.close()

    def close(self) -> None:
        """End all threads."""
        self.deliverer.stop()
        self.relay.close()
        for pool in (self.reader_pool, self.ingest_pool, self.upload_pool, self.parser_pool):
            pool.shutdown()


async def _run_in(
    pool: ThreadPoolExecutor, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    variables = copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(pool, lambda: variables.run(work, *args, **kwargs))


@dataclass
class AuthorizedRequest:
    """A request with the key of its caller, and the checks of what the request names."""

    state: ServerState
    key: Key

    @property
    def plane(self) -> Plane:
        """The parts of the product."""
        return self.state.plane

    def check_names(self, **names: str | None) -> None:
        """Refuse names in a body that nothing can have."""
        for what, name in names.items():
            if name is not None:
                check_name(name, what, self.state.limits.name_length_max)

    def check_texts(self, **texts: str | None) -> None:
        """Refuse texts in a body that are empty, too long or hold a NUL."""
        for what, text in texts.items():
            if text is not None:
                check_text(text, what, self.state.limits.name_length_max)

    def check_dataset(self, tx: Transaction, namespace: str, dataset: str) -> None:
        """Refuse a second name of another namespace's dataset to a key of one namespace."""
        if self.key.namespace is not None:
            with suppress(NotFound):
                row = get_dataset(tx, namespace, dataset, include_deleted=True)
                self.key.require_own(row.namespace)


@dataclass
class RequestContext(AuthorizedRequest):
    """What an asynchronous handler gets: the caller, and the ways to read and write."""

    head: Heading = NO_HEADING
    sender: Sender = NO_SENDER
    headers: list[Header] = field(default_factory=list)

    async def submit(self, command: Command[T], size: int = 0) -> T:
        """Run a command and wait for its commit; `size` is that of a body kept with it."""
        return await self.plane.catalog.submit_async(command, size)

    async def read(
        self, look: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Read in a transaction of its own, in a thread."""

        def work() -> T:
            with self.plane.catalog.read() as tx:
                return look(tx, *args, **kwargs)

        return await self.state.in_thread(work)

    def not_ahead(self, at: Micros) -> Micros:
        """Return the time that a caller states, or now if it is too far ahead of our clock."""
        now = self.plane.clock()
        return at if at <= now + self.plane.settings.event_ahead_seconds * SECOND else now

    async def require_run(self, run_id: str | None) -> None:
        """Refuse a run of another namespace to a key of one namespace."""
        if run_id is not None and self.key.namespace is not None:
            run = await self.read(get_run, run_id)
            self.key.require_own(run.job.namespace)

    async def require_dataset(self, namespace: str, dataset: str) -> None:
        """Refuse a second name of another namespace's dataset to a key of one namespace."""
        if self.key.namespace is not None:
            await self.read(self.check_dataset, namespace, dataset)


@dataclass
class IngestRequest(AuthorizedRequest):
    """What a handler of ingest gets. It may wait for the queue, so it runs in an ingest thread.

    A key of one namespace touches the collections of that namespace, their batches, jobs and
    objects, and nothing else. `status` replaces the route's.
    """

    status: int | None = None

    @property
    def desk(self) -> IngestService:
        """The acts of depositors and administrators."""
        return self.plane.desk

    @property
    def context(self) -> IngestContext:
        """The object stores of ingest."""
        return self.plane.context

    @property
    def store(self) -> IngestStore:
        """The queue."""
        return self.plane.context.store

    def act(self, why: str) -> AdminAction:
        """Return the caller and the reason, for the audit log."""
        return AdminAction(self.key.name, why)

    def write(self, command: Command[Collection] | Command[None]) -> None:
        """Run a command and wait for its commit."""
        self.plane.catalog.submit(command).result()

    def batch(self, batch_id: str) -> Batch:
        """Return a batch that the key may touch."""
        batch = self.store.batch(batch_id)
        self.require(batch.collection)
        return batch

    def job(self, job_id: str) -> IngestJob:
        """Return an ingest job that the key may touch."""
        job = self.store.job(job_id)
        self.require(job.configuration.profile_name)
        return job

    def collection(self, name: str) -> Collection:
        """Return a collection that the key may touch, as it is now."""
        with self.plane.catalog.read() as tx:
            collection = find_collection(tx, name)
        self.key.require_own(collection.namespace)
        return collection

    def require_dataset(self, namespace: str, dataset: str) -> None:
        """Refuse a second name of another namespace's dataset to a key of one namespace."""
        with self.plane.catalog.read() as tx:
            self.check_dataset(tx, namespace, dataset)

    def collections(self) -> list[Collection]:
        """Return every collection that the key may touch, by name."""
        with self.plane.catalog.read() as tx:
            collections = all_collections(tx)
        namespace = self.key.namespace
        return [each for each in collections if namespace in (None, each.namespace)]

    def require(self, collection: str) -> None:
        """Refuse a collection of another namespace to a key of one namespace."""
        if self.key.namespace is not None:
            self.collection(collection)

    def narrowed(self, collection: str | None) -> frozenset[str] | None:
        """Return the collections of a list; None is all, also those that were deleted."""
        if collection is not None:
            self.require(collection)
            return frozenset({collection})
        if self.key.namespace is None:
            return None
        return frozenset(each.name for each in self.collections())

    def held_collections(self) -> Mapping[str, IngestHold]:
        """Return the holds of collections, by collection."""
        return {h.name: h for h in self.store.holds() if h.kind is IngestHoldKind.COLLECTION}


_log = logging.getLogger(__name__)


def claimed(context: RequestContext, claims: Iterable[ClaimedLot], began: Micros) -> None:
    """Log new claims."""
    for claim in claims:
        ids = {"lot": claim.lot, "run": claim.id, "job": f"{claim.namespace}/{claim.job}"}
        with logs.about(**ids, key=context.key.name):
            _log.info("lot %s is claimed by %s, try %d", claim.lot, claim.owner, claim.attempt)
        tracing.note("claim", began=began, **ids)


def ended(
    context: RequestContext, claims: Sequence[ClaimResult], began: Micros, error: str = ""
) -> None:
    """Log the end of claims; a refused call has changed nothing."""
    for end in claims:
        if end.refused is not None:
            continue
        dataset = ",".join(f"{name.namespace}/{name.name}" for name, _ in end.versions)
        ids = {"lot": end.lot, "run": end.id, "dataset": dataset}
        with logs.about(**ids, key=context.key.name):
            if error:
                _log.warning("lot %s failed and is %s: %s", end.lot, end.state, error)
            else:
                _log.info("lot %s is %s", end.lot, "published" if end.versions else end.state)
        tracing.note("claim.end", began=began, **ids)


def changed(context: RequestContext, what: str, **ids: str) -> None:
    """Log a change of an administrator to a job, a dataset or a lot."""
    with logs.about(**ids, key=context.key.name):
        _log.info("%s by %s", what, context.key.name)
