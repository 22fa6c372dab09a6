"""A server with a collection that may read a folder, and workers that run while they are asked."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from penstock.ingest.opening import open_ingest
from penstock.ingest.stages import STAGE_NAMES
from penstock.ingest.workers.pool import Workers
from penstock.objects import Objects
from tests.doors.serving import Running, path, running
from tests.doors.waiting import until

WHY = {"why": "asked for"}
ENDED = {"completed", "failed", "held"}


@dataclass(frozen=True)
class Ingesting:
    """A server, and the folder that collection `maps` of namespace `geo` may read."""

    server: Running
    folder: Path

    @property
    def client(self) -> httpx.Client:
        return self.server.client

    def put_collection(self, name: str = "maps", **profile: Any) -> dict[str, Any]:
        """Make a collection, or change it."""
        given = {"dataset": name, "namespace": "geo", "places": [self.folder.as_uri()], **profile}
        return good(self.client.put(path("ingest", "collections", name), json=given))

    def file(self, name: str, content: bytes = b"a,b\n1,2\n") -> str:
        """The URL of a file in the folder."""
        (self.folder / name).write_bytes(content)
        return (self.folder / name).as_uri()

    def missing(self, name: str) -> str:
        """The URL of a file that is not there yet."""
        return (self.folder / name).as_uri()

    def submit(self, url: str, collection: str = "maps", **more: Any) -> dict[str, Any]:
        """Submit a payload, and give its batch."""
        body = {"collection": collection, "url": url, **more}
        return good(self.client.post(path("ingest", "batches"), json=body), 201)

    def batch(self, batch_id: str) -> dict[str, Any]:
        return good(self.client.get(path("ingest", "batches", batch_id)))

    def jobs(self, batch_id: str) -> list[dict[str, Any]]:
        found = good(self.client.get(path("ingest", "batches", batch_id, "jobs")))
        jobs: list[dict[str, Any]] = found["jobs"]
        return jobs

    def ended(self, batch_id: str) -> dict[str, Any]:
        """The batch once nobody works on it any more."""
        until(lambda: self.batch(batch_id)["status"] in ENDED)
        return self.batch(batch_id)

    def queued(self, url: str, **more: Any) -> tuple[str, str]:
        """A batch with one job that nobody has begun: their ids."""
        batch = self.submit(url, **more)["id"]
        with self.working("batch-pending"):
            until(lambda: self.batch(batch)["status"] == "processing")
        return batch, self.jobs(batch)[0]["id"]

    def failed(self, name: str, **more: Any) -> tuple[str, str]:
        """A batch whose one job failed because its file is missing: their ids."""
        batch = self.submit(self.missing(name), **more)["id"]
        with self.working():
            assert self.ended(batch)["status"] == "failed"
        return batch, self.jobs(batch)[0]["id"]

    @contextmanager
    def working(self, *stages: str) -> Iterator[None]:
        """Workers of some stages, or of all, with a session of their own."""
        with working(self.server, *stages):
            yield

    def uploaded(self) -> list[str]:
        """What is there of uploads, finished or not."""
        store = Objects.open(self.server.plane.settings.objects)
        root = Path(self.server.plane.settings.objects.removeprefix("file://"))
        unfinished = [str(file) for file in root.glob(".put-*")]
        return [entry.key for entry in store.list("payloads")] + unfinished

    def audit(self) -> list[tuple[str, str, str, str]]:
        """The audit log, oldest first."""
        found = good(self.client.get(path("audit"), params={"limit": 1000}))["entries"]
        return [(e["who"], e["action"], e["target"], e["detail"]) for e in reversed(found)]


@contextmanager
def ingesting(database_url: str, folder: Path, **settings: Any) -> Iterator[Ingesting]:
    """A server on this database, with collection `maps`."""
    folder.mkdir(exist_ok=True)
    with running(database_url, **settings) as server:
        site = Ingesting(server, folder)
        site.put_collection()
        yield site


@contextmanager
def working(server: Running, *stages: str) -> Iterator[None]:
    """Workers of some stages, or of all, in this process."""
    plane = server.plane
    context = open_ingest(plane.settings, plane.catalog, plane.clock)
    workers = Workers(context, stages or STAGE_NAMES, poll_seconds=0.02, stop_seconds_max=120)
    workers.start()
    try:
        yield
    finally:
        workers.stop()
        context.close()


def good(answer: httpx.Response, status: int = 200) -> dict[str, Any]:
    """What a call answered, which must be this status."""
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found
