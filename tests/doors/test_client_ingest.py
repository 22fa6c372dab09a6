"""Ingest as Python programs use it, against a real server on each database."""

import asyncio
import hashlib
import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.access.keys import Role
from penstock.client import ApiError, AsyncClient, Client, Unreachable, request
from penstock.client.documents import ingest as ingest_documents
from penstock.errors import Unavailable
from penstock.ingest.models import CheckProgress, Finding
from penstock.ingest.service import AdminAction, IngestService
from penstock.server import ingest_shapes, responses
from penstock.server.routes import collections, ingest, ingest_admin, stored
from penstock.server.routes import stored as payloads
from tests.doors.ingesting import ENDED, Ingesting, ingesting
from tests.doors.waiting import until

MIB = 1024 * 1024
WHY = "asked for"
LIMIT = 8 * MIB
PATIENCE_SECONDS = 0.5
# What a document of the client is called on the server.
SERVED = {
    "Collection": ingest_shapes.ShownCollection,
    "Collections": collections.Collections,
    "Payload": payloads.Payload,
    "StateTally": ingest_shapes.StateTally,
    "Batch": ingest_shapes.ShownBatch,
    "Batches": ingest.Batches,
    "Step": ingest_shapes.ReachedState,
    "Download": ingest_shapes.Download,
    "IngestJob": ingest_shapes.ShownIngestJob,
    "BatchJobs": ingest.BatchJobs,
    "IngestJobs": ingest.IngestJobs,
    "FailedJobs": ingest.FailedJobs,
    "Report": ingest_shapes.ShownReport,
    "ResumedJob": ingest_admin.ResumedJob,
    "Resumed": ingest_admin.ResumedJobs,
    "Changed": ingest_admin.Changed,
    "Released": ingest_admin.Released,
    "HeldCollection": ingest_admin.HeldCollection,
    "Queue": ingest_admin.Queue,
    "Finding": Finding,
    "CheckStep": ingest_admin.CheckStep,
    "StoredObject": ingest_shapes.StoredObject,
    "StoredObjects": stored.StoredObjects,
    "ObjectVersions": stored.ObjectVersions,
    "ObjectFile": stored.ObjectFile,
    "ObjectFiles": stored.ObjectFiles,
}


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Ingesting]:
    with ingesting(database_url, tmp_path / "in", payload_bytes_max=LIMIT) as site:
        yield site


@pytest.fixture
def client(site: Ingesting) -> Iterator[Client]:
    with Client(site.server.server.url) as client:
        yield client


def ended(client: Client, batch_id: str) -> ingest_documents.Batch:
    until(lambda: client.batch(batch_id).status in ENDED)
    return client.batch(batch_id)


def refusal(error: "pytest.ExceptionInfo[ApiError]") -> tuple[int, str]:
    return error.value.code, error.value.message


@pytest.mark.parametrize("name", sorted(SERVED))
def test_the_client_keeps_everything_that_the_server_shows(name: str) -> None:
    mine = getattr(ingest_documents, name).__struct_encode_fields__
    assert set(mine) == set(SERVED[name].__struct_encode_fields__)


def test_every_document_of_the_client_is_compared() -> None:
    module = ingest_documents.__name__
    documents = {n for n, k in vars(ingest_documents).items() if _is_own(k, module)}
    assert documents == set(SERVED)


def _is_own(kind: Any, module: str) -> bool:
    return isinstance(kind, type) and kind.__module__ == module


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
    assert done.tally == {"completed": ingest_documents.StateTally(1, len(content))}
    (job,) = client.batch_jobs(batch.id, status="completed").jobs
    assert client.ingest_job(job.id) == job
    assert (job.title, job.local_ids) == ("Points", ("p1",))
    assert client.batch_report(batch.id).successful_jobs == (job.id,)
    (kept,) = client.objects(collection="maps").objects
    assert client.object_versions(kept.ark).versions == (kept,)
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
    door = site.server.server._api.door

    def broken() -> Iterator[bytes]:
        yield b"x" * MIB
        until(lambda: door.uploads == 1)
        raise OSError("the disk is broken")

    with pytest.raises(OSError, match="the disk is broken"):
        client.upload_payload("half.bin", broken())
    until(lambda: door.uploads == 0)
    assert site.uploaded() == []


def test_collections_are_made_changed_held_and_forgotten(client: Client) -> None:
    made = client.put_collection(
        "new", dataset="d", callback="https://example.org/x", callback_secret="hunter2"
    )
    assert (made.namespace, made.keep_days, made.callback_secret) == ("default", 30, "********")
    changed = client.put_collection("new", **(made.profile | {"keep_days": 3, "confirm": True}))
    assert (changed.keep_days, changed.confirm) == (3, True)
    assert changed.callback_secret == "********"
    assert client.collection("new") == changed
    assert [each.name for each in client.collections().collections] == ["maps", "new"]
    held = client.hold_collection("new", WHY).held
    assert held is not None
    assert (held.who, held.why) == ("local", WHY)
    assert [each.name for each in client.queue().collections_held] == ["new"]
    assert client.release_collection("new", WHY).held is None
    client.delete_collection("new")
    with pytest.raises(ApiError) as error:
        client.collection("new")
    assert error.value.code == 404


def test_an_administrator_puts_a_batch_right(site: Ingesting, client: Client) -> None:
    batch, job = site.failed("late.csv")
    (failed,) = client.ingest_jobs().jobs
    assert (failed.id, failed.resumes_at) == (job, "downloading")
    assert client.ingest_jobs("held").jobs == ()
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
    assert client.batch_report(batch).newly_successful == (job,)
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
    assert steps[1].finding == ingest_documents.Finding("is lost", "ingest job 1", True, False)
    assert steps[-1].error == "the queue is away"
    assert asyncio.run(_checked(site.server.server.url)) == [step.kind for step in steps]


async def _checked(url: str) -> list[str]:
    async with AsyncClient(url, timeout_seconds=PATIENCE_SECONDS) as client:
        return [step.kind async for step in client.check_ingest()]


def test_an_administrator_holds_releases_and_deletes(site: Ingesting, client: Client) -> None:
    batch, job = site.queued(site.file("a.csv"))
    assert client.hold_queue(WHY).held is not None
    assert client.release_queue(WHY).held is None
    assert client.hold_ingest_job(job, WHY).status == "held"
    assert client.release_ingest_job(job, WHY).status == "pending"
    assert client.hold_batch(batch, WHY).tally == {"held": ingest_documents.StateTally(1, 0)}
    assert client.release_batch(batch, WHY).id == batch
    client.hold_ingest_job(job, WHY)
    assert client.release_held(WHY, collection="maps") == 1
    client.hold_ingest_job(job, WHY)
    with pytest.raises(ApiError) as error:
        client.delete_ingest_job(job)
    assert refusal(error)[0] == 409
    assert "its depositor is not notified" in refusal(error)[1]
    client.delete_ingest_job(job, confirmed=True, why=WHY)
    assert client.batch_jobs(batch).jobs == ()
    gone, _ = site.failed("b.csv")
    with pytest.raises(ApiError) as error:
        client.delete_batch(gone)
    assert "cannot be brought back" in refusal(error)[1]
    client.delete_batch(gone, confirmed=True, why=WHY)
    assert [each.id for each in client.batches().batches] == [batch]
    actions = [entry.action for entry in client.audit().entries if entry.detail == WHY]
    assert actions[0] == "delete batch"


def test_what_is_refused_says_why(site: Ingesting, client: Client) -> None:
    with pytest.raises(ApiError) as error:
        client.submit_batch("ghost", "https://example.org/x")
    assert refusal(error)[0] == 404
    with pytest.raises(ApiError) as error:
        client.submit_batch("maps", "http://127.0.0.1/x")
    assert "not a public address" in refusal(error)[1]
    token = site.server.key("r", Role.READER)["authorization"].removeprefix("Bearer ")
    with Client(site.server.server.url, token) as reader:
        assert reader.collections().collections
        with pytest.raises(ApiError) as error:
            reader.upload_payload("x", (b"x" * MIB for _ in range(32)))
        assert refusal(error)[0] == 403


def test_where_no_server_is_nothing_is_uploaded() -> None:
    with Client("http://127.0.0.1:9", retry_seconds=0) as nobody, pytest.raises(Unreachable):
        nobody.upload_payload("x", io.BytesIO(b"x"))
