"""A whole ingest site for one test: a plane with workers, the web, a mail server, a callback.

The web, the mail server and the receiver of callbacks are real servers on this machine. Pauses
between tries are cut short; everything else is as it is for real.
"""

import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from ocfl import StorageRoot

from penstock.access import audit
from penstock.catalog.lineage.graph import lineage
from penstock.catalog.lineage.nodes import dataset_node, job_node
from penstock.catalog.queries import datasets, runs
from penstock.config import Settings
from penstock.ingest.archive import register
from penstock.ingest.archive.register import StoredRow
from penstock.ingest.collections import PutCollection
from penstock.ingest.context import IngestContext
from penstock.ingest.intake.checkm import CheckmRow
from penstock.ingest.intake.deposits import DepositRequest
from penstock.ingest.models import Batch, IngestJob
from penstock.ingest.notifications import callbacks
from penstock.ingest.notifications.reports import BatchReport, report_of
from penstock.ingest.service import AdminAction, IngestService
from penstock.ingest.stages import STAGE_NAMES
from penstock.ingest.workers.pool import Workers
from penstock.objects import Objects
from penstock.plane import Plane
from penstock.schema.ingest import Collection
from penstock.states import BatchState, IngestState, RunState
from tests.clocks import AdjustableClock
from tests.databases import Pool, sqlite_database
from tests.doors.waiting import until
from tests.mail import MailServer
from tests.patience import HANG_SECONDS
from tests.web import Request, Web, head

ADMIN = AdminAction("ann", "asked for")
DEPOSITOR = "jo@example.org"
SECRET = "between us"
PAUSE_SECONDS_MAX = 0.05
ENDED = (BatchState.COMPLETED, BatchState.FAILED, BatchState.HELD)
AT_REST = {IngestState.COMPLETED, IngestState.FAILED, IngestState.HELD}


class Call(NamedTuple):
    """A callback that came: what it said, and whether the catalog had the object by then."""

    said: dict[str, Any]
    key: str
    signed: bool
    recorded: bool
    letters: int


class Receiver:
    """The depositor's program: it looks into the catalog each time that it is called."""

    def __init__(self, plane: Plane, mail: MailServer) -> None:
        self.calls: list[Call] = []
        self.answers = 200
        self._plane = plane
        self._mail = mail

    def __call__(self, request: Request, connection: socket.socket) -> None:
        now = self._plane.clock()
        signature = request.headers.get(callbacks.SIGNATURE.lower())
        said = msgspec.json.decode(request.body, type=dict[str, Any])
        call = Call(
            said,
            request.headers[callbacks.DELIVERY.lower()],
            callbacks.verify(SECRET, signature, request.body, now),
            self._is_recorded(said),
            len(self._mail.messages),
        )
        self.calls.append(call)
        connection.sendall(head(self.answers, {"Content-Length": 0}))

    def _is_recorded(self, said: dict[str, Any]) -> bool:
        with self._plane.catalog.read() as tx:
            rows = register.list_versions(tx, said["ark"])
            run = runs.get_run(tx, said["runId"])
        return run.state == RunState.COMPLETED and said["objectVersion"] == rows[0].version


class Site:
    """What a test does at the site, and what it looks at."""

    def __init__(self, plane: Plane, clock: AdjustableClock, web: Web, mail: MailServer) -> None:
        self.plane = plane
        self.clock = clock
        self.web = web
        self.mail = mail
        self.stopped = threading.Event()  # workers were told to stop, at least once
        self.receiver = Receiver(plane, mail)
        self.folder = Path(plane.settings.ingest_folder)
        self._objects = Path(plane.settings.objects.removeprefix("file://"))
        web.on("/callback", self.receiver)

    @property
    def desk(self) -> IngestService:
        return self.plane.desk

    @property
    def context(self) -> IngestContext:
        return self.plane.context

    def make_collection(self, name: str = "maps", **profile: Any) -> Collection:
        """A collection that may read from the site's web and tells everybody everything."""
        settings: dict[str, Any] = {
            "dataset": name,
            "places": (f"{self.web.url}/",),
            "mail": (DEPOSITOR,),
            "callback": f"{self.web.url}/callback",
            "callback_secret": SECRET,
        }
        collection = Collection(name=name, **settings | profile)
        return self.plane.catalog.submit(PutCollection("ann", collection)).result()

    def deposit(self, url: str, collection: str = "maps", **rest: Any) -> Batch:
        asked = DepositRequest(collection=collection, url=url, submitter="jo", **rest)
        return self.desk.submit(asked).batch

    def upload(self, name: str, content: bytes) -> str:
        """Put a payload where uploads wait."""
        Objects.open(self.plane.settings.objects).put(f"payloads/u1/{name}", content)
        return f"payload:u1/{name}"

    @contextmanager
    def working(self, *stages: str, concurrency: int = 4) -> Iterator[None]:
        """Daemons of some stages, or of all, while the block lasts."""
        workers = Workers(
            self.context,
            stages or STAGE_NAMES,
            concurrency=concurrency,
            poll_seconds=0.05,
            stop_seconds_max=HANG_SECONDS,
        )
        workers.start()
        try:
            yield
        finally:
            self.context.runtime.stopping.set()
            self.stopped.set()
            workers.stop()
            self.context.runtime.stopping.clear()

    def run(self, *batches: Batch) -> list[Batch]:
        """Work until these batches have ended or are held."""
        with self.working():
            return [self.ended(batch) for batch in batches]

    def ended(self, batch: Batch) -> Batch:
        until(lambda: self.batch(batch).status in ENDED)
        return self.batch(batch)

    def at_rest(self, batch: Batch) -> Batch:
        """The batch once none of its jobs is under way, whatever the batch itself is."""
        until(lambda: {line.status for line in self.context.store.tally(batch.id)} <= AT_REST)
        return self.batch(batch)

    def batch(self, batch: Batch) -> Batch:
        return self.context.store.batch(batch.id)

    def job(self, job: IngestJob) -> IngestJob:
        return self.context.store.job(job.id)

    def jobs(self, batch: Batch) -> list[IngestJob]:
        return self.context.store.jobs(batch.id, 1000)

    def only_job(self, batch: Batch) -> IngestJob:
        [job] = self.jobs(batch)
        return job

    def by_name(self, batch: Batch) -> dict[str, IngestJob]:
        return {job.configuration.payload_name: job for job in self.jobs(batch)}

    def reach(self, batch: Batch, status: IngestState) -> IngestJob:
        """The batch's only job, once it is in this state."""
        until(lambda: [job.status for job in self.jobs(batch)] == [status])
        return self.only_job(batch)

    def report(self, batch: Batch) -> BatchReport:
        report = report_of(self.batch(batch))
        assert report is not None
        return report

    def letters(self) -> list[str]:
        return [str(message["Subject"]) for message in self.mail.messages]

    def letter(self, number: int = -1) -> str:
        """What a letter says; its lines are as they were written."""
        content = self.mail.messages[number].get_content()
        assert isinstance(content, str)
        return content.replace("\r\n", "\n")

    def audited(self) -> list[tuple[str, str, str, str]]:
        """Who did what to what, and the detail; oldest first."""
        with self.plane.catalog.read() as tx:
            found = audit.entries(tx, 1000)
        return [(each.who, each.action, each.target, each.detail) for each in reversed(found)]

    def stored(self, job: IngestJob) -> StoredRow:
        with self.plane.catalog.read() as tx:
            [row] = register.stored_versions(tx, [job.configuration.key])
        return row

    def versions(self, ark: str) -> list[int]:
        with self.plane.catalog.read() as tx:
            return [row.version for row in register.list_versions(tx, ark)]

    def content(
        self, ark: str | None, version: int | None = None, part: str = "producer"
    ) -> dict[str, bytes]:
        """The files of a stored object, as they are read back."""
        assert ark is not None
        depository = self.context.storage.depository(self.context.collections.get("maps"))
        found = {}
        for file in depository.files(ark, version):
            with depository.open_file(ark, file.name, version) as chunks:
                found[file.name] = b"".join(chunks)
        prefix = f"{part}/"
        return {
            name.removeprefix(prefix): content
            for name, content in found.items()
            if name.startswith(prefix)
        }

    def check(self) -> None:
        """Nothing is wrong with the queue, nor with any stored object."""
        assert self.context.store.check() == []
        if (self._objects / "ocfl").exists():
            root = StorageRoot(root=str(self._objects / "ocfl"))
            assert root.validate(log_warnings=True), root.log.status_str()
            assert root.good_objects == root.num_objects

    def check_recorded(self, job: IngestJob, dataset: str = "maps") -> None:
        """The catalog has the run, what it read, the version that it made and the way between."""
        source = self._named(job.configuration.source_url or job.configuration.payload_url)
        with self.plane.catalog.read() as tx:
            run = runs.get_run(tx, self.stored(job).run_id)
            [made] = [each.dataset_version_id for each in run.output_dataset_versions]
            [read] = [each.dataset_version_id for each in run.input_dataset_versions]
            version = datasets.get_dataset_version(tx, "default", dataset, made.version)
            graph = lineage(tx, dataset_node("default", dataset), direction="upstream")
        assert run.state == RunState.COMPLETED
        assert version.created_by_run is not None
        assert version.created_by_run.id == run.id
        assert (read.namespace, read.name) == source
        edges = {(edge.origin, edge.destination) for node in graph.graph for edge in node.in_edges}
        work = job_node("default", f"ingest.{dataset}")
        assert {(dataset_node(*source), work), (work, dataset_node("default", dataset))} <= edges

    def _named(self, url: str) -> tuple[str, str]:
        """The namespace and the name that the catalog has for a payload."""
        if url.startswith(self.web.url):
            return self.web.url, url.removeprefix(self.web.url)
        scheme, _, rest = url.partition(":")
        return scheme, rest.removeprefix("//")


class Gate:
    """A file that comes only when the gate is opened."""

    def __init__(self, site: Site, body: bytes) -> None:
        self.asked = threading.Event()
        self.url = site.web.on("/gated.csv", self._answer)
        self._body = body
        self._open = threading.Event()

    def _answer(self, request: Request, connection: socket.socket) -> None:
        connection.sendall(head(200, {"Content-Length": len(self._body)}))
        if request.method == "GET":
            self.asked.set()
            self._open.wait(HANG_SECONDS)
            connection.sendall(self._body)

    def open(self) -> None:
        self._open.set()


def row(url: str, content: bytes | None = None, **rest: Any) -> CheckmRow:
    """A row for this URL, with the digest and the size of its content if that is given."""
    known: dict[str, Any] = {"line": 0, "url": url, "name": url.rpartition("/")[2]}
    if content is not None:
        digest = hashlib.sha256(content).hexdigest()
        known |= {"algorithm": "sha-256", "digest": digest, "size": len(content)}
    return CheckmRow(**known | rest)


@pytest.fixture(params=["sqlite", "postgresql", "zookeeper"])
def site(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    """A site on each backend; with ZooKeeper the queue is there, and the catalog in SQLite."""
    with _database(request, tmp_path) as places, Web() as web, MailServer.start() as mail:
        clock = AdjustableClock()
        settings = Settings(
            **places,
            objects=f"file://{tmp_path / 'objects'}",
            ingest_folder=str(tmp_path / "work"),
            smtp=mail.url,
            mail_from="penstock@example.org",
            space_free_mb=0,
        )
        with Plane.open(settings, clock) as plane:
            pause = _short(plane.context.runtime.stopping.wait)
            monkeypatch.setattr(plane.context.runtime, "pause", pause)
            found = Site(plane, clock, web, mail)
            found.make_collection()
            yield found
            found.check()


@contextmanager
def _database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    if request.param == "postgresql":
        pool: Pool = request.getfixturevalue("postgres_pool")
        places = {"database": pool.take()}
        yield places
        pool.give_back(places["database"])
        return
    places = {"database": sqlite_database(tmp_path / "penstock.db")}
    if request.param == "zookeeper":
        places["queue"] = request.getfixturevalue("zookeeper_url")
    yield places


def _short(wait: Callable[[float], object]) -> Callable[[float], None]:
    def pause(seconds: float) -> None:
        wait(min(seconds, PAUSE_SECONDS_MAX))

    return pause
