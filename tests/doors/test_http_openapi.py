"""The OpenAPI document says what is served, and the page shows it."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.server.routes.table import ROUTES
from tests.doors.serving import Running, running

METHODS = {"get", "put", "post", "delete"}


@pytest.fixture
def food(database_url: str) -> Iterator[Running]:
    with running(database_url) as server:
        yield server


@pytest.fixture
def document(food: Running) -> dict[str, Any]:
    found: dict[str, Any] = food.client.get("/openapi.json").json()
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def every(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in the document."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from every(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from every(inner)


def test_it_lists_exactly_the_routes_that_are_served(
    food: Running, document: dict[str, Any]
) -> None:
    listed = {f"{method.upper()} {path}" for method, path, _ in operations(document)}
    assert listed == {route.name for route in ROUTES}
    for path in document["paths"]:
        answer = food.client.request("TRACE", re.sub(r"\{\w+\}", "x", path))
        assert answer.status_code == 405
        assert {m.lower() for m in answer.headers["allow"].split(", ")} == set(
            document["paths"][path]
        )


def test_it_is_well_formed(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")
    assert {"title", "version"} <= set(document["info"])
    tags = {tag["name"] for tag in document["tags"]}
    seen: set[str] = set()
    for method, path, operation in operations(document):
        assert method in METHODS
        assert operation["summary"].endswith("."), path
        assert set(operation["tags"]) <= tags
        assert operation["operationId"] not in seen
        seen.add(operation["operationId"])
        in_path = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
        assert in_path == set(re.findall(r"\{(\w+)\}", path))
        names = [parameter["name"] for parameter in operation["parameters"]]
        assert len(names) == len(set(names))
        assert all("schema" in parameter for parameter in operation["parameters"])
        assert any(status[0] == "2" for status in operation["responses"])
        assert ("requestBody" in operation) <= (method in ("put", "post"))


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    references = [item["$ref"] for item in every(document) if "$ref" in item]
    assert references
    for reference in references:
        target: Any = document
        for part in reference.removeprefix("#/").split("/"):
            target = target[part]
        assert isinstance(target, dict)


def test_it_documents_bodies_answers_and_parameters(document: dict[str, Any]) -> None:
    put = document["paths"]["/api/v1/namespaces/{namespace}/datasets/{dataset}"]["put"]
    body = put["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/DatasetBody"}
    assert document["components"]["schemas"]["DatasetBody"]["required"] == [
        *("type", "physicalName", "sourceName"),
    ]
    assert {"200", "400", "401", "403", "404", "409", "413", "422", "429"} <= set(put["responses"])
    lineage = document["paths"]["/api/v1/lineage"]["get"]["parameters"]
    assert {p["name"]: p["required"] for p in lineage} == {
        **{"nodeId": True, "depth": False, "hops": False},
        **{"direction": False, "history": False, "asOf": False},
    }


def test_what_a_read_answers_is_documented(food: Running, document: dict[str, Any]) -> None:
    for target, template in (
        ("/api/v1/events?limit=x", "/api/v1/events"),
        ("/api/v1/events?sortDirection=sideways", "/api/v1/events"),
        ("/api/v1/namespaces/ghost", "/api/v1/namespaces/{namespace}"),
        ("/api/v1/namespaces/%20", "/api/v1/namespaces/{namespace}"),
        (f"/api/v1/namespaces/{'x' * 1025}", "/api/v1/namespaces/{namespace}"),
    ):
        status = str(food.client.get(target).status_code)
        assert status in document["paths"][template]["get"]["responses"], target
    itself = document["paths"]["/openapi.json"]["get"]["responses"]["200"]["content"]
    assert itself == {"application/json": {"schema": {"type": "object"}}}


def test_the_page_is_self_contained_and_shows_every_route(food: Running) -> None:
    answer = food.client.get("/docs")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = answer.text
    for route in ROUTES:
        assert f"<code>{route.path}</code>" in page
    assert not re.search(r"(src|href)=\"(https?:)?//", page)
    assert "<script" not in page
    anchors = set(re.findall(r'href="#([^"]+)"', page))
    assert anchors <= set(re.findall(r'id="([^"]+)"', page))
