"""The composition root: opens everything from the settings, and closes it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Self

from penstock import ids
from penstock.access.keys import Keys
from penstock.access.secrets import Secrets, open_secrets
from penstock.catalog.writes import open_write_queue
from penstock.clock import Clock, system_clock
from penstock.config import Settings
from penstock.db import Database, open_database
from penstock.errors import Conflict
from penstock.ingest import collections
from penstock.ingest.context import IngestContext
from penstock.ingest.opening import open_ingest
from penstock.ingest.service import IngestService
from penstock.locks.lease_expiry import Sweeper
from penstock.objects import Objects
from penstock.store.write_queue import WriteQueue
from penstock.subscribers import commands

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plane:
    """The database of a process, and the services on top of it."""

    settings: Settings
    clock: Clock
    database: Database
    catalog: WriteQueue
    keys: Keys
    sweeper: Sweeper
    context: IngestContext
    desk: IngestService

    @classmethod
    def open(
        cls,
        settings: Settings,
        clock: Clock = system_clock,
        observe: Callable[[int, float], None] = lambda writes, seconds: None,
    ) -> Self:
        """Open the database and the queue; start the writer and the sweeper.

        `observe` gets the number of commands of each batch and its seconds.
        """
        database = open_database(settings.database)
        try:
            database.migrate()
            secrets = open_secrets(settings)
            check_secrets(database, secrets)
            catalog = open_write_queue(
                database,
                clock=clock,
                batch_events_max=settings.batch_events_max,
                queue_length_max=settings.queue_length_max,
                observe=observe,
            )
            sweeper = Sweeper(catalog, clock=clock, every_seconds=settings.sweep_seconds)
            context = open_ingest(settings, catalog, clock, secrets)
            catalog.start()
            sweeper.start()
        except BaseException:
            database.close()
            raise
        keys = Keys(database, clock=clock)
        return cls(
            settings, clock, database, catalog, keys, sweeper, context, IngestService(context)
        )

    @property
    def secrets(self) -> Secrets:
        """The keys that encrypt secrets in the database."""
        return self.context.outbound.secrets

    @property
    def objects(self) -> Objects:
        """The object store with the data and manifests of lots, opened on first use."""
        return self.context.storage.objects

    @cached_property
    def identity(self) -> str:
        """An id that all processes on one database share."""
        with self.database.read() as tx:
            [began_at] = tx.fetch_one("database_began_at") or [0]
        return ids.derived_id("installation", str(began_at))

    def ping(self) -> None:
        """Query one row; raise Unavailable if the database does not answer."""
        with self.database.read() as tx:
            tx.fetch_one("database_began_at")

    def close(self) -> None:
        """Commit and answer queued commands, then close the database."""
        self.context.close()
        self.sweeper.stop()
        self.catalog.stop()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def check_secrets(database: Database, secrets: Secrets) -> None:
    """Warn of stored secrets whose key is missing."""
    with database.read() as tx:
        stored = {**commands.stored_secrets(tx), **collections.stored_secrets(tx)}
    for owner, secret in stored.items():
        try:
            secrets.check(secret)
        except Conflict as error:
            _log.warning("%s: %s", owner, error)
