"""A worker that is told to stop in the middle of its work fails nothing, and another goes on."""

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from penstock.ingest.intake.checkm import ManifestKind, write
from penstock.schema.ingest import PayloadType
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import Site, row
from tests.doors.waiting import until
from tests.patience import HANG_SECONDS
from tests.web import Answer, Request, content, head, status

pytestmark = pytest.mark.parametrize("site", ["sqlite", "zookeeper"], indirect=True)

BODY = b"x,y\n1,2\n" * 100_000


class Interrupted:
    """An answer that comes only when the worker is stopping, and then in many pieces."""

    def __init__(self, site: Site, answer: Answer) -> None:
        self.asked = threading.Event()
        self._site = site
        self._answer = answer

    def __call__(self, request: Request, connection: socket.socket) -> None:
        if request.method != "HEAD":
            self.asked.set()
            self._site.stopped.wait(HANG_SECONDS)
        self._answer(request, connection)


def in_a_batch_manifest(site: Site) -> tuple[str, dict[str, Any], bytes]:
    rows = [row(site.web.on("/map.csv", content(BODY)), BODY)]
    return "/in.checkm", {}, write(ManifestKind.FILES, rows)


def in_an_object_manifest(site: Site) -> tuple[str, dict[str, Any], bytes]:
    rows = [row(site.web.on("/map.csv", content(BODY)), BODY)]
    asked = {"type": PayloadType.OBJECT_MANIFEST}
    return "/in.checkm", asked, write(ManifestKind.OBJECT, rows)


def in_a_file(site: Site) -> tuple[str, dict[str, Any], bytes]:
    return "/map.csv", {}, BODY


@pytest.mark.parametrize("make", [in_a_batch_manifest, in_an_object_manifest, in_a_file])
def test_stopping_while_something_is_fetched(
    site: Site, make: Callable[[Site], tuple[str, dict[str, Any], bytes]]
) -> None:
    path, asked, body = make(site)
    first = Interrupted(site, content(body, cut_after=len(body) // 2))
    batch = site.deposit(site.web.on(path, first, content(body)), **asked)
    with site.working():
        assert first.asked.wait(HANG_SECONDS)
    assert site.batch(batch).status in (BatchState.PENDING, BatchState.PROCESSING)
    assert {job.status for job in site.jobs(batch)} <= {
        IngestState.PENDING,
        IngestState.DOWNLOADING,
    }
    assert not site.batch(batch).locked_by
    assert not [job for job in site.jobs(batch) if job.locked_by]
    assert site.run(batch)[0].status is BatchState.COMPLETED
    assert site.content(site.only_job(batch).identifiers.primary) == {"map.csv": BODY}


def test_stopping_while_a_callback_is_not_taken(site: Site) -> None:
    first = Interrupted(site, status(500))
    site.web.on("/callback", first, site.receiver)
    batch = site.deposit(site.web.on("/map.csv", content(BODY)))
    with site.working():
        assert first.asked.wait(HANG_SECONDS)
    job = site.only_job(batch)
    assert (job.status, job.locked_by) == (IngestState.NOTIFY, "")
    assert site.run(batch)[0].status is BatchState.COMPLETED
    assert len(site.receiver.calls) == 1
    assert len(site.web.requests_to("/callback", "POST")) == 2


def test_stopping_while_a_file_drips(site: Site) -> None:
    """What has come is kept, and the next worker asks for the rest."""
    dripping = threading.Event()

    def drip(request: Request, connection: socket.socket) -> None:
        connection.sendall(head(200, {"Content-Length": len(BODY), "ETag": '"one"'}))
        if request.method == "GET":
            connection.sendall(BODY[: len(BODY) // 2])
            parts = site.folder.rglob
            until(lambda: any(part.stat().st_size for part in parts(".producer.parts/*")))
            dripping.set()
            site.stopped.wait(HANG_SECONDS)
            connection.sendall(BODY[len(BODY) // 2 : -1])

    batch = site.deposit(site.web.on("/map.csv", drip, content(BODY)))
    with site.working():
        assert dripping.wait(HANG_SECONDS)
    assert site.only_job(batch).status is IngestState.DOWNLOADING
    assert site.run(batch)[0].status is BatchState.COMPLETED
    [_, again] = site.web.requests_to("/map.csv")
    assert again.headers["range"].startswith("bytes=")
    assert site.content(site.only_job(batch).identifiers.primary) == {"map.csv": BODY}
