"""Collections over HTTP, and what a key for one namespace can reach of ingest."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.schema.admin import KeyRole
from tests.doors.ingesting import WHY, Ingesting, good, ingesting
from tests.doors.serving import path

COLLECTIONS = path("ingest", "collections")
MAPS = path("ingest", "collections", "maps")


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Ingesting]:
    with ingesting(database_url, tmp_path / "in") as site:
        yield site


def message(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    text: str = answer.json()["message"]
    return text


def test_the_secret_is_covered_and_stays_when_it_is_sent_back(site: Ingesting) -> None:
    site.put_collection(callback="https://example.org/told", callbackSecret="hunter2")
    shown = good(site.client.get(MAPS))
    assert shown["callbackSecret"] == "********"
    del shown["held"]
    answer = site.client.put(MAPS, json=shown | {"keepDays": 1})
    assert good(answer)["callbackSecret"] == "********"
    assert "hunter2" not in answer.text
    context = site.server.plane.context
    assert (
        context.outbound.secrets.reveal(context.collections.get("maps").callback_secret or "")
        == "hunter2"
    )
    assert "hunter2" not in str(site.audit())
    site.put_collection(callback="https://example.org/told")
    assert good(site.client.get(MAPS))["callbackSecret"] is None
    fresh = site.client.put(path("ingest", "collections", "fresh"), json=shown | {"name": "fresh"})
    assert "give a real one" in message(fresh, 422)


BAD: list[tuple[str, dict[str, Any], int, str]] = [
    ("a b", {}, 422, "letters, digits"),
    (".hidden", {}, 422, "letters, digits"),
    ("x" * 101, {}, 422, "letters, digits"),
    ("maps", {"name": "other"}, 422, "leave the name out"),
    ("maps", {"dataset": ""}, 422, "dataset"),
    ("maps", {"dataset": "x" * 2_000}, 413, "dataset"),
    ("maps", {"description": "x" * 20_000}, 422, "10000 bytes"),
    ("maps", {"colour": "red"}, 422, "colour"),
    ("maps", {"priority": 100}, 422, "priority"),
    ("maps", {"filesMax": 0}, 422, "filesMax"),
    ("maps", {"keepDays": -1}, 422, "keepDays"),
    ("maps", {"digests": "perhaps"}, 422, "perhaps"),
    ("maps", {"minting": "elsewhere"}, 422, "elsewhere"),
    ("maps", {"shoulder": "doi:10"}, 422, "doi:10"),
    ("maps", {"mail": ["jo\r\nBcc: x"]}, 422, "address"),
    ("maps", {"callback": "ftp://x"}, 422, "http or https"),
    ("maps", {"callback": "http://127.0.0.1/x", "places": []}, 422, "not a public address"),
    ("maps", {"places": ["nonsense"]}, 422, "nonsense"),
    ("maps", {"places": ["http://jo:pw@x/"]}, 422, "user name or password"),
    ("maps", {"storage": "ftp://x"}, 422, "no object store"),
    ("maps", {"storage": "s3://[x"}, 422, "no object store"),
    ("maps", {"storage": "file:///a%00b"}, 422, "names no folder"),
    ("maps", {"storage": "objects"}, 422, "whole path"),
]


def test_a_profile_that_cannot_work_is_refused(site: Ingesting) -> None:
    before = good(site.client.get(MAPS))
    for name, change, status, reason in BAD:
        body = {"dataset": "maps", **change}
        answer = site.client.put(path("ingest", "collections", name), json=body)
        assert reason in message(answer, status), (name, change)
    assert message(site.client.put(MAPS, json={}), 422)
    assert good(site.client.get(COLLECTIONS)) == {"collections": [before]}


def test_a_collection_with_an_open_batch_stays(site: Ingesting) -> None:
    batch = site.submit(site.file("a.csv"))["id"]
    assert batch in message(site.client.delete(MAPS), 409)
    with site.working():
        assert site.ended(batch)["status"] == "completed"
    assert good(site.client.delete(MAPS)) == {}
    assert site.batch(batch)["collection"] == "maps"
    listed = good(site.client.get(path("ingest", "objects"), params={"collection": "maps"}))
    assert len(listed["objects"]) == 1
    body = {"collection": "ghost", "url": site.missing("a.csv")}
    assert message(site.client.post(path("ingest", "batches"), json=body), 404)


def test_a_collection_that_has_stored_something_keeps_its_storage(
    site: Ingesting, tmp_path: Path
) -> None:
    first, second = ((tmp_path / name).as_uri() for name in ("first", "second"))
    site.put_collection(storage=second)
    site.put_collection(storage=first)
    batch = site.submit(site.file("a.csv"))["id"]
    with site.working():
        assert site.ended(batch)["status"] == "completed"
    body = {"namespace": "geo", "dataset": "maps"}
    for change, named in (({"storage": second}, second), ({}, "that of the server")):
        said = message(site.client.put(MAPS, json=body | change), 409)
        assert f"has objects in {first}" in said
        assert f"not be found in {named}; make another collection" in said
    assert good(site.client.get(MAPS))["storage"] == first
    good(site.client.put(MAPS, json=body | {"storage": f"{first}/", "keepDays": 1}))
    good(site.client.delete(MAPS))
    assert message(site.client.put(MAPS, json=body), 409)
    good(site.client.put(MAPS, json=body | {"storage": first}))


def test_a_key_for_one_namespace_sees_its_own_collections_only(site: Ingesting) -> None:
    site.put_collection("wine", namespace="drink")
    ours, our_job = site.failed("a.csv")
    theirs, their_job = site.failed("b.csv", collection="wine")
    done = site.submit(site.file("c.csv"), "wine")["id"]
    with site.working():
        assert site.ended(done)["status"] == "completed"
    good(site.client.post(path("ingest", "collections", "wine", "hold"), json=WHY))
    ark = site.jobs(done)[0]["primaryId"]
    client = site.client
    client.headers.update(site.server.key("geo", KeyRole.ADMIN, "geo"))

    def found(*segments: str) -> Any:
        return good(client.get(path("ingest", *segments)))

    assert [each["name"] for each in found("collections")["collections"]] == ["maps"]
    assert [batch["id"] for batch in found("batches")["batches"]] == [ours]
    assert [job["id"] for job in found("jobs")["jobs"]] == [our_job]
    assert found("objects") == {"objects": [], "next": None}
    assert (found("queue")["tally"], found("queue")["collectionsHeld"]) == (None, [])
    for mine in (("batches", ours), ("jobs", our_job), ("collections", "maps")):
        assert found(*mine)
    for target in (("batches", theirs), ("jobs", their_job), ("collections", "wine")):
        assert "only for namespace 'geo'" in message(client.get(path("ingest", *target)), 403)
        assert message(client.delete(path("ingest", *target)), 403)
        answer = client.post(path("ingest", *target, "hold"), json=WHY)
        assert message(answer, 403)
    for where in ("batches", "jobs", "objects"):
        assert message(client.get(path("ingest", where), params={"collection": "wine"}), 403)
    for what in ("versions", "files"):
        assert message(client.get(path("ingest", "objects", what), params={"ark": ark}), 404)


def test_a_key_for_one_namespace_writes_there_only(site: Ingesting) -> None:
    site.put_collection("wine", namespace="drink")
    url, kept = site.file("a.csv"), site.folder.as_uri()
    client = site.client
    client.headers.update(site.server.key("geo", KeyRole.ADMIN, "geo"))
    batches = path("ingest", "batches")
    assert good(client.post(batches, json={"collection": "maps", "url": url}), 201)
    assert message(client.post(batches, json={"collection": "wine", "url": url}), 403)
    assert message(client.post(batches, json={"collection": "ghost", "url": url}), 404)
    wine = path("ingest", "collections", "wine")
    for namespace in ("geo", "drink"):
        assert message(client.put(wine, json={"dataset": "d", "namespace": namespace}), 403)
    opening: list[dict[str, Any]] = [{"places": [kept, "file:///"]}, {"storage": "file:///srv"}]
    for more in opening:
        answer = client.put(MAPS, json={"dataset": "maps", "namespace": "geo", **more})
        assert "a key for every namespace" in message(answer, 403)
    same = {"dataset": "maps", "namespace": "geo", "places": [kept], "keepDays": 1}
    assert good(client.put(MAPS, json=same))["keepDays"] == 1
    new = path("ingest", "collections", "new")
    assert good(client.put(new, json={"dataset": "d", "namespace": "geo"}))
    for target in (("queue", "hold"), ("queue", "release"), ("queue", "release-held"), ("check",)):
        assert message(client.post(path("ingest", *target), json=WHY), 403)
    own = {"collection": "maps", **WHY}
    assert good(client.post(path("ingest", "queue", "release-held"), json=own)) == {"released": 0}
    theirs = {"collection": "wine", **WHY}
    assert message(client.post(path("ingest", "queue", "release-held"), json=theirs), 403)
