"""Deposits that say more than some queue or index can keep: they stop nobody, nor themselves."""

import random

import pytest

from penstock.errors import Invalid
from penstock.ingest.context import IngestContext
from penstock.ingest.intake.checkm import SIZE_MAX, ManifestKind, write
from penstock.ingest.intake.payload import PayloadFile, fetch_files
from penstock.ingest.models import TEXT_CHARS_MAX, Batch, IngestJob, NewJob
from penstock.schema.ingest import Collection, PayloadType
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import Gate, Site, row
from tests.patience import HANG_SECONDS
from tests.web import content, status


def long_text(chars: int) -> str:
    """Text that no database makes shorter."""
    chance = random.Random(7)
    return "".join(chr(chance.randrange(0x4E00, 0x9FA5)) for _ in range(chars))


@pytest.mark.parametrize("folders", [36, 60])
def test_an_object_with_a_very_long_url_is_recorded(site: Site, folders: int) -> None:
    chance = random.Random(7)
    names = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=99)) for _ in range(folders)]
    batch = site.deposit(site.web.on(f"/{'/'.join(names)}/a.csv", content(b"a")))
    assert [each.status for each in site.run(batch)] == [BatchState.COMPLETED]


def test_the_longest_local_id_is_kept_and_a_longer_one_is_refused(site: Site) -> None:
    url = site.web.on("/a.csv", content(b"a"))
    batch = site.deposit(url, local_id=long_text(333))
    assert [each.status for each in site.run(batch)] == [BatchState.COMPLETED]
    with pytest.raises(Invalid, match="has 1,002 bytes; at most 1,000 are taken"):
        site.deposit(url, local_id=long_text(334))


def test_an_object_declared_too_large_fails_at_once(site: Site) -> None:
    url = site.web.on("/a.csv", content(b"a"))
    first, second = site.run(*(site.deposit(url, size=SIZE_MAX) for _ in range(2)))
    assert {first.status, second.status} == {BatchState.FAILED}
    assert site.only_job(first).message == (
        f"{url} declares 9,223,372,036,854,775,807 bytes; "
        "collection maps takes 1,099,511,627,776 in one object"
    )


def test_servers_that_name_absurd_sizes_do_not_make_the_sum_of_all_too_large(site: Site) -> None:
    absurd = [site.web.on(f"/{n}", status(200, {"Content-Length": 10**18 - 1})) for n in range(10)]
    manifest = write(ManifestKind.OBJECT, [row(url) for url in absurd])
    large = site.deposit(site.web.on("/large.checkm", content(manifest)))
    small = site.deposit(site.web.on("/a.csv", content(b"a")))
    with site.working("batch-pending", "pending", "estimating"):
        for batch in (large, small):
            site.reach(batch, IngestState.PROVISIONING)
    assert site.only_job(large).space_needed == 2 * 1024**4
    assert site.context.store.check() == []


def test_once_a_size_cannot_be_had_the_other_files_are_not_asked_about(site: Site) -> None:
    lost = [site.web.on(f"/{n}", status(404)) for n in range(60)]
    batch = site.deposit(
        site.web.on("/m.checkm", content(write(ManifestKind.OBJECT, [row(url) for url in lost])))
    )
    with site.working("batch-pending", "pending", "estimating"):
        job = site.reach(batch, IngestState.PROVISIONING)
    assert (job.space_needed, job.priority) == (0, 15)
    assert sum(len(site.web.requests_to(f"/{n}", "HEAD")) for n in range(60)) < 30


def test_a_server_that_keeps_a_manifest_back_holds_up_no_other_batch(site: Site) -> None:
    rows = [row(site.web.on("/a.csv", content(b"a")))]
    gate = Gate(site, write(ManifestKind.FILES, rows))
    slow = site.deposit(gate.url, type=PayloadType.MANIFEST_OF_FILES)
    with site.working():
        assert gate.asked.wait(HANG_SECONDS)
        quick = site.deposit(site.web.on("/b.csv", content(b"b")))
        assert site.ended(quick).status is BatchState.COMPLETED
        assert site.batch(slow).status is BatchState.PENDING
        gate.open()
        assert site.ended(slow).status is BatchState.COMPLETED


@pytest.mark.parametrize("site", ["sqlite", "zookeeper"], indirect=True)
def test_a_very_long_failure_message_does_not_block_the_stage(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(
        context: IngestContext, job: IngestJob, collection: Collection
    ) -> tuple[PayloadFile, ...]:
        if job.batch_id == large.id:
            raise Invalid("no such file; " * 200_000)
        return fetch_files(context, job, collection)

    monkeypatch.setattr("penstock.ingest.stages.downloading.fetch_files", fetch)
    url = site.web.on("/a.csv", content(b"a"))
    large, small = site.deposit(url), site.deposit(url)
    failed, completed = site.run(large, small)
    assert (failed.status, completed.status) == (BatchState.FAILED, BatchState.COMPLETED)
    message = site.only_job(failed).message
    assert len(message) == TEXT_CHARS_MAX
    assert (message[:12], message[-1]) == ("no such file", "…")


def test_a_batch_too_large_for_the_queue_fails_alone(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_jobs = site.context.store.add_jobs

    def refuse(batch: Batch, jobs: list[NewJob]) -> Batch:
        if batch.id == large.id:
            raise Invalid("a change has 2000000 bytes, but the queue takes 1000000")
        return add_jobs(batch, jobs)

    monkeypatch.setattr(site.context.store, "add_jobs", refuse)
    rows = [row(site.web.on("/a.csv", content(b"a")))]
    large = site.deposit(site.web.on("/b.checkm", content(write(ManifestKind.FILES, rows))))
    small = site.deposit(site.web.on("/a.csv", content(b"a")))
    failed, completed = site.run(large, small)
    assert (failed.status, completed.status) == (BatchState.FAILED, BatchState.COMPLETED)
    assert failed.message == "a change has 2000000 bytes, but the queue takes 1000000"
    assert any("failed, nothing was stored" in subject for subject in site.letters())
