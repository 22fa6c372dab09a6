"""Open the ingest context and the queue that the settings name."""

import os
import socket

from penstock.access.secrets import Secrets, open_secrets
from penstock.clock import Clock
from penstock.config import Settings
from penstock.ingest.context import (
    CollectionCache,
    IngestContext,
    OutboundClients,
    Runtime,
    StorageRegistry,
)
from penstock.ingest.models import NumberRange, NumberSequence, Reservation
from penstock.ingest.notifications.mail import Mailer
from penstock.ingest.queue.port import IngestStore
from penstock.ingest.queue.sql.commands import ReserveNumbers
from penstock.ingest.queue.sql.store import SqlIngestStore
from penstock.store.write_queue import WriteQueue

IN_DATABASE = "database"


def open_ingest(
    settings: Settings, catalog: WriteQueue, clock: Clock, secrets: Secrets | None = None
) -> IngestContext:
    """Open the dependencies of the ingest service and the daemons of this process."""
    mailer = Mailer.open(settings.smtp, settings.mail_from, clock=clock)
    store = open_store(settings, catalog, clock)
    secrets = secrets or open_secrets(settings)
    return IngestContext(
        catalog,
        store,
        CollectionCache(catalog, clock),
        StorageRegistry(catalog, settings),
        OutboundClients(settings, mailer, secrets),
        Runtime(settings, clock),
    )


def open_store(settings: Settings, catalog: WriteQueue, clock: Clock) -> IngestStore:
    """Open a session on the queue in the name of this process."""
    owner = f"{socket.gethostname()}:{os.getpid()}"
    seconds = settings.ingest_session_seconds
    if settings.queue == IN_DATABASE:
        return SqlIngestStore(catalog, owner, session_seconds=seconds)
    # Imported late: a queue in the database needs no ZooKeeper client.
    from penstock.ingest.queue.zookeeper.store import ZkIngestStore
    from penstock.zookeeper import ZooKeeperSession

    def reserve(
        queue: str, name: NumberSequence, wanted: NumberRange, is_put_back: bool | None
    ) -> Reservation:
        return catalog.submit(ReserveNumbers(queue, name, wanted, is_put_back)).result()

    session = ZooKeeperSession.open(settings.queue, session_seconds=seconds)
    return ZkIngestStore(session, owner, clock=clock, reserve=reserve)
