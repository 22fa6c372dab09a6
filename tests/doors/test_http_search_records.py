"""Search for runs, lots, batches, ingest jobs, stored objects and files."""

import hashlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.schema.admin import KeyRole
from tests.doors.ingesting import Ingesting, good, ingesting
from tests.doors.serving import path, post, run_event

RECORDS = path("search", "records")
ROADS = b"a,b\n1,2\n"
RIVERS = b"c,d\n3,4\n"


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Ingesting]:
    with ingesting(database_url, tmp_path / "in") as site:
        yield site


def packed(**files: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), content)
    return target.getvalue()


def search(site: Ingesting, text: str, **query: Any) -> list[tuple[str, str, str]]:
    answer = good(site.client.get(RECORDS, params={"q": text, **query}))
    return [(each["kind"], each["name"], each["matched"]) for each in answer["records"]]


def deposit(site: Ingesting) -> tuple[dict[str, Any], dict[str, Any]]:
    """A container with two files, ingested; its batch and its ingest job."""
    url = site.file("survey.zip", packed(roads_csv=ROADS, maps__rivers_csv=RIVERS))
    batch = site.submit(url, type="container", localId="survey-7; S7", submitter="Jo Ann")
    with site.working():
        batch = site.ended(batch["id"])
    assert batch["status"] == "completed"
    (job,) = site.jobs(batch["id"])
    return batch, job


def test_a_deposit_is_found_by_every_name_it_has(site: Ingesting) -> None:
    batch, job = deposit(site)
    ark = job["primaryId"]

    by_ark = [search(site, text) for text in (ark, ark.upper(), ark[5:], ark[5:-2], ark[11:])]
    by_name = search(site, "rivers.csv")
    by_path = search(site, "maps/riv")
    by_digest = search(site, hashlib.sha512(RIVERS).hexdigest())
    by_numbers = [search(site, batch["id"]), search(site, "BID1"), search(site, job["id"])]

    assert by_ark == [[("object", ark, "ARK")]] * 5
    assert search(site, "SURVEY-7") == [("object", ark, "local id")]
    assert by_name == by_path == [("file", "maps/rivers.csv", "file name")]
    assert by_digest == [("file", "maps/rivers.csv", "digest")]
    assert search(site, "jo ann") == [("batch", batch["id"], "depositor")]
    assert by_numbers[0][0] == by_numbers[1][0] == ("batch", batch["id"], "id")
    assert by_numbers[2] == [("ingest-job", job["id"], "id")]


def test_a_file_that_an_update_inherits_is_found_once(site: Ingesting) -> None:
    _, job = deposit(site)
    url = site.file("more.zip", packed(lakes_csv=b"e\n"))
    batch = site.submit(url, type="container", mode="update", primaryId=job["primaryId"])
    with site.working():
        assert site.ended(batch["id"])["status"] == "completed"

    answers = good(site.client.get(RECORDS, params={"q": ".csv"}))["records"]
    roads = good(site.client.get(RECORDS, params={"q": "roads.csv"}))["records"]
    lakes = good(site.client.get(RECORDS, params={"q": "lakes.csv"}))["records"]

    assert answers == []
    assert [(each["ark"], each["version"]) for each in roads] == [(job["primaryId"], 1)]
    assert [(each["ark"], each["version"]) for each in lakes] == [(job["primaryId"], 2)]


def test_a_lot_is_found_by_its_id_in_every_dataset(site: Ingesting) -> None:
    post(site.client, run_event())
    for dataset in ("raw", "clean"):
        lots = path("namespaces", "food", "datasets", dataset, "lots")
        body = {"lots": ["20261115PT1H09", "20261115PT1H10"]}
        assert site.client.post(lots, json=body).is_success

    exact = good(site.client.get(RECORDS, params={"q": "20261115PT1H09"}))["records"]
    begun = good(site.client.get(RECORDS, params={"q": "20261115PT1H", "limit": 3}))

    assert [(each["kind"], each["dataset"]) for each in exact] == [
        ("lot", "clean"),
        ("lot", "raw"),
    ]
    assert [each["name"] for each in begun["records"]] == [
        "20261115PT1H09",
        "20261115PT1H09",
        "20261115PT1H10",
    ]
    assert begun["isCut"] is True


def test_a_run_is_found_by_its_id(site: Ingesting) -> None:
    run = "0190a6a0-0000-7000-8000-000000000001"
    post(site.client, run_event(run))

    answer = good(site.client.get(RECORDS, params={"q": run.upper()}))["records"]

    assert [(each["kind"], each["name"], each["job"]) for each in answer] == [("run", run, "etl")]


def test_a_key_for_one_namespace_finds_nothing_of_others(site: Ingesting) -> None:
    batch, job = deposit(site)
    run = "0190a6a0-0000-7000-8000-000000000002"
    post(site.client, run_event(run))
    texts = (job["primaryId"], "survey-7", "roads.csv", "jo ann", batch["id"], job["id"], run)
    assert all(search(site, text) for text in texts)

    site.client.headers.update(site.server.key("other", KeyRole.READER, "elsewhere"))

    assert [search(site, text) for text in texts] == [[]] * len(texts)
    refused = site.client.get(RECORDS, params={"q": "roads.csv", "namespace": "geo"})
    assert refused.status_code == 403


def test_a_text_without_a_match_finds_nothing(site: Ingesting) -> None:
    assert search(site, "") == search(site, "zz") == search(site, "no such thing") == []
    assert search(site, "bid9999999999") == []


@pytest.mark.parametrize("text", ["abc\x00d", "ark:", "%_'\"\\", "\U0010ffff" * 4, "x" * 1000])
def test_an_odd_text_finds_nothing_or_is_refused(site: Ingesting, text: str) -> None:
    answer = site.client.get(RECORDS, params={"q": text})

    assert answer.status_code in (200, 400), answer.text
    assert answer.json().get("records", []) == []
