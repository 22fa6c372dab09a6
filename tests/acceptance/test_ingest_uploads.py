"""Uploaded payloads are for one submission; objects belong to one namespace."""

import pytest

from penstock.clock import DAY
from penstock.errors import Conflict, NotFound
from penstock.ingest.receiving.uploads import NoteUpload
from penstock.ingest.stages import clean_up
from penstock.objects import Objects
from penstock.states import BatchState, IngestState
from tests.acceptance.ingest_site import Site


def test_an_upload_can_be_submitted_once(site: Site) -> None:
    site.make_collection()
    payload = site.upload("a.csv", b"a\n")
    batch = site.deposit(payload)
    with pytest.raises(Conflict, match="was submitted already; upload it again"):
        site.deposit(payload)
    [ended] = site.run(batch)
    assert ended.status is BatchState.COMPLETED


def test_a_doubled_submission_of_an_upload_is_one_batch(site: Site) -> None:
    site.make_collection()
    payload = site.upload("a.csv", b"a\n")
    assert site.deposit(payload, key="k").id == site.deposit(payload, key="k").id


def test_an_upload_that_nobody_submits_goes_after_a_day(site: Site) -> None:
    site.make_collection()
    payload = site.upload("a.csv", b"a\n")
    site.plane.catalog.submit(NoteUpload(payload)).result()
    objects = Objects.open(site.plane.settings.objects)
    site.clock.ahead = DAY // 2
    clean_up.go_round(site.shop)
    assert objects.exists("payloads/u1/a.csv")
    site.clock.ahead = 2 * DAY
    clean_up.go_round(site.shop)
    assert not objects.exists("payloads/u1/a.csv")
    with pytest.raises(NotFound, match="upload it first"):
        site.deposit(payload)


def test_a_submitted_upload_stays_for_as_long_as_its_batch(site: Site) -> None:
    site.make_collection()
    payload = site.upload("a.csv", b"a\n")
    site.plane.catalog.submit(NoteUpload(payload)).result()
    site.deposit(payload)
    site.clock.ahead = 60 * DAY
    clean_up.go_round(site.shop)
    assert Objects.open(site.plane.settings.objects).exists("payloads/u1/a.csv")


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
