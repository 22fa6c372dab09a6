"""Ingest as Python programs use it, against a real server on each database."""

import asyncio
import hashlib
import io
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client import ApiError, AsyncClient, Client, Unreachable, request
from penstock.errors import Unavailable
from penstock.ingest.models import CheckProgress
from penstock.ingest.service import AdminAction, IngestService
from penstock.schema.ingest import Finding, ShownBatch, StateTally
from penstock.server import responses
from tests.doors.ingesting import ENDED, Ingesting, ingesting
from tests.doors.waiting import until

MIB = 1024 * 1024
WHY = "asked for"
LIMIT = 8 * MIB
PATIENCE_SECONDS = 0.5


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Ingesting]:
    with ingesting(database_url, tmp_path / "in", payload_bytes_max=LIMIT) as site:
        yield site


@pytest.fixture
def client(site: Ingesting) -> Iterator[Client]:
    with Client(site.server.server.url) as client:
        yield client


def ended(client: Client, batch_id: str) -> ShownBatch:
    until(lambda: client.batch(batch_id).status in ENDED)
    return client.batch(batch_id)


def test_a_payload_is_uploaded_submitted_and_stored(site: Ingesting, client: Client) -> None:
    content = b"lon,lat\n4.9,52.4\n" * 1000
    payload = client.upload_payload("points #1.csv", io.BytesIO(content))
    sha256 = hashlib.sha256(content).hexdigest()
    assert (payload.size, payload.digests) == (len(content), {"sha-256": sha256})
    batch = client.submit_batch(
        "maps",
        payload.url,
        digest=("sha-256", sha256),
        size=payload.size,
        name="points.csv",
        local_id="p1",
        who="Jo",
        what="Points",
        key="once",
    )
    assert (batch.status, batch.payload_name, batch.submitter) == ("pending", "points.csv", "local")
    again = client.submit_batch("maps", payload.url, key="once")
    assert again.id == batch.id
    assert [b.id for b in client.batches(status="pending", collection="maps").batches] == [batch.id]
    with site.working():
        done = ended(client, batch.id)
    assert (done.status, done.jobs) == ("completed", 1)
    assert done.tally == {"completed": StateTally(1, len(content))}
    (job,) = client.batch_jobs(batch.id, status="completed").jobs
    assert client.ingest_job(job.id) == job
    assert (job.title, job.local_ids) == ("Points", ["p1"])
    assert client.batch_report(batch.id).successful_jobs == [job.id]
    (kept,) = client.objects(collection="maps").objects
    assert client.object_versions(kept.ark).versions == [kept]
    names = [file.name for file in client.object_files(kept.ark, 1).files]
    assert "producer/points.csv" in names
    assert client.object_files(kept.ark).files == client.object_files(kept.ark, 1).files
    assert client.run(kept.run_id).state == "COMPLETED"


def test_an_upload_begins_where_the_file_stands(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "big.bin"
    path.write_bytes(b"head" + b"x" * (3 * MIB))
    with path.open("rb") as file:
        file.seek(4)
        assert client.upload_payload("big.bin", file).size == 3 * MIB


def test_an_upload_may_be_made_while_it_is_sent(client: Client) -> None:
    made = (bytes([n]) * 70_000 for n in range(40))
    payload = client.upload_payload("made.tar", made)
    assert payload.size == 40 * 70_000


def test_an_upload_over_the_limit_is_refused_with_the_reason(
    client: Client, site: Ingesting
) -> None:
    for content in (io.BytesIO(b"x" * (LIMIT + 1)), (b"x" * MIB for _ in range(64))):
        with pytest.raises(ApiError) as error:
            client.upload_payload("big.bin", content)
        assert error.value.code == 413
        assert "larger than" in error.value.message
    assert site.uploaded() == []
    assert client.upload_payload("ok", io.BytesIO(b"x" * LIMIT)).size == LIMIT


def test_an_upload_that_cannot_be_read_to_its_end_leaves_nothing(
    client: Client, site: Ingesting
) -> None:
    state = site.server.server._api.state

    def broken() -> Iterator[bytes]:
        yield b"x" * MIB
        until(lambda: state.uploads == 1)
        raise OSError("the disk is broken")

    with pytest.raises(OSError, match="the disk is broken"):
        client.upload_payload("half.bin", broken())
    until(lambda: state.uploads == 0)
    assert site.uploaded() == []


def test_an_administrator_puts_a_batch_right(site: Ingesting, client: Client) -> None:
    batch, job = site.failed("late.csv")
    (failed,) = client.ingest_jobs().jobs
    assert (failed.id, failed.resumes_at) == (job, "downloading")
    assert client.ingest_jobs("held").jobs == []
    site.file("late.csv")
    (resumed,) = client.resume_batch(batch, WHY).resumed
    assert (resumed.job, resumed.stage, resumed.refused) == (job, "downloading", None)
    assert client.fail_ingest_job(job, WHY).message == f"stopped by local: {WHY}"
    assert client.resume_ingest_job(job, WHY).retry_count == 2
    assert client.prioritize_batch(batch, 7, WHY) == 1
    assert client.ingest_job(job).priority == 7
    assert client.prioritize_ingest_job(job, 8, WHY).priority == 8
    with site.working():
        until(lambda: client.ingest_job(job).status == "completed")
        assert client.update_report(batch, WHY).status == "update-reporting"
        until(lambda: client.batch(batch).status == "completed")
    assert client.batch_report(batch).newly_successful == [job]
    assert [step.kind for step in client.check_ingest()] == ["end"]
    assert [step.kind for step in client.check_ingest(repair=True)] == ["end"]


def test_a_check_may_take_longer_than_any_answer_and_says_how_far_it_is(
    site: Ingesting, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Finding("is lost", "ingest job 1", repairable=True)

    def slowly(
        desk: IngestService, act: AdminAction, *, repair: bool
    ) -> Iterator[Finding | CheckProgress]:
        yield CheckProgress(1, 2)
        threading.Event().wait(7 * PATIENCE_SECONDS)
        yield wrong
        yield CheckProgress(2, 2)
        raise Unavailable("the queue is away")

    monkeypatch.setattr(IngestService, "check", slowly)
    monkeypatch.setattr(responses, "HEARTBEAT_SECONDS", 1.2 * PATIENCE_SECONDS)
    monkeypatch.setattr(request, "SILENCE_SECONDS_MAX", 6 * PATIENCE_SECONDS)
    with Client(site.server.server.url, timeout_seconds=PATIENCE_SECONDS) as client:
        steps = list(client.check_ingest())
    assert [(step.kind, step.jobs, step.total) for step in steps] == [
        ("progress", 1, 2),
        ("finding", 1, 2),
        ("progress", 2, 2),
        ("end", 2, 2),
    ]
    assert steps[1].finding == Finding("is lost", "ingest job 1", True, False)
    assert steps[-1].error == "the queue is away"
    assert asyncio.run(_checked(site.server.server.url)) == [step.kind for step in steps]


async def _checked(url: str) -> list[str]:
    async with AsyncClient(url, timeout_seconds=PATIENCE_SECONDS) as client:
        return [step.kind async for step in client.check_ingest()]


def test_where_no_server_is_nothing_is_uploaded() -> None:
    with Client("http://127.0.0.1:9", retry_seconds=0) as nobody, pytest.raises(Unreachable):
        nobody.upload_payload("x", io.BytesIO(b"x"))
