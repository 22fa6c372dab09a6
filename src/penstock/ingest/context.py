"""The dependencies of the ingest stages: catalog, queue, storage, outbound clients and runtime."""

import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from penstock.access.secrets import Secrets
from penstock.clock import SECOND, Clock, Micros
from penstock.config import Settings
from penstock.errors import Away, Busy, Invalid, PenstockError, Unavailable
from penstock.ingest.archive.ocfl.repository import Depository
from penstock.ingest.collections import find_collection
from penstock.ingest.intake.places import Places
from penstock.ingest.models import Batch, IngestJob
from penstock.ingest.notifications.mail import Mailer
from penstock.ingest.queue.port import IngestStore
from penstock.ingest.workers.backoff import Backoff
from penstock.lots.stores import open_store
from penstock.objects import Objects
from penstock.private_files import make_private_folder
from penstock.schema.ingest import Collection
from penstock.store.write_queue import Command, WriteQueue
from penstock.telemetry import logs

if TYPE_CHECKING:
    import httpx

    from penstock.ingest.archive.ezid import EzidMinter

OCFL = "ocfl"  # the folder of stored objects in the object store
PAYLOADS = "payloads"  # the folder of uploaded payloads in the object store
PAYLOAD_SCHEME = "payload"
PRODUCER = "producer"  # the folder of the depositor's files, while working and in stored objects
RETRY_SECONDS = 1.0
AWAY_RETRY_SECONDS = 5.0
_PROFILE_SECONDS = 1

log = logging.getLogger(__name__)

T = TypeVar("T")


class Postponed(Exception):
    """The job or batch cannot continue yet; it keeps its state and is retried."""


class PermanentFailure(PenstockError):
    """The job fails and cannot be resumed: its payload is not what the depositor declared."""


def postpone_if_away(call: Callable[[], T]) -> T:
    """Call the catalog or the queue; raise Postponed while it is busy or unavailable."""
    try:
        return call()
    except (Busy, Unavailable) as error:
        raise Postponed(str(error)) from None


class CollectionCache:
    """Collection profiles, each at most a second old."""

    def __init__(self, catalog: WriteQueue, clock: Clock) -> None:
        self._catalog = catalog
        self._clock = clock
        self._profiles: dict[str, tuple[Micros, Collection]] = {}  # by name, with the expiry time

    def get(self, name: str) -> Collection:
        """Return the profile of a collection."""
        now = self._clock()
        entry = self._profiles.get(name)
        if entry is None or entry[0] <= now:
            with self._catalog.read() as tx:
                entry = now + _PROFILE_SECONDS * SECOND, find_collection(tx, name)
            self._profiles[name] = entry
        return entry[1]

    def of_job(self, job: IngestJob) -> Collection:
        """Return the profile of a job's collection; Postponed while the catalog is away."""
        return postpone_if_away(lambda: self.get(job.configuration.profile_name))


class StorageRegistry:
    """Open object stores and repositories, and the working folders of batches and jobs.

    `away_until` has, by storage URL, the time before which a storage that did not answer is not
    tried again on behalf of other collections.
    """

    def __init__(self, catalog: WriteQueue, settings: Settings) -> None:
        self.away_until: dict[str, Micros] = {}
        self._catalog = catalog
        self._settings = settings
        self._depositories: dict[str, Depository] = {}
        self._lock = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}

    def depository(self, collection: Collection) -> Depository:
        """Return the repository of a collection; open and prepare it on first use."""
        url = collection.storage or self._settings.objects
        with self._lock:
            opening = self._opening.setdefault(url, threading.Lock())
        # A storage that does not answer delays only the callers that need it.
        with opening:
            if url not in self._depositories:
                objects = open_store(self._catalog, url, OCFL)
                objects.check()
                depository = Depository(objects)
                depository.prepare()
                self._depositories[url] = depository
            return self._depositories[url]

    @cached_property
    def objects(self) -> Objects:
        """The object store of lots and uploads, opened on first use."""
        return open_store(self._catalog, self._settings.objects)

    @contextmanager
    def open_upload(self, url: str) -> Iterator[Iterator[bytes]]:
        """Read a payload that was uploaded to this server."""
        with self.objects.get_stream(upload_key(url)) as chunks:
            yield chunks

    def upload_size(self, url: str) -> int | None:
        """Return the size in bytes of an uploaded payload."""
        return self.objects.size(upload_key(url))

    def working_folder(self) -> Path:
        """Return the folder that has the working folders of batches; create it if missing."""
        folder = Path(self._settings.ingest_folder).absolute()
        try:
            make_private_folder(folder)
        except OSError as error:
            file = next((path for path in (folder, *folder.parents) if path.is_file()), None)
            reason = f"{file} is a file" if file is not None else error.strerror or str(error)
            raise Unavailable(
                f"the ingest folder {folder} cannot be made: {reason}; "
                "correct that, or set ingest_folder to another"
            ) from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise Unavailable(
                f"the ingest folder {folder} cannot be written to; "
                "correct that, or set ingest_folder to another"
            )
        return folder

    def batch_folder(self, batch_id: str) -> Path:
        """Return the working folder of a batch; the folders of its jobs are inside it."""
        return Path(self._settings.ingest_folder) / batch_id

    def remove_job_folder(self, job: IngestJob) -> None:
        """Remove the working folder of a job."""
        shutil.rmtree(job.configuration.working_dir, ignore_errors=True)


class OutboundClients:
    """Clients of other servers: HTTP by collection, EZID, mail, and the secrets they need.

    `mail_hangs_until` is the monotonic time before which no mail is tried: the mail server hung.
    """

    def __init__(
        self,
        settings: Settings,
        mailer: Mailer,
        secrets: Secrets,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.mailer = mailer
        self.secrets = secrets
        self.mail_hangs_until = 0.0
        self.settings = settings
        self._sleep = sleep
        self._clients: dict[Places, httpx.Client] = {}
        self._lock = threading.Lock()

    def client(self, collection: Collection) -> "httpx.Client":
        """Return the HTTP client that reaches the places a collection allows."""
        return self._client(Places(collection.places))

    def _client(self, places: Places) -> "httpx.Client":
        # Imported late: httpx slows the start of a server that fetches nothing.
        from penstock.ingest.intake.outbound import open_client

        with self._lock:
            if places not in self._clients:
                self._clients[places] = open_client(places)
            return self._clients[places]

    def ezid(self, collection: Collection) -> "EzidMinter":
        """Return the minter of a collection whose ARKs come from EZID."""
        from penstock.ingest.archive.ezid import EzidMinter

        settings = self.settings
        if not settings.ezid_user or not settings.ezid_password:
            raise Invalid(
                f"collection {collection.name} has its ARKs from EZID, but there is no account: "
                "set ezid_user and ezid_password, then resume the job"
            )
        return EzidMinter(
            collection.shoulder,
            settings.ezid_url,
            settings.ezid_user,
            settings.ezid_password,
            self._client(Places((settings.ezid_url,))),
            sleep=self._sleep,
        )

    def close(self) -> None:
        """Close every HTTP connection."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()


@dataclass
class Runtime:
    """Settings, clock and stop signal of this process, and the reasons its work is postponed.

    `waits` has, by id, the reason why a job or batch could not continue at its last try.
    """

    settings: Settings
    clock: Clock
    stopping: threading.Event = field(default_factory=threading.Event)
    waits: dict[str, str] = field(default_factory=dict)
    _troubles: dict[str, logs.Trouble] = field(default_factory=dict)

    def is_stopping(self) -> bool:
        """Whether long work has to be abandoned."""
        return self.stopping.is_set()

    def pause(self, seconds: float) -> None:
        """Wait, or return at once when the worker stops."""
        self.stopping.wait(seconds)

    def postpone(self, item: IngestJob | Batch, reason: Exception) -> Backoff:
        """Log and note why an item keeps its state; return its backoff."""
        is_away = isinstance(reason, Away)
        level = logging.WARNING if is_away else logging.INFO
        log.log(level, "%s stays %s: %s", item.id, item.status, reason)
        self.waits[item.id] = str(reason)
        if is_away:
            return Backoff(AWAY_RETRY_SECONDS, is_of_all=True)
        return self.back_off()

    def back_off(self) -> Backoff:
        """Pause this thread, because the trouble may concern every item; then back off the item."""
        self.pause(RETRY_SECONDS)
        return Backoff(RETRY_SECONDS)

    def trouble(self, words: str) -> logs.Trouble:
        """Return the shared trouble of this name, so that several daemons log it once."""
        return self._troubles.setdefault(words, logs.Trouble(log, words))


@dataclass
class IngestContext:
    """The dependencies of the stages in one process; every method may be called in any thread."""

    catalog: WriteQueue
    store: IngestStore
    collections: CollectionCache
    storage: StorageRegistry
    outbound: OutboundClients
    runtime: Runtime

    def write(self, command: Command[T]) -> T:
        """Write to the catalog; Postponed while it is away."""
        return postpone_if_away(lambda: self.catalog.submit(command).result())

    def close(self) -> None:
        """Release every lock and close every outbound connection."""
        self.store.close()
        self.outbound.close()


def upload_key(url: str) -> str:
    """Return the key of an uploaded payload in the object store."""
    return f"{PAYLOADS}/{url.removeprefix(f'{PAYLOAD_SCHEME}:')}"
