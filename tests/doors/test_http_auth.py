"""Who may call what: keys, roles, namespaces, and when none of it is asked."""

import socket
from collections.abc import Iterator

import httpx
import pytest

from penstock.access import audit
from penstock.config import Settings
from penstock.errors import Conflict, Invalid
from penstock.plane import Plane
from penstock.schema.admin import KeyRole
from penstock.server.auth import is_loopback, leads_here
from penstock.server.routes.table import ROUTES
from penstock.server.routing import Reach
from penstock.server.serve import HttpServer
from tests.doors.serving import API, Running, path, post, run_event, running
from tests.doors.waiting import until

EVERYWHERE = "0.0.0.0"
SUPER = {"ownerName": "me"}


@pytest.fixture
def local(database_url: str) -> Iterator[Running]:
    with running(database_url) as server:
        yield server


@pytest.fixture
def guarded(database_url: str) -> Iterator[Running]:
    """A server that other machines could reach; there is one key, so it needs keys."""
    with Plane.open(Settings(database=database_url)) as plane:
        plane.keys.create("first", KeyRole.ADMIN, who="test")
    with running(database_url, host=EVERYWHERE) as server:
        yield server


def a_path(template: str, namespace: str = "food") -> str:
    return template.format_map(_Anything(namespace))


class _Anything(dict[str, str]):
    def __init__(self, namespace: str) -> None:
        super().__init__(namespace=namespace)

    def __missing__(self, name: str) -> str:
        return "x"


def test_without_a_key_a_guarded_server_says_only_how_it_is(guarded: Running) -> None:
    open_to_all = {route.path for route in ROUTES if route.role is None}
    assert open_to_all == {"/livez", "/readyz"}
    for route in ROUTES:
        answer = guarded.client.request(route.method, a_path(route.path))
        if route.path in open_to_all:
            assert answer.status_code == 200
        else:
            assert answer.status_code == 401, route.name
            assert answer.headers["www-authenticate"] == "Bearer"


def test_each_route_asks_for_its_role(guarded: Running) -> None:
    headers = {role: guarded.key(f"{role}s", role) for role in KeyRole}
    for route in ROUTES:
        for role in KeyRole if route.role is not None else ():
            # One answer goes on for ever: the head of each is enough.
            with guarded.client.stream(
                route.method, a_path(route.path), headers=headers[role]
            ) as answer:
                status = answer.status_code
            assert status != 401, route.name
            allowed = role.covers(route.role or KeyRole.READER)
            assert (status != 403) is allowed, (route.name, role, status)


def test_each_key_is_told_whose_it_is_and_what_it_may_do(guarded: Running) -> None:
    for name, role, namespace in (
        ("ann", KeyRole.READER, None),
        ("bob", KeyRole.WRITER, "food"),
        ("cleo", KeyRole.ADMIN, None),
    ):
        headers = guarded.key(name, role, namespace)
        told = guarded.client.get(f"{API}/key", headers=headers).json()
        assert told == {"name": name, "role": role, "namespace": namespace}


def test_where_no_key_is_needed_who_sends_none_may_do_all(local: Running) -> None:
    allowed = {"name": None, "role": "admin", "namespace": None}
    assert local.client.get(f"{API}/key").json() == allowed
    reader = local.client.get(f"{API}/key", headers=local.key("ann", KeyRole.READER)).json()
    assert reader == {"name": "ann", "role": "reader", "namespace": None}


def test_a_key_for_one_namespace_is_refused_in_others(guarded: Running) -> None:
    boss = guarded.key("boss", KeyRole.ADMIN)
    guarded.client.put(path("namespaces", "drink"), json=SUPER, headers=boss)
    food = guarded.key("food", KeyRole.ADMIN, "food")
    for route in ROUTES:
        if route.reach is Reach.NAMESPACE:
            elsewhere = guarded.client.request(
                route.method, a_path(route.path, "drink"), headers=food
            )
            assert elsewhere.status_code == 403, route.name
            here = guarded.client.request(route.method, a_path(route.path, "food"), headers=food)
            assert here.status_code != 403, route.name
        if route.reach is Reach.EVERYTHING:
            answer = guarded.client.request(route.method, a_path(route.path), headers=food)
            assert answer.status_code == 403, route.name


def test_a_key_for_one_namespace_sees_what_is_there(guarded: Running) -> None:
    client = guarded.client
    client.headers.update(guarded.key("boss", KeyRole.ADMIN))
    post(client, run_event("theirs", job={"namespace": "drink", "name": "mix"}))
    post(client, run_event("ours"))
    client.headers.update(guarded.key("food", KeyRole.WRITER, "food"))
    names = [found["name"] for found in client.get(f"{API}/namespaces").json()["namespaces"]]
    assert names == ["food"]
    assert [job["name"] for job in client.get(f"{API}/jobs").json()["jobs"]] == ["etl"]
    assert client.get(f"{API}/search?q=mix").json()["totalCount"] == 0
    assert client.get(f"{API}/search?q=etl").json()["totalCount"] == 1
    assert client.get(f"{API}/search?q=mix&namespace=drink").status_code == 403
    for leaf in ("", "/facets", "/events"):
        assert client.get(path("jobs", "runs", "ours") + leaf).status_code == 200
        assert client.get(path("jobs", "runs", "theirs") + leaf).status_code == 403
    assert client.get(f"{API}/sources").status_code == 200
    assert client.put(f"{API}/sources/s", json={}).status_code == 403


def test_a_key_for_one_namespace_sees_the_sources_of_its_datasets(guarded: Running) -> None:
    client = guarded.client
    client.headers.update(guarded.key("boss", KeyRole.ADMIN))
    for name in ("ours", "theirs"):
        body = {"type": "POSTGRESQL", "connectionUrl": f"postgresql://ann:pw@{name}/x"}
        shown = client.put(f"{API}/sources/{name}", json=body).json()
        assert shown["connectionUrl"] == f"postgresql://ann:********@{name}/x"
    for namespace, source in (("food", "ours"), ("drink", "theirs")):
        client.put(path("namespaces", namespace), json=SUPER)
        table = {"type": "DB_TABLE", "physicalName": "t", "sourceName": source}
        answer = client.put(path("namespaces", namespace, "datasets", "t"), json=table)
        assert answer.status_code == 200, answer.text
    assert "pw" not in client.get(f"{API}/sources").text
    client.headers.update(guarded.key("food", KeyRole.READER, "food"))
    listed = client.get(f"{API}/sources").json()["sources"]
    assert [source["name"] for source in listed] == ["ours"]
    assert client.get(f"{API}/sources/ours").json() == listed[0]
    assert client.get(f"{API}/sources?offset=1").json() == {"sources": []}
    hidden, gone = client.get(f"{API}/sources/theirs"), client.get(f"{API}/sources/nothing")
    assert (hidden.status_code, gone.status_code) == (404, 404)
    assert hidden.json()["message"].replace("theirs", "nothing") == gone.json()["message"]


def test_a_key_for_one_namespace_sees_the_tags_it_uses(guarded: Running) -> None:
    client = guarded.client
    client.headers.update(guarded.key("boss", KeyRole.ADMIN))
    theirs = {"namespace": "drink", "name": "mix"}
    post(client, run_event("theirs", job=theirs, outputs=[{"namespace": "drink", "name": "punch"}]))
    post(client, run_event("ours"))
    field = path("namespaces", "food", "datasets", "clean", "fields", "b", "tags", "OF_FIELD")
    for place in (
        path("namespaces", "drink", "datasets", "punch", "tags", "SECRET"),
        path("namespaces", "drink", "jobs", "mix", "tags", "HIDDEN"),
        path("namespaces", "food", "datasets", "clean", "tags", "PII"),
        path("namespaces", "food", "jobs", "etl", "tags", "NIGHTLY"),
        field,
    ):
        assert client.post(place).is_success, place
    described = {"description": "of drinks"}
    assert client.put(f"{API}/tags/SECRET", json=described).status_code == 200
    client.headers.update(guarded.key("food", KeyRole.READER, "food"))

    listed = client.get(f"{API}/tags").json()["tags"]

    assert [tag["name"] for tag in listed] == ["NIGHTLY", "OF_FIELD", "PII"]


def test_a_key_for_one_namespace_writes_only_there(guarded: Running) -> None:
    client = guarded.client
    client.headers.update(guarded.key("boss", KeyRole.ADMIN))
    theirs = {"namespace": "drink", "name": "mix"}
    post(client, run_event("theirs", job=theirs))
    client.headers.update(guarded.key("food", KeyRole.WRITER, "food"))
    post(client, run_event("ours"))
    assert client.post(f"{API}/lineage", json=run_event("t2", job=theirs)).status_code == 403
    dataset_event = {
        "eventTime": "2026-11-15T10:00:00Z",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent",
        "dataset": theirs,
    }
    assert client.post(f"{API}/lineage", json=dataset_event).status_code == 403
    batch = client.post(f"{API}/lineage/batch", json=[run_event("b1"), dataset_event]).json()
    assert batch["status"] == "partial_success"
    assert [failed["index"] for failed in batch["failed_events"]] == [1]
    assert client.post(path("jobs", "runs", "theirs", "fail")).status_code == 403
    assert client.post(path("jobs", "runs", "ours", "fail")).status_code == 200
    body = {"type": "BATCH", "runId": "theirs"}
    assert client.put(path("namespaces", "food", "jobs", "j"), json=body).status_code == 403


def test_a_second_name_does_not_lead_out_of_the_namespace(guarded: Running) -> None:
    client = guarded.client
    client.headers.update(guarded.key("boss", KeyRole.ADMIN))
    identifiers = [{"namespace": "food", "name": "window", "type": "TABLE"}]
    facets = {"symlinks": {"_producer": "x", "_schemaURL": "y", "identifiers": identifiers}}
    theirs = {"namespace": "drink", "name": "cellar", "facets": facets}
    post(client, run_event("r", eventType="COMPLETE", outputs=[theirs]))
    window = path("namespaces", "food", "datasets", "window")
    assert client.get(window).json()["namespace"] == "drink"
    client.headers.update(guarded.key("food", KeyRole.ADMIN, "food"))
    body = {"type": "STREAM", "physicalName": "x", "sourceName": "drink"}
    assert client.put(window, json=body).status_code == 403
    for leaf in ("", "/versions", "/versions/V1"):
        assert client.get(window + leaf).status_code == 403
    for method, leaf in (("DELETE", ""), ("POST", "/restore"), ("POST", "/tags/t")):
        assert client.request(method, window + leaf).status_code == 403


def test_on_loopback_no_key_is_needed_while_there_is_none(local: Running) -> None:
    assert local.client.put(path("namespaces", "food"), json=SUPER).status_code == 200
    assert local.client.delete(path("namespaces", "food")).status_code == 200
    assert local.client.get("/metrics").status_code == 200


def test_a_key_sent_to_a_server_without_keys_is_ignored(local: Running) -> None:
    for value in ("Bearer pk_nonsense", "Basic eDp5", "Bearer", ""):
        headers = {"authorization": value}

        answer = local.client.get(f"{API}/key", headers=headers)

        assert answer.json()["name"] is None, value


def test_once_a_key_exists_every_call_on_loopback_needs_one(local: Running) -> None:
    client, server = local.client, local.server.url
    assert client.get(f"{API}/namespaces").status_code == 200
    reader = local.key("r", KeyRole.READER)

    without = httpx.get(f"{server}{API}/namespaces", verify=False)
    good = client.get(f"{API}/namespaces", headers=reader)

    assert (without.status_code, good.status_code) == (401, 200)
    put = client.put(path("namespaces", "food"), json=SUPER, headers=reader)
    assert put.status_code == 403
    for value in ("Bearer pk_nonsense", "Basic eDp5", "Bearer", "Bearer \xff\xfe", ""):
        headers = {b"authorization": value.encode("latin-1")}
        assert client.get(f"{API}/namespaces", headers=headers).status_code == 401, value


def test_the_first_key_of_another_process_closes_the_server(local: Running) -> None:
    assert local.client.get(f"{API}/namespaces").status_code == 200
    with Plane.open(local.plane.settings) as elsewhere:
        elsewhere.keys.create("first", KeyRole.ADMIN, who="test")

    until(lambda: local.client.get(f"{API}/namespaces").status_code == 401)


def test_revoking_the_last_key_does_not_open_the_server(local: Running) -> None:
    local.plane.keys.create("only", KeyRole.ADMIN, who="test")
    local.plane.keys.revoke("only", who="test")

    assert local.client.get(f"{API}/namespaces").status_code == 401
    with running(local.plane.settings.database) as again:
        assert again.client.get(f"{API}/namespaces").status_code == 401


def test_with_auth_required_loopback_needs_a_key_too(database_url: str) -> None:
    with running(database_url, auth="required") as server:
        assert server.client.get(f"{API}/namespaces").status_code == 401
        assert server.client.get("/livez").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"x-forwarded-for": "127.0.0.1"},
        {"forwarded": "for=127.0.0.1"},
        {"x-real-ip": "127.0.0.1"},
        {"via": "1.1 proxy"},
        {"x-forwarded-proto": "https"},
    ],
)
def test_a_proxied_call_without_a_key_is_refused(local: Running, headers: dict[str, str]) -> None:
    answer = local.client.get(f"{API}/namespaces", headers=headers)

    assert answer.status_code == 401
    assert "proxy" in answer.json()["message"]


def test_a_listed_proxy_names_the_caller(database_url: str) -> None:
    with running(database_url, proxies="127.0.0.0/8, ::1") as server:
        for forwarded, status in (
            ("127.0.0.1", 200),
            ("203.0.113.7", 401),
            ("127.0.0.1, 203.0.113.7", 401),
            ("unknown", 401),
            ("203.0.113.7, 127.0.0.1", 401),
        ):
            headers = {"x-forwarded-for": forwarded}
            answer = server.client.get(f"{API}/namespaces", headers=headers)
            assert answer.status_code == status, forwarded
        assert server.client.get(f"{API}/namespaces").status_code == 401


def test_proxies_that_are_no_addresses_are_refused(database_url: str) -> None:
    settings = Settings(port=0, database=database_url, proxies="10.0.0.1, front")

    with pytest.raises(Invalid, match="'front' is not an IP address"):
        HttpServer.open(settings)


def refusals(server: Running) -> list[str]:
    """What the audit log tells of wrong keys, newest first."""
    with server.plane.database.read() as tx:
        return [entry.detail for entry in audit.entries(tx, 100, action="refuse keys")]


def test_many_wrong_keys_are_limited_and_recorded_once(guarded: Running) -> None:
    client = guarded.client
    good = guarded.key("good", KeyRole.READER)
    statuses = []
    for number in range(300):
        wrong = {"authorization": f"Bearer pk_wrong{number}"}
        answer = client.get(f"{API}/namespaces", headers=wrong)
        statuses.append(answer.status_code)

    assert statuses == [401] * 20 + [429] * 280
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert client.get(f"{API}/namespaces", headers=good).status_code == 200
    assert refusals(guarded) == ["20 wrong keys: 20 from 127.0.0.1"]


def test_wrong_keys_are_recorded_when_the_server_stops(database_url: str) -> None:
    with Plane.open(Settings(database=database_url)) as plane:
        plane.keys.create("first", KeyRole.ADMIN, who="test")
    with running(database_url) as server:
        for number in range(3):
            headers = {"authorization": f"Bearer pk_wrong{number}"}
            server.client.get(f"{API}/namespaces", headers=headers)
        assert refusals(server) == []

    with running(database_url) as server:
        assert refusals(server) == ["3 wrong keys: 3 from 127.0.0.1"]


def test_a_revoked_key_no_longer_works(guarded: Running) -> None:
    client = guarded.client
    boss, other = guarded.key("boss", KeyRole.ADMIN), guarded.key("other", KeyRole.READER)
    assert client.get(f"{API}/namespaces", headers=other).status_code == 200
    assert client.delete(f"{API}/keys/other", headers=boss).json()["revokedAt"] is not None
    assert client.get(f"{API}/namespaces", headers=other).status_code == 401


def test_a_key_made_over_http_works(guarded: Running) -> None:
    client, boss = guarded.client, guarded.key("boss", KeyRole.ADMIN)
    body = {"name": "team", "role": "writer", "namespace": "food"}
    made = client.post(f"{API}/keys", json=body, headers=boss).json()
    listed = client.get(f"{API}/keys", headers=boss)
    assert made["key"] in listed.json()["keys"]
    assert made["token"] not in listed.text
    client.headers["authorization"] = f"Bearer {made['token']}"
    assert client.put(path("namespaces", "food"), json=SUPER).status_code == 200
    assert client.post(f"{API}/keys", json={"name": "x", "role": "admin"}).status_code == 403


def test_keys_are_not_made_without_one_not_even_on_loopback(local: Running) -> None:
    body = {"name": "sneaky", "role": "admin"}
    assert local.client.post(f"{API}/keys", json=body).status_code == 401
    assert local.client.delete(f"{API}/keys/sneaky").status_code == 401
    assert not local.plane.keys.were_made()


def test_a_page_of_another_site_cannot_write_without_a_key(local: Running) -> None:
    target = path("namespaces", "food")
    evil = {"origin": "https://evil.example"}
    assert local.client.put(target, json=SUPER, headers=evil).status_code == 403
    own = {"origin": local.server.url}
    assert local.client.put(target, json=SUPER, headers=own).status_code == 200
    signed = local.key("w", KeyRole.WRITER) | evil
    assert local.client.put(target, json=SUPER, headers=signed).status_code == 200


def test_a_name_that_leads_here_from_elsewhere_is_not_served_without_a_key(local: Running) -> None:
    """A page may have the name of its own site lead to 127.0.0.1, and be of one origin with us."""
    client, target = local.client, path("namespaces", "food")
    evil = {"host": "evil.example:5711", "origin": "http://evil.example:5711"}
    for method in ("PUT", "GET", "DELETE"):
        answer = client.request(method, target, headers=evil)
        assert answer.status_code == 403
        assert "penstock keys create" in answer.text
    assert client.get("/livez", headers=evil).status_code == 200
    signed = local.key("w", KeyRole.WRITER) | evil
    assert client.put(target, json=SUPER, headers=signed).status_code == 200


def raw_status(server: Running, request: str) -> bytes:
    """Send bytes of our own, and return the first line of the answer."""
    address = server.server.url.removeprefix("http://").split(":")
    with socket.create_connection((address[0], int(address[1]))) as line:
        line.sendall(request.encode())
        return line.makefile("rb").readline()


def test_a_call_over_http_1_0_needs_a_key(local: Running) -> None:
    """nginx calls so by default, and adds no header that would show it."""
    call = f"GET {API}/namespaces HTTP/1.0\r\nHost: 127.0.0.1\r\n"
    assert b" 401 " in raw_status(local, f"{call}\r\n")
    reader = local.key("r", KeyRole.READER)["authorization"]

    assert b" 200 OK" in raw_status(local, f"{call}Authorization: {reader}\r\n\r\n")


@pytest.mark.parametrize("place", [f"{API}/namespaces", "/livez", "/nowhere", "/"])
@pytest.mark.parametrize(
    "hosts", ["", "Host: localhost\r\nHost: evil.example\r\n"], ids=["none", "two"]
)
def test_a_call_without_exactly_one_host_is_refused(local: Running, place: str, hosts: str) -> None:
    assert b" 400 " in raw_status(local, f"GET {place} HTTP/1.1\r\n{hosts}\r\n")


def test_further_names_are_a_setting(database_url: str) -> None:
    with running(database_url, hosts="host.docker.internal, Flows.example") as server:
        for host, status in (
            ("host.docker.internal:5000", 200),
            ("flows.example", 200),
            ("localhost", 200),
            ("evil.example", 403),
        ):
            answer = server.client.get(f"{API}/namespaces", headers={"host": host})
            assert answer.status_code == status, host


def test_a_server_for_everybody_is_called_by_any_name(database_url: str) -> None:
    with running(database_url, host=EVERYWHERE, insecure=True) as server:
        answer = server.client.get(f"{API}/namespaces", headers={"host": "flows.example"})
        assert answer.status_code == 200


def test_a_server_refuses_to_be_reachable_without_keys(database_url: str) -> None:
    settings = Settings(host=EVERYWHERE, port=0, database=database_url)
    with pytest.raises(Invalid, match="penstock keys create"):
        HttpServer.open(settings)
    with Plane.open(settings) as plane:
        plane.keys.create("boss", KeyRole.ADMIN, who="test")
    with running(database_url, host=EVERYWHERE) as server:
        assert server.client.get(f"{API}/namespaces").status_code == 401


def test_insecure_serves_everybody_until_there_are_keys(database_url: str) -> None:
    with running(database_url, host=EVERYWHERE, insecure=True) as server:
        assert server.client.get(f"{API}/namespaces").status_code == 200
        server.key("boss", KeyRole.ADMIN)
    with running(database_url, host=EVERYWHERE, insecure=True) as server:
        assert server.client.get(f"{API}/namespaces").status_code == 401


def test_a_port_that_is_taken_is_named(local: Running) -> None:
    port = int(local.server.url.rpartition(":")[2])
    settings = Settings(port=port, database=local.plane.settings.database)
    with pytest.raises(Conflict, match=f"127.0.0.1:{port}"):
        HttpServer.open(settings)


@pytest.mark.parametrize(
    ("host", "local_only"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.evil.example", False),
        ("", False),
    ],
)
def test_which_addresses_only_this_machine_reaches(host: str, local_only: bool) -> None:
    assert is_loopback(host) is local_only


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True),
        ("localhost:5711", True),
        ("LocalHost.:5711", True),
        ("penstock.localhost:80", True),
        ("127.0.0.1", True),
        ("127.9.9.9:5000", True),
        ("[::1]", True),
        ("[::1]:5000", True),
        ("", True),
        ("evil.example", False),
        ("localhost.evil.example:5000", False),
        ("notlocalhost", False),
        ("127.0.0.1.evil.example", False),
        ("10.0.0.1:5000", False),
        ("0.0.0.0:5000", False),
        ("[::2]:5000", False),
        ("::1", False),
        ("localhost:5000:5000", False),
        ("\xff", False),
    ],
)
def test_which_names_can_only_lead_to_this_machine(host: str, here: bool) -> None:
    assert leads_here(host.encode("latin-1")) is here
