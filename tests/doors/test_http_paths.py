"""Names in paths may hold anything: they are cut into segments before they are decoded."""

from collections.abc import Iterator

import pytest

from penstock.errors import Invalid, NotFound
from penstock.schema.admin import KeyRole
from penstock.server.errors import MethodNotAllowed
from penstock.server.routes.table import ROUTES
from penstock.server.routing import READ, Reach, Route, Router
from tests.doors.serving import API, Running, path, post, run_event, running

NAMES = [
    "s3://bucket/a b",
    "postgres://host:5432",
    "a#b?c=d&e",
    "100%",
    "%2F",
    "a+b",
    "naïve/中文/🜁",
    "runs",
    "tags",
    "trailing/",
    "C:\\data",
]


@pytest.fixture
def food(database_url: str) -> Iterator[Running]:
    with running(database_url) as server:
        yield server


def test_names_come_back_as_they_went_in(food: Running) -> None:
    client = food.client
    for name in NAMES:
        job = {"namespace": name, "name": name}
        post(client, run_event(name, job=job, inputs=[], outputs=[job]))
        dataset = client.get(path("namespaces", name, "datasets", name))
        assert dataset.json()["id"] == job, dataset.text
        versions = client.get(path("namespaces", name, "datasets", name, "versions")).json()
        assert versions["totalCount"] == 1
        assert client.get(path("namespaces", name, "jobs", name)).json()["id"] == job
        assert client.get(path("namespaces", name, "jobs", name, "runs")).json()["totalCount"] == 1
        tagged = client.post(path("namespaces", name, "datasets", name, "tags", name))
        assert tagged.json()["tags"] == [name]
        graph = client.get(f"{API}/lineage", params={"nodeId": f"job:{name}:{name}"}).json()
        assert [node["id"] for node in graph["graph"]] == [
            f"dataset:{name}:{name}",
            f"job:{name}:{name}",
        ]


def test_a_slash_at_the_end_does_not_count(food: Running) -> None:
    with_slash = food.client.get(f"{API}/namespaces/").json()
    assert with_slash == food.client.get(f"{API}/namespaces").json()


def test_each_route_is_found_by_its_own_path() -> None:
    router = Router(ROUTES)
    for route in ROUTES:
        values = {name: f"{name}/é" for name in route.variables}
        encoded = route.path.format(
            **{
                name: value.replace("/", "%2F").replace("é", "%C3%A9")
                for name, value in values.items()
            }
        )
        assert router.find(route.method, encoded.encode()) == (route, values)


@pytest.mark.parametrize(
    "raw", [b"/", b"", b"/api", b"/api/v1", b"//api/v1/jobs", b"/api/v1/namespaces//datasets"]
)
def test_paths_that_lead_nowhere(raw: bytes) -> None:
    with pytest.raises(NotFound):
        Router(ROUTES).find("GET", raw)


def test_a_wrong_method_names_the_right_ones() -> None:
    with pytest.raises(MethodNotAllowed) as refused:
        Router(ROUTES).find("PATCH", b"/api/v1/namespaces/x")
    assert refused.value.allowed == ["DELETE", "GET", "POST", "PUT"]


def test_a_fixed_segment_wins_over_a_variable() -> None:
    def fixed(tx: object) -> None: ...

    def variable(tx: object, name: str) -> None: ...

    def deeper(tx: object, name: str) -> None: ...

    routes = [
        Route(READ, "GET", "/a/b", fixed, Reach.SHARED),
        Route(READ, "GET", "/a/{name}", variable, Reach.SHARED),
        Route(READ, "GET", "/a/{name}/c", deeper, Reach.SHARED),
    ]
    router = Router(routes)
    assert router.find("GET", b"/a/b") == (routes[0], {})
    assert router.find("GET", b"/a/%62x") == (routes[1], {"name": "bx"})
    assert router.find("GET", b"/a/b/c") == (routes[2], {"name": "b"})


def test_a_handler_must_fit_its_path() -> None:
    def handler(tx: object, name: str) -> None: ...

    with pytest.raises(TypeError, match="do not fit"):
        Route(READ, "GET", "/a/{other}", handler, Reach.SHARED)
    with pytest.raises(TypeError, match="no namespace"):
        Route(READ, "GET", "/a/{name}", handler)
    route = Route(READ, "GET", "/a/{name}", handler, Reach.SHARED)
    with pytest.raises(TypeError, match="twice"):
        Router([route, route])


@pytest.mark.parametrize("dots", [".", ".."])
def test_no_name_is_made_of_dots(food: Running, dots: str) -> None:
    """Clients, browsers and proxies take %2E for a dot, and the segment and more out of a path."""
    post(food.client, run_event("r"))
    encoded = dots.replace(".", "%2E")
    seen = []
    for route in ROUTES:
        for name in route.variables:
            values = dict.fromkeys(route.variables, "x") | {name: encoded}
            answer = food.client.request(route.method, route.path.format(**values))
            assert answer.status_code == 422, (route.name, name, answer.text)
            assert "folder" in answer.text
            seen.append(name)
    assert {"namespace", "dataset", "job", "run", "source", "tag", "lot", "collection"} < set(seen)
    table = {"type": "DB_TABLE", "physicalName": "d"}
    for target, body in (
        ("datasets/d", {**table, "sourceName": dots}),
        ("datasets/d", {**table, "sourceName": "s", "tags": [dots]}),
        ("jobs/j", {"type": "BATCH", "inputs": [{"namespace": "food", "name": dots}]}),
        ("jobs/j/wiring", {"outputs": [{"namespace": dots, "name": "d"}]}),
    ):
        answer = food.client.put(f"{API}/namespaces/food/{target}", json=body)
        assert answer.status_code == 422, answer.text
        assert "folder" in answer.text
    with pytest.raises(Invalid, match="folder"):
        food.key(dots, KeyRole.READER)


def test_what_dots_leave_of_a_path_changes_nothing_else(food: Running) -> None:
    """A browser or curl sends DELETE …/food/datasets/.. as DELETE …/food/."""
    post(food.client, run_event("r"))
    for method, rest in (
        ("DELETE", "/"),
        ("PUT", "/"),
        ("DELETE", "/datasets/raw/"),
        ("POST", "/jobs/etl/hold/"),
    ):
        answer = food.client.request(method, f"{path('namespaces', 'food')}{rest}", json={})
        assert answer.status_code == 400, answer.text
        assert "slash" in answer.text
    assert not food.client.get(path("namespaces", "food")).json()["isHidden"]
    assert food.client.get(f"{path('namespaces', 'food')}/").status_code == 200
