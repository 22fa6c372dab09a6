"""What keeps a deposit waiting or ends it: space, holds, priorities, administrators."""

import shutil
import socket
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.errors import Conflict, Invalid, NotFound
from penstock.ingest.intake.checkm import ManifestKind, write
from penstock.ingest.models import Batch, IngestHoldKind
from penstock.ingest.service import AdminAction
from penstock.ingest.stages import provisioning
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import ADMIN, Gate, Site, row
from tests.doors.waiting import until
from tests.patience import HANG_SECONDS
from tests.web import Answer, Request, content, head, raw

BODY = b"x,y\n1,2\n" * 1000
MB = 1024 * 1024


class Usage(NamedTuple):
    """What the machine says of its disk."""

    total: int
    used: int
    free: int


class Disk:
    """A disk with as much free space as a test says."""

    def __init__(self, free: int) -> None:
        self.free = free

    def usage(self, folder: Path) -> Usage:
        return Usage(1 << 40, 0, self.free)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk(1 << 40)
    monkeypatch.setattr(shutil, "disk_usage", disk.usage)
    return disk


def submit(site: Site, name: str = "map.csv", collection: str = "maps") -> Batch:
    return site.deposit(site.web.on(f"/{name}", content(BODY)), collection)


def submit_files(site: Site, *sizes: int) -> Batch:
    """A batch of files that say to be of these sizes."""
    rows = [row(f"{site.web.url}/{size}", size=size) for size in sizes]
    url = site.web.on(f"/{len(sizes)}.checkm", content(write(ManifestKind.FILES, rows)))
    return site.deposit(url)


def without_length(body: bytes) -> Answer:
    return raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", body)


# Estimates, priorities and space.


def test_an_unknown_size_makes_a_job_wait_longer(site: Site) -> None:
    known = submit(site)
    unknown = site.deposit(site.web.on("/unknown.csv", without_length(BODY)))
    with site.working("batch-pending", "pending", "estimating"):
        first = site.reach(known, IngestState.PROVISIONING)
        second = site.reach(unknown, IngestState.PROVISIONING)
    assert (first.space_needed, first.priority) == (len(BODY), 5)
    assert (second.space_needed, second.priority) == (0, 15)
    with site.working("provisioning", "downloading"):
        second = site.reach(unknown, IngestState.PROCESSING)
    assert (second.space_needed, second.priority) == (len(BODY), 5)


def test_downloading_corrects_an_estimate(site: Site) -> None:
    def lies(request: Request, connection: socket.socket) -> None:
        size = 10 if request.method == "HEAD" else len(BODY)
        connection.sendall(head(200, {"Content-Length": size}))
        if request.method == "GET":
            connection.sendall(BODY)

    batch = site.deposit(site.web.on("/lies.csv", lies))
    with site.working("batch-pending", "pending", "estimating"):
        assert site.reach(batch, IngestState.PROVISIONING).space_needed == 10
    with site.working("provisioning", "downloading"):
        assert site.reach(batch, IngestState.PROCESSING).space_needed == len(BODY)


def test_larger_batches_start_later_unless_the_collection_has_a_priority(site: Site) -> None:
    site.make_collection("urgent", priority=3)
    batches = [
        submit_files(site, 1),
        submit_files(site, *range(1, 21)),
        submit(site, "u", "urgent"),
    ]
    with site.working("batch-pending"):
        until(lambda: all(site.batch(b).status is BatchState.PROCESSING for b in batches))
    priorities = [{job.priority for job in site.jobs(batch)} for batch in batches]
    assert priorities == [{5}, {35}, {3}]


def test_a_job_that_does_not_fit_lets_smaller_ones_pass(site: Site, disk: Disk) -> None:
    disk.free = 10 * MB
    batch = submit_files(site, 50 * MB, 3 * MB, 60 * MB, 4 * MB, 5 * MB)
    stays, goes = IngestState.PROVISIONING, IngestState.DOWNLOADING
    with site.working("batch-pending", "pending", "estimating"):
        until(lambda: [job.status for job in site.jobs(batch)] == [stays] * 5)
    assert provisioning.go_round(site.context) == (2, 3)
    assert [job.status for job in site.jobs(batch)] == [stays, goes, stays, goes, stays]
    assert all(not job.locked_by for job in site.jobs(batch))
    disk.free = 70 * MB
    assert provisioning.go_round(site.context) == (2, 1)
    assert [job.status for job in site.jobs(batch)] == [goes, goes, stays, goes, goes]
    assert provisioning.go_round(site.context) == (0, 1)


def test_a_job_that_waits_for_space_has_the_reason(site: Site, disk: Disk) -> None:
    disk.free = 10 * MB
    batch = submit_files(site, 50 * MB)
    with site.working("batch-pending", "pending", "estimating"):
        until(lambda: [job.status for job in site.jobs(batch)] == [IngestState.PROVISIONING])

    assert provisioning.go_round(site.context) == (0, 1)
    waiting = site.only_job(batch)
    assert provisioning.go_round(site.context) == (0, 1)

    assert waiting.message == (
        f"it needs {50 * MB:,} bytes, and {site.folder} has fewer free beside 0 MB in reserve "
        "(space_free_mb); it goes on when there is space"
    )
    assert site.only_job(batch) == waiting  # it is written once
    disk.free = 60 * MB
    assert provisioning.go_round(site.context) == (1, 0)
    assert site.only_job(batch).message == ""


def test_a_lasting_shortage_of_space_is_logged_once(
    site: Site, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    disk.free = 10 * MB
    batch = submit_files(site, 3 * MB, 50 * MB)
    with site.working("batch-pending", "pending", "estimating"):
        until(lambda: len(site.context.store.waiting(IngestState.PROVISIONING, 3)) == 2)
    assert provisioning.go_round(site.context) == (1, 1)
    assert provisioning.go_round(site.context) == (0, 1)  # the other may make room yet
    assert "wait for space" not in caplog.text
    small = site.jobs(batch)[0]
    site.desk.fail_job(ADMIN, small.id)
    for _ in range(3):
        provisioning.go_round(site.context)
    [told] = [record.getMessage() for record in caplog.records if "space" in record.getMessage()]
    assert told == (
        f"ingest jobs wait for space: free some in {site.folder}, of which 0 MB are kept "
        "(space_free_mb)"
    )


def test_a_job_continues_when_space_is_free(site: Site, disk: Disk) -> None:
    disk.free = len(BODY) - 1
    batch = submit(site)
    with site.working():
        site.reach(batch, IngestState.PROVISIONING)
        small = site.deposit(site.web.on("/small.csv", content(b"1")))
        assert site.ended(small).status is BatchState.COMPLETED
        assert site.only_job(batch).status is IngestState.PROVISIONING
        disk.free = len(BODY)
        assert site.ended(batch).status is BatchState.COMPLETED


# Holds.


def test_a_held_collection_holds_its_batches(site: Site) -> None:
    site.desk.hold(ADMIN, IngestHoldKind.COLLECTION, "maps")
    site.make_collection("charts")
    [held, other] = site.run(submit(site), submit(site, "chart.csv", "charts"))
    assert (held.status, held.message) == (
        BatchState.HELD,
        "collection maps is held by ann: asked for",
    )
    assert (other.status, site.jobs(held)) == (BatchState.COMPLETED, [])
    with pytest.raises(
        Conflict, match=r"^collection maps is held; release it first: `penstock ingest release"
    ):
        site.desk.release_batch(ADMIN, held.id)
    site.desk.release(ADMIN, IngestHoldKind.COLLECTION, "maps")
    assert site.batch(held).status is BatchState.HELD
    assert site.desk.release_batch(ADMIN, held.id).status is BatchState.PENDING
    assert site.run(held)[0].status is BatchState.COMPLETED


def test_a_held_collection_holds_jobs_that_have_not_begun(site: Site) -> None:
    batch = submit(site)
    with site.working("batch-pending"):
        site.reach(batch, IngestState.PENDING)
    site.desk.hold(ADMIN, IngestHoldKind.COLLECTION, "maps")
    with site.working():
        job = site.reach(batch, IngestState.HELD)
        assert job.message == "collection maps is held by ann: asked for"
        assert site.batch(batch).status is BatchState.PROCESSING
        with pytest.raises(
            Conflict, match=r"^collection maps is held; release it first: `penstock ingest release"
        ):
            site.desk.release_job(ADMIN, job.id)
        site.desk.release(ADMIN, IngestHoldKind.COLLECTION, "maps")
        assert site.desk.release_job(ADMIN, job.id).status is IngestState.PENDING
        assert site.ended(batch).status is BatchState.COMPLETED
    assert [step.status for step in site.only_job(batch).history[:3]] == [
        "pending",
        "held",
        "pending",
    ]


def test_a_held_queue_gives_nothing_out(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.desk.hold(ADMIN, IngestHoldKind.QUEUE)
    answers: list[list[Batch]] = []
    claim = site.context.store.claim_batches

    def noted(status: BatchState, most: int, after: str | None) -> list[Batch]:
        claimed = claim(status, most, after)
        if status is BatchState.PENDING:
            answers.append(claimed)
        return claimed

    monkeypatch.setattr(site.context.store, "claim_batches", noted)
    batch = submit(site)
    with site.working():
        until(lambda: len(answers) > 8)
        assert not any(answers)
        until(lambda: site.batch(batch) == batch)  # whoever asks first may lock it, to know
        site.desk.release(ADMIN, IngestHoldKind.QUEUE)
        assert site.ended(batch).status is BatchState.COMPLETED
    with pytest.raises(Conflict, match=r"^queue ingest is not held$"):
        site.desk.release(ADMIN, IngestHoldKind.QUEUE)


def test_a_batch_and_its_jobs_are_held_and_released(site: Site) -> None:
    batch = submit_files(site, 1, 2)
    assert site.desk.hold_batch(ADMIN, batch.id).status is BatchState.HELD
    assert site.desk.release_batch(ADMIN, batch.id).status is BatchState.PENDING
    with site.working("batch-pending"):
        until(lambda: site.batch(batch).status is BatchState.PROCESSING)
    site.desk.hold_batch(ADMIN, batch.id)
    assert {job.status for job in site.jobs(batch)} == {IngestState.HELD}
    site.desk.release_batch(ADMIN, batch.id)
    first, second = site.jobs(batch)
    assert {first.status, second.status} == {IngestState.PENDING}
    assert site.desk.hold_job(ADMIN, first.id).status is IngestState.HELD
    with site.working("pending", "estimating"):
        until(lambda: site.job(second).status is IngestState.PROVISIONING)
    assert site.job(first).status is IngestState.HELD
    with pytest.raises(Conflict, match="is provisioning and cannot become held"):
        site.desk.hold_job(ADMIN, second.id)


def test_everything_held_is_released(site: Site) -> None:
    site.make_collection("charts")
    batches = [submit(site), submit(site, "chart.csv", "charts"), submit(site, "b", "charts")]
    with site.working("batch-pending"):
        for batch in batches:
            site.reach(batch, IngestState.PENDING)
    site.desk.hold_job(ADMIN, site.only_job(batches[0]).id)
    site.desk.hold_job(ADMIN, site.only_job(batches[1]).id)
    site.desk.hold_job(ADMIN, site.only_job(batches[2]).id)
    batches.append(site.desk.hold_batch(ADMIN, submit(site, "c").id))
    assert site.desk.release_all(ADMIN, "charts") == 2
    assert [site.only_job(batch).status for batch in batches[:3]] == ["held", "pending", "pending"]
    assert site.desk.release_all(ADMIN) == 2
    assert {batch.status for batch in site.run(*batches)} == {BatchState.COMPLETED}


# Ending and deleting.


def test_a_download_is_forced_to_fail(site: Site) -> None:
    gate = Gate(site, BODY)
    batch = site.deposit(gate.url)
    with site.working():
        assert gate.asked.wait(HANG_SECONDS)
        job = site.only_job(batch)
        failed = site.desk.fail_job(ADMIN, job.id)
        assert (failed.status, failed.message) == (IngestState.FAILED, "stopped by ann: asked for")
        assert site.ended(batch).status is BatchState.FAILED
        gate.open()
    # The worker is done with its download by now, and what it made of it was refused.
    assert site.job(job) == failed
    assert site.desk.resume_job(ADMIN, job.id).status is IngestState.DOWNLOADING
    with site.working():
        job = site.reach(batch, IngestState.COMPLETED)
    assert site.content(job.identifiers.primary) == {"gated.csv": BODY}


def test_a_failed_job_is_deleted_after_a_warning(site: Site) -> None:
    [batch] = site.run(site.deposit(f"{site.web.url}/gone.csv"))
    job = site.only_job(batch)
    with pytest.raises(Conflict, match="its depositor is not notified; confirm it to delete"):
        site.desk.delete_job(ADMIN, job.id, confirmed=False)
    assert site.job(job) == job
    assert Path(job.configuration.working_dir).exists()
    site.desk.delete_job(ADMIN, job.id, confirmed=True)
    with pytest.raises(NotFound):
        site.job(job)
    assert not Path(job.configuration.working_dir).exists()
    site.desk.update_report(ADMIN, batch.id)
    with site.working():
        assert site.ended(batch).status is BatchState.COMPLETED
    assert site.report(batch).gone == (job.id,)
    assert site.letters()[-1].endswith(": update, 0 more completed, 0 open, 1 deleted")


def test_the_last_job_that_is_deleted_lets_the_batch_end(site: Site) -> None:
    batch = submit_files(site, 1)
    with site.working("batch-pending"):
        job = site.reach(batch, IngestState.PENDING)
    with pytest.raises(Conflict, match="is pending and cannot become deleted"):
        site.desk.delete_job(ADMIN, job.id, confirmed=True)
    site.desk.hold_job(ADMIN, job.id)
    site.desk.delete_job(ADMIN, job.id, confirmed=True)
    assert site.run(batch)[0].status is BatchState.COMPLETED


def test_a_failed_batch_is_deleted_after_a_warning(site: Site) -> None:
    payload = site.upload("bad.zip", b"no zip")
    [batch] = site.run(site.deposit(payload, key="monday"))
    assert batch.status is BatchState.FAILED
    with pytest.raises(Conflict, match="cannot be brought back, and its depositor is not notified"):
        site.desk.delete_batch(ADMIN, batch.id, confirmed=False)
    job = site.only_job(batch)
    site.desk.delete_batch(ADMIN, batch.id, confirmed=True)
    for gone in (lambda: site.batch(batch), lambda: site.job(job)):
        with pytest.raises(NotFound):
            gone()
    assert list(site.folder.iterdir()) == []
    with pytest.raises(NotFound, match="there is no uploaded payload"):
        site.deposit(payload)
    again = submit(site)
    with pytest.raises(Conflict, match="is pending and cannot become deleted"):
        site.desk.delete_batch(ADMIN, again.id, confirmed=True)
    site.desk.hold_batch(ADMIN, again.id)
    site.desk.delete_batch(ADMIN, again.id, confirmed=True)
    assert site.deposit(f"{site.web.url}/map.csv", key="monday").id not in (batch.id, again.id)


def test_a_priority_is_changed(site: Site) -> None:
    batch = submit_files(site, 1, 2, 3)
    with site.working("batch-pending"):
        until(lambda: site.batch(batch).status is BatchState.PROCESSING)
    last = site.jobs(batch)[-1]
    assert site.desk.prioritize_job(ADMIN, last.id, 1).priority == 1
    claimed = site.context.store.claim_jobs(IngestState.PENDING, 3)
    assert claimed[0].id == last.id
    site.context.store.release(claimed)
    assert site.desk.prioritize_batch(ADMIN, batch.id, 7) == 3
    assert {job.priority for job in site.jobs(batch)} == {7}
    with pytest.raises(Invalid, match=r"^a priority is a number from 0 to 99, not 100$"):
        site.desk.prioritize_job(ADMIN, last.id, 100)


def test_every_action_is_in_the_audit_log(site: Site) -> None:
    desk, who = site.desk, AdminAction("ann", "why not")
    batch = submit(site)
    desk.hold(who, IngestHoldKind.QUEUE)
    desk.release(who, IngestHoldKind.QUEUE)
    desk.hold(who, IngestHoldKind.COLLECTION, "maps")
    desk.release(who, IngestHoldKind.COLLECTION, "maps")
    desk.hold_batch(who, batch.id)
    desk.release_batch(who, batch.id)
    desk.release_all(who)
    with site.working("batch-pending"):
        job = site.reach(batch, IngestState.PENDING)
    desk.prioritize_batch(who, batch.id, 9)
    desk.hold_job(who, job.id)
    desk.release_job(who, job.id)
    desk.prioritize_job(who, job.id, 8)
    desk.fail_job(who, job.id)
    with pytest.raises(Conflict, match=" is failed; only a held one is released") as refused:
        desk.release_job(who, job.id)
    desk.resume_job(who, job.id)
    desk.fail_job(who, job.id)
    site.run(batch)
    desk.resume_batch(who, batch.id)
    desk.fail_job(who, job.id)
    desk.delete_job(who, job.id, confirmed=True)
    desk.update_report(who, batch.id)
    assert list(desk.check(who, repair=True)) == []
    with pytest.raises(Conflict) as kept:
        desk.delete_batch(who, batch.id, confirmed=False)
    done = [entry for entry in site.audited() if entry[1] != "put collection"]
    assert {entry[0] for entry in done} == {"ann"}
    assert [entry[1:] for entry in done] == [
        ("hold queue", "ingest", "why not"),
        ("release queue", "ingest", "why not"),
        ("hold collection", "maps", "why not"),
        ("release collection", "maps", "why not"),
        ("hold batch", batch.id, "why not"),
        ("release batch", batch.id, "why not"),
        ("release all held", "every collection", "why not"),
        ("priority 9", batch.id, "why not"),
        ("hold ingest job", job.id, "why not"),
        ("release ingest job", job.id, "why not"),
        ("priority 8", job.id, "why not"),
        ("fail ingest job", job.id, "why not"),
        ("release ingest job", job.id, "why not"),
        ("release ingest job: refused", job.id, str(refused.value)),
        ("resume ingest job", job.id, "why not"),
        ("fail ingest job", job.id, "why not"),
        ("resume batch", batch.id, "why not"),
        ("fail ingest job", job.id, "why not"),
        ("delete ingest job", job.id, "why not"),
        ("update report", batch.id, "why not"),
        ("repair", "ingest", "why not"),
        ("delete batch", batch.id, "why not"),
        ("delete batch: refused", batch.id, str(kept.value)),
    ]
