"""What a run may do with datasets of a namespace that its key is not for, with and without grant.

Teams shop and warehouse share a server; warehouse/orders is what shop's runs write to.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.config import Settings
from penstock.plane import Plane
from penstock.schema.admin import KeyRole
from tests.doors.commands import Terminal
from tests.doors.serving import API, Running, path, post, run_event, running

ORDERS = path("namespaces", "warehouse", "datasets", "orders")
GRANT = path("namespaces", "warehouse", "grants", "shop")
SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs"
LATER = "2026-11-15T12:00:00Z"

Document = dict[str, Any]
Headers = Mapping[str, str]


@pytest.fixture
def server(database_url: str) -> Iterator[Running]:
    """A server that needs keys; a run of the warehouse has made orders, with one field."""
    with Plane.open(Settings(database=database_url)) as plane:
        plane.keys.create("first", KeyRole.ADMIN, who="test")
    with running(database_url, host="0.0.0.0") as server:
        server.client.headers.update(server.key("boss", KeyRole.ADMIN))
        post(server.client, run("own", "load", "warehouse", orders(**schema("id"))))
        yield server


@pytest.fixture
def shop(server: Running) -> Headers:
    return server.key("shop", KeyRole.WRITER, "shop")


@pytest.fixture
def owner(server: Running) -> Headers:
    return server.key("owner", KeyRole.ADMIN, "warehouse")


def facet(**content: Any) -> Document:
    return {"_producer": "https://example.org/tests", "_schemaURL": "https://x", **content}


def schema(*names: str) -> Document:
    return {"schema": facet(fields=[{"name": name, "type": "INT"} for name in names])}


DAMAGE: Mapping[str, Document] = {
    "schema": schema("evil"),
    "description": {"documentation": facet(description="evil")},
    "drop": {"lifecycleStateChange": facet(lifecycleStateChange="DROP")},
    "tags": {"tags": facet(tags=[{"key": "evil", "value": "true", "source": "x"}])},
    "owner": {"ownership": facet(owners=[{"name": "evil"}])},
    "source": {"dataSource": facet(name="evil", uri="https://evil.example")},
    "name": {"symlinks": facet(identifiers=[{"namespace": "x", "name": "evil", "type": "T"}])},
    "columns": {
        "columnLineage": facet(
            fields={"id": {"inputFields": [{"namespace": "x", "name": "y", "field": "evil"}]}}
        )
    },
    "nothing": {},
}


def orders(**facets: Any) -> Document:
    return {"namespace": "warehouse", "name": "orders", "facets": facets}


def run(run_id: str, job: str, namespace: str, *outputs: Document, **changes: Any) -> Document:
    event: Document = {"eventType": "COMPLETE", "eventTime": "2026-11-15T10:00:00Z"}
    event |= {"inputs": [], "outputs": list(outputs), **changes}
    return run_event(run_id, job={"namespace": namespace, "name": job, "facets": {}}, **event)


def send(server: Running, key: Headers, event: Document) -> int:
    return server.client.post(f"{API}/lineage", json=event, headers=key).status_code


def everything(server: Running) -> tuple[Any, ...]:
    """All that is shown of orders, its columns, its namespace and its source."""
    get = server.client.get
    return (
        get(ORDERS).json(),
        get(path("namespaces", "warehouse")).json(),
        get(path("sources", "warehouse")).json(),
        get(f"{API}/column-lineage?nodeId=dataset:warehouse:orders").json(),
        get(f"{API}/search?q=evil").json(),
        get(f"{API}/search?q=orders").json(),
    )


@pytest.mark.parametrize("kind", sorted(DAMAGE))
@pytest.mark.parametrize("steps", [("COMPLETE",), ("START", "COMPLETE"), ("COMPLETE", "START")])
def test_a_run_without_a_grant_changes_nothing_of_its_output(
    server: Running, shop: Headers, kind: str, steps: tuple[str, ...]
) -> None:
    before = everything(server)

    for at, step in enumerate(steps):
        sent = f"2026-11-15T12:0{at}:00Z"
        event = run("r", "sell", "shop", orders(**DAMAGE[kind]), eventType=step, eventTime=sent)
        assert send(server, shop, event) == 201

    assert everything(server) == before
    reported = server.client.get(f"{ORDERS}/versions").json()["versions"][0]
    assert reported["isUnconfirmed"]
    assert reported["createdByRun"]["job"]["namespace"] == "shop"


def test_a_stream_without_a_grant_does_not_become_current(server: Running, shop: Headers) -> None:
    before = everything(server)
    streaming = {"jobType": facet(processingType="STREAMING", integration="X", jobType="J")}
    event = run("r", "sell", "shop", orders(**schema("evil")), eventType="RUNNING")
    event["job"]["facets"] = streaming

    assert send(server, shop, event) == 201

    assert everything(server) == before


@pytest.mark.parametrize("kind", sorted(DAMAGE))
def test_a_reader_without_a_grant_changes_nothing_of_its_input(
    server: Running, shop: Headers, kind: str
) -> None:
    post(server.client, run("own2", "load", "warehouse", inputs=[named("raw", **schema("id"))]))
    raw = path("namespaces", "warehouse", "datasets", "raw")
    before = (server.client.get(raw).json(), everything(server))

    sent = run("r", "sell", "shop", inputs=[named("raw", **DAMAGE[kind])], eventTime=LATER)
    assert send(server, shop, sent) == 201

    assert (server.client.get(raw).json(), everything(server)) == before


def named(name: str, **facets: Any) -> Document:
    return {"namespace": "warehouse", "name": name, "facets": facets}


def test_events_without_a_grant_bring_nothing_back(server: Running, shop: Headers) -> None:
    assert server.client.delete(ORDERS).is_success

    event = run("r", "sell", "shop", orders(), inputs=[orders()], eventTime="2999-01-01T00:00:00Z")
    assert send(server, shop, event) == 201
    job = {"namespace": "shop", "name": "stated", "facets": {}}
    stated = {"eventTime": LATER, "schemaURL": f"{SPEC}/JobEvent", "job": job}
    assert send(server, shop, {**stated, "inputs": [orders()], "outputs": [orders()]}) == 201

    assert server.client.get(ORDERS).status_code == 404


def test_a_deleted_namespace_stays_deleted_whatever_others_name_in_it(
    server: Running, shop: Headers
) -> None:
    assert server.client.delete(path("namespaces", "warehouse")).is_success
    parent = {"run": {"runId": "p"}, "job": {"namespace": "warehouse", "name": "load"}}
    event = run("r", "sell", "shop", named("new"), eventTime="2999-01-01T00:00:00Z")
    event["run"]["facets"] = {"parent": facet(**parent)}

    assert send(server, shop, event) == 201

    assert server.client.get(path("namespaces", "warehouse")).json()["isHidden"]
    new = path("namespaces", "warehouse", "datasets", "new")
    assert server.client.get(new).status_code == 404
    job = path("namespaces", "warehouse", "jobs", "load")
    assert server.client.get(job).status_code == 404


def test_a_run_by_hand_without_a_grant_does_not_become_current(
    server: Running, shop: Headers
) -> None:
    before = everything(server)
    job = path("namespaces", "shop", "jobs", "sell")
    body = {"type": "BATCH", "outputs": [{"namespace": "warehouse", "name": "orders"}]}
    client = server.client
    assert client.put(path("namespaces", "shop"), json={"ownerName": "x"}, headers=shop).is_success
    assert client.put(job, json=body, headers=shop).is_success
    for at in ("a", "b"):
        assert client.post(f"{job}/runs", json={"id": at}, headers=shop).is_success
    assert client.post(f"{path('jobs', 'runs', 'a')}/complete", headers=shop).is_success
    assert client.post(f"{job}/runs/b/complete", headers=shop).is_success
    assert client.put(job, json={**body, "runId": "b"}, headers=shop).is_success

    assert everything(server) == before
    versions = client.get(f"{ORDERS}/versions").json()["versions"]
    assert [each["isUnconfirmed"] for each in versions] == [True, True, False]


def test_readers_keep_the_confirmed_version(server: Running, shop: Headers, owner: Headers) -> None:
    assert send(server, shop, run("r", "sell", "shop", orders(**schema("evil")))) == 201

    reader = run("reads", "report", "warehouse", inputs=[orders()], eventTime=LATER)
    assert send(server, owner, reader) == 201

    [read] = server.client.get(path("jobs", "runs", "reads")).json()["inputDatasetVersions"]
    assert read["number"] == 1


def test_a_dataset_that_only_others_report_shows_what_they_report(
    server: Running, shop: Headers, owner: Headers
) -> None:
    """Until its owner speaks; a report never displaces what the owner has not published yet."""
    assert send(server, shop, run("r", "sell", "shop", named("new", **schema("a")))) == 201
    new = path("namespaces", "warehouse", "datasets", "new")
    first = server.client.get(new).json()
    own = run("w", "load", "warehouse", named("new", **schema("b")), eventType="START")
    assert send(server, owner, own) == 201
    assert send(server, shop, run("r2", "sell", "shop", named("new", **schema("c")))) == 201
    second = server.client.get(new).json()

    assert ([f["name"] for f in first["fields"]], first["currentVersion"]) == (["a"], None)
    assert ([f["name"] for f in second["fields"]], second["currentVersion"]) == (["b"], None)


def test_a_grant_lets_runs_write_as_if_at_home(
    server: Running, shop: Headers, owner: Headers
) -> None:
    granted = server.client.put(GRANT, headers=owner)
    assert [each["grantee"] for each in granted.json()["grants"]] == ["shop"]
    assert granted.json()["grants"][0]["grantedBy"] == "owner"

    facets = {**DAMAGE["description"], **schema("id", "total")}
    assert send(server, shop, run("r", "sell", "shop", orders(**facets), eventTime=LATER)) == 201

    seen = server.client.get(ORDERS).json()
    assert ([f["name"] for f in seen["fields"]], seen["description"]) == (["id", "total"], "evil")
    stated = {"eventTime": LATER, "schemaURL": f"{SPEC}/DatasetEvent"}
    assert send(server, shop, {**stated, "dataset": orders(**schema("more"))}) == 201
    assert server.client.delete(GRANT, headers=owner).json() == {"grants": []}
    assert send(server, shop, {**stated, "dataset": orders(**schema("no"))}) == 403
    before = everything(server)
    drop = orders(**DAMAGE["drop"])
    late = run("r3", "sell", "shop", drop, eventTime="2026-11-15T13:00:00Z")
    assert send(server, shop, late) == 201
    assert everything(server) == before


def test_only_an_administrator_of_the_namespace_grants_it(
    server: Running, shop: Headers, owner: Headers
) -> None:
    client = server.client
    thief = server.key("thief", KeyRole.ADMIN, "shop")
    writer = server.key("writer", KeyRole.WRITER, "warehouse")
    assert [client.put(GRANT, headers=key).status_code for key in (shop, thief, writer)] == [
        403
    ] * 3
    assert client.put(path("namespaces", "nowhere", "grants", "shop")).status_code == 404
    own = path("namespaces", "warehouse", "grants", "warehouse")
    assert client.put(own, headers=owner).status_code == 422
    assert client.delete(GRANT, headers=owner).status_code == 404
    assert client.put(GRANT, headers=owner).is_success
    assert client.put(GRANT, headers=owner).is_success
    assert client.delete(GRANT, headers=owner).is_success
    entries = client.get(f"{API}/audit?action=namespace").json()["entries"]
    assert [(e["who"], e["action"], e["target"], e["detail"]) for e in entries] == [
        ("owner", "namespace revoke", "warehouse", "from shop"),
        ("owner", "namespace grant", "warehouse", "to shop"),
    ]


def test_grants_are_given_listed_and_revoked_on_the_command_line(
    server: Running,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    boss = server.key("boss2", KeyRole.ADMIN)["authorization"].removeprefix("Bearer ")
    for name, value in (("HOME", str(tmp_path)), ("PENSTOCK_API_KEY", boss)):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PENSTOCK_URL", server.server.url)
    monkeypatch.chdir(tmp_path)
    penstock = Terminal(capsys)

    assert "may write" in penstock("namespaces", "grant", "warehouse", "--to", "shop").text
    listed = penstock("namespaces", "grants", "warehouse", "--json").document
    assert [each["grantee"] for each in listed["grants"]] == ["shop"]
    assert "shop" in penstock("namespaces", "grants", "warehouse").text
    gone = penstock("namespaces", "revoke", "warehouse", "--from", "shop", "--json").document
    assert gone == {"grants": []}
