"""What the stages work with: the store, the register, the outside world and the time."""

import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
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

    from penstock.ingest.archive.minting import EzidMinter

OCFL = "ocfl"  # where objects are kept, in the object store
PAYLOADS = "payloads"  # where uploaded payloads wait, in the object store
PAYLOAD_SCHEME = "payload"
PRODUCER = "producer"  # what the depositor made, in a working folder and in a stored object
TROUBLE_SECONDS = 1.0
_AWAY_SECONDS = 5.0  # something that does not answer is asked less often
_PROFILE_SECONDS = 1

log = logging.getLogger(__name__)


T = TypeVar("T")


class Later(Exception):
    """A job cannot go on yet: it stays where it is, and is looked at again."""


class ForGood(PenstockError):
    """A job fails, and no resume can help: its payload is not what its depositor says it is."""


def patiently(ask: Callable[[], T]) -> T:
    """Ask the catalog or the queue: while they are away, a job waits and does not fail."""
    try:
        return ask()
    except (Busy, Unavailable) as error:
        raise Later(str(error)) from None


@dataclass
class IngestContext:
    """One process's tools; every method may be called from any thread.

    `waits` is what could not go on when this process last tried, by id, and why. `away` is until
    when storages of other collections are not asked again, because they did not answer;
    `mail_hangs_until` is the same of the mail server, by the monotonic clock.
    """

    settings: Settings
    catalog: WriteQueue
    store: IngestStore
    clock: Clock
    mailer: Mailer
    secrets: Secrets
    sleep: Callable[[float], None] = time.sleep
    stopping: threading.Event = field(default_factory=threading.Event)
    waits: dict[str, str] = field(default_factory=dict)
    away: dict[str, Micros] = field(default_factory=dict)
    mail_hangs_until: float = 0.0
    _profiles: dict[str, tuple[Micros, Collection]] = field(default_factory=dict)
    _depositories: dict[str, Depository] = field(default_factory=dict)
    _clients: "dict[Places, httpx.Client]" = field(default_factory=dict)
    _opening: threading.Lock = field(default_factory=threading.Lock)
    _opening_of: dict[str, threading.Lock] = field(default_factory=dict)
    _connecting: threading.Lock = field(default_factory=threading.Lock)
    _troubles: dict[str, logs.Trouble] = field(default_factory=dict)

    def collection(self, name: str) -> Collection:
        """The profile of a collection, at most a second old."""
        now = self.clock()
        kept = self._profiles.get(name)
        if kept is None or kept[0] <= now:
            with self.catalog.read() as tx:
                kept = now + _PROFILE_SECONDS * SECOND, find_collection(tx, name)
            self._profiles[name] = kept
        return kept[1]

    def profile(self, job: IngestJob) -> Collection:
        """The profile of a job's collection; Later while the catalog is away."""
        return patiently(lambda: self.collection(job.configuration.profile_name))

    def write(self, command: Command[T]) -> T:
        """Write to the catalog; Later while it is away."""
        return patiently(lambda: self.catalog.submit(command).result())

    def depository(self, collection: Collection) -> Depository:
        """Where the objects of a collection are kept; made when it is first used."""
        url = collection.storage or self.settings.objects
        with self._opening:
            opening = self._opening_of.setdefault(url, threading.Lock())
        # One that does not answer holds up only those that need it.
        with opening:
            if url not in self._depositories:
                objects = open_store(self.catalog, url, OCFL)
                objects.check()
                depository = Depository(objects)
                depository.prepare()
                self._depositories[url] = depository
            return self._depositories[url]

    @cached_property
    def objects(self) -> Objects:
        """Where lots and uploads are; opened when it is first asked for."""
        return open_store(self.catalog, self.settings.objects)

    def client(self, collection: Collection) -> "httpx.Client":
        """The way to the outside that a collection allows."""
        return self._client(Places(collection.places))

    def _client(self, places: Places) -> "httpx.Client":
        # Late, because it loads httpx: a server that fetches nothing starts faster without.
        from penstock.ingest.intake.outbound import open_client

        with self._connecting:
            if places not in self._clients:
                self._clients[places] = open_client(places)
            return self._clients[places]

    def ezid(self, collection: Collection) -> "EzidMinter":
        """The minter of a collection that has its ARKs from EZID."""
        from penstock.ingest.archive.minting import EzidMinter

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
            sleep=self.sleep,
        )

    @contextmanager
    def uploaded(self, url: str) -> Iterator[Iterator[bytes]]:
        """A payload that was uploaded to this server."""
        key = upload_key(url)
        with self.objects.get_stream(key) as chunks:
            yield chunks

    def uploaded_size(self, url: str) -> int | None:
        """How many bytes a payload has that was uploaded to this server."""
        return self.objects.size(upload_key(url))

    @property
    def uploads(self) -> Callable[[str], AbstractContextManager[Iterator[bytes]]]:
        """How `payload:` URLs are read."""
        return self.uploaded

    def stop(self) -> bool:
        """Whether long work should be given up."""
        return self.stopping.is_set()

    def has_to_wait(self, what: IngestJob | Batch, reason: Exception) -> Backoff:
        """Say why something stays where it is, and what is passed over until it is looked at."""
        is_away = isinstance(reason, Away)
        level = logging.WARNING if is_away else logging.INFO
        log.log(level, "%s stays %s: %s", what.id, what.status, reason)
        self.waits[what.id] = str(reason)
        if is_away:
            return Backoff(_AWAY_SECONDS, is_of_all=True)
        return self.rest()

    def trouble(self, words: str) -> logs.Trouble:
        """A trouble that is told once for all who meet it: several daemons have one name."""
        return self._troubles.setdefault(words, logs.Trouble(log, words))

    def rest(self) -> Backoff:
        """Pause, as what is in trouble may be so for all; then it rests alone for as long."""
        self.pause(TROUBLE_SECONDS)
        return Backoff(TROUBLE_SECONDS)

    def pause(self, seconds: float) -> None:
        """Wait, but not for long once the worker is to stop."""
        self.stopping.wait(seconds)

    def working_folder(self) -> Path:
        """The folder in which batches have theirs; made if it is not there."""
        folder = Path(self.settings.ingest_folder).absolute()
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
        """The working folder of a batch; its jobs have theirs inside."""
        return Path(self.settings.ingest_folder) / batch_id

    def forget_folder(self, job: IngestJob) -> None:
        """Remove the working folder of a job; the batch's own goes with the last one."""
        folder = Path(job.configuration.working_dir)
        shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Give up every lock, and close every connection to the outside."""
        self.store.close()
        with self._connecting:
            for client in self._clients.values():
                client.close()
            self._clients.clear()


def upload_key(url: str) -> str:
    """Where the object store keeps an uploaded payload."""
    return f"{PAYLOADS}/{url.removeprefix(f'{PAYLOAD_SCHEME}:')}"
