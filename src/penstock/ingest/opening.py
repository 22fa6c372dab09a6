"""Opening ingest from the settings: the store where the queue is kept, and the tools around it."""

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
from penstock.ingest.models import Numbered, Numbers, Reserved
from penstock.ingest.notifications.mail import Mailer
from penstock.ingest.queue.port import IngestStore
from penstock.ingest.queue.sql.commands import ReserveNumbers
from penstock.ingest.queue.sql.store import SqlIngestStore
from penstock.store.write_queue import WriteQueue

IN_DATABASE = "database"


def open_ingest(
    settings: Settings, catalog: WriteQueue, clock: Clock, secrets: Secrets | None = None
) -> IngestContext:
    """Everything that the desk and the daemons of this process work with."""
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
    """A session of its own on the queue, in the name of this process."""
    owner = f"{socket.gethostname()}:{os.getpid()}"
    seconds = settings.ingest_session_seconds
    if settings.queue == IN_DATABASE:
        return SqlIngestStore(catalog, owner, session_seconds=seconds)
    # Whoever keeps the queue in the database has no need of a ZooKeeper client.
    from penstock.ingest.queue.zookeeper.store import ZkIngestStore
    from penstock.zookeeper import Session

    def reserve(queue: str, name: Numbered, wanted: Numbers, is_put_back: bool | None) -> Reserved:
        return catalog.submit(ReserveNumbers(queue, name, wanted, is_put_back)).result()

    session = Session.open(settings.queue, session_seconds=seconds)
    return ZkIngestStore(session, owner, clock=clock, reserve=reserve)
