"""Uploaded payloads are for one submission; objects belong to one namespace."""

from collections.abc import Callable

import pytest

from penstock.clock import DAY
from penstock.errors import Busy, Conflict, Invalid, NotFound, Unavailable
from penstock.ingest.intake.uploads import RegisterUpload, stale_uploads
from penstock.ingest.models import Submission
from penstock.ingest.queue.port import BatchFilter, IngestStore, Submitted
from penstock.ingest.stages import clean_up
from penstock.objects import Objects
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import Site


def test_an_upload_can_be_submitted_once(site: Site) -> None:
    site.make_collection()
    payload = site.upload("a.csv", b"a\n")
    batch = site.deposit(payload)
    with pytest.raises(Conflict, match="was submitted already, as batch bid0000000001; upload it"):
        site.deposit(payload)
    [ended] = site.run(batch)
    assert ended.status is BatchState.COMPLETED


def test_a_doubled_submission_of_an_upload_is_one_batch(site: Site) -> None:
    site.make_collection()
    payload = site.upload("a.csv", b"a\n")
    assert site.deposit(payload, key="k").id == site.deposit(payload, key="k").id


def test_an_unused_upload_is_deleted_after_a_day(site: Site) -> None:
    site.make_collection()
    payload = site.upload("a.csv", b"a\n")
    site.plane.catalog.submit(RegisterUpload(payload)).result()
    objects = Objects.open(site.plane.settings.objects)
    site.clock.ahead = DAY // 2
    clean_up.go_round(site.context)
    assert objects.exists("payloads/u1/a.csv")
    site.clock.ahead = 2 * DAY
    clean_up.go_round(site.context)
    assert not objects.exists("payloads/u1/a.csv")
    with pytest.raises(NotFound, match="upload it first"):
        site.deposit(payload)


def test_a_submitted_upload_stays_for_as_long_as_its_batch(site: Site) -> None:
    site.make_collection()
    payload = site.upload("a.csv", b"a\n")
    site.plane.catalog.submit(RegisterUpload(payload)).result()
    site.deposit(payload)
    site.clock.ahead = 60 * DAY
    clean_up.go_round(site.context)
    assert Objects.open(site.plane.settings.objects).exists("payloads/u1/a.csv")


def test_a_submission_that_is_refused_leaves_the_upload(site: Site) -> None:
    payload = site.upload("a.csv", b"a\n")
    with pytest.raises(Invalid, match="leaves its folder"):
        site.deposit(payload, name="../a.csv")
    with pytest.raises(Invalid, match="is not an ARK"):
        site.deposit(payload, primary_id="ark123")
    assert site.run(site.deposit(payload))[0].status is BatchState.COMPLETED


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("is_made", [False, True])
def test_a_submission_whose_answer_was_lost_is_made_once_by_the_same_again(
    site: Site, monkeypatch: pytest.MonkeyPatch, key: str | None, is_made: bool
) -> None:
    site.make_collection("charts")
    payload = site.upload("a.csv", b"a\n")
    with monkeypatch.context() as patched:
        patched.setattr(site.context.store, "submit", losing(site.context.store, is_made=is_made))
        with pytest.raises(Unavailable, match="did not answer"):
            site.deposit(payload, key=key)
    with pytest.raises(Conflict, match="may be a batch already; submit it as before, or upload"):
        site.deposit(payload, collection="charts", key=key)
    batch = site.deposit(payload, key=key)
    [found] = site.context.store.batches(BatchFilter(), 10)
    assert found.id == batch.id
    assert site.run(batch)[0].status is BatchState.COMPLETED


def test_an_upload_is_free_after_a_submission_that_was_surely_not_made(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.make_collection("charts")
    payload = site.upload("a.csv", b"a\n")

    def refuse(told: Submission) -> Submitted:
        raise Busy("the write queue is full")

    with monkeypatch.context() as patched:
        patched.setattr(site.context.store, "submit", refuse)
        with pytest.raises(Busy):
            site.deposit(payload)
    assert site.deposit(payload, collection="charts").collection == "charts"


def test_uploads_that_no_batch_has_go_after_a_day(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = site.context.store
    first, second, lost, cut_off = (site.upload(f"{n}.csv", b"x") for n in range(4))
    site.deposit(first, key="k")
    with pytest.raises(Conflict, match="submitted with another payload"):
        site.deposit(second, key="k")
    for payload, is_made in ((lost, False), (cut_off, True)):
        with monkeypatch.context() as patched:
            patched.setattr(store, "submit", losing(store, is_made=is_made))
            with pytest.raises(Unavailable):
                site.deposit(payload)
    for days, left in ((0, 4), (2, 2), (60, 2)):
        site.clock.ahead = days * DAY
        clean_up.go_round(site.context)
        kept = Objects.open(site.plane.settings.objects).list("payloads")
        assert sum(1 for _ in kept) == left, days
    with site.plane.catalog.read() as tx:
        assert stale_uploads(tx, site.clock() + 2 * DAY, 10) == []
    site.clock.ahead = 0
    ended = site.run(*store.batches(BatchFilter(), 10))
    assert [each.status for each in ended] == [BatchState.COMPLETED] * 2


def losing(store: IngestStore, *, is_made: bool) -> Callable[[Submission], Submitted]:
    """A queue that does not answer to a submission, which it may have made."""
    submit = store.submit

    def lose(told: Submission) -> Submitted:
        if is_made:
            submit(told)
        raise Unavailable("the queue did not answer; try again")

    return lose


def test_an_object_of_another_namespace_gets_no_version(site: Site) -> None:
    site.make_collection(namespace="ours")
    site.make_collection("theirs", namespace="theirs", dataset="theirs")
    [first] = site.run(site.deposit(site.upload("a.csv", b"a\n")))
    ark = site.only_job(first).identifiers.primary
    assert ark is not None
    [second] = site.run(
        site.deposit(site.upload("b.csv", b"b\n"), collection="theirs", primary_id=ark)
    )
    job = site.only_job(second)
    assert job.status is IngestState.FAILED
    assert job.message.startswith(f"{ark} belongs to another namespace than 'theirs'")
    assert site.versions(ark) == [1]
