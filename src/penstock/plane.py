"""The composition root: opens everything from the settings, and closes it again."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Self

from penstock import ids
from penstock.access import audit
from penstock.access.keys import Keys
from penstock.access.secrets import Secrets, is_sealed, open_secrets
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
    """One process's database, and the capabilities on top of it."""

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
        """Open the database and the queue, start the writer and the sweeper.

        `observe` is told of every batch: how many writes it held and how many seconds it took.
        """
        database = open_database(settings.database)
        try:
            database.migrate()
            audit.begin_chain(database)
            secrets = open_secrets(settings)
            seal_secrets(database, secrets)
            catalog = WriteQueue(
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
        """What encrypts the secrets in the database."""
        return self.context.outbound.secrets

    @property
    def objects(self) -> Objects:
        """Where the data and the manifests of lots are; opened when it is first asked for."""
        return self.context.storage.objects

    @cached_property
    def identity(self) -> str:
        """What all processes on one database have in common, and those on another have not."""
        with self.database.read() as tx:
            [began_at] = tx.fetch_one("database_began_at") or [0]
        return ids.derived_id("installation", str(began_at))

    def ping(self) -> None:
        """Ask the database for a row; Unavailable if it does not answer."""
        with self.database.read() as tx:
            tx.fetch_one("database_began_at")

    def close(self) -> None:
        """Commit and answer what is queued, then close the database."""
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


def seal_secrets(database: Database, secrets: Secrets) -> None:
    """Encrypt the secrets that were stored in plain text; warn of those that cannot be read."""
    with database.read() as tx:
        stored = {**commands.stored_secrets(tx), **collections.stored_secrets(tx)}
    for owner, secret in stored.items():
        try:
            secrets.check(secret)
        except Conflict as error:
            _log.warning("%s: %s", owner, error)
    if not all(map(is_sealed, stored.values())):
        with database.write() as tx:
            commands.seal_secrets(tx, secrets)
            collections.seal_secrets(tx, secrets)
        _log.info("secrets that were stored in plain text are encrypted now")
